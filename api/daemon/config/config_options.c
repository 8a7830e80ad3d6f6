/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/config/config_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage_text[] =
    "Usage: skillvmd [--config FILE] [--socket PATH] [--data DIR] [options]\n"
    "Runs skills in microVMs for clients of an HTTP API. Options count more than the\n"
    "environment (SKILLVM_LIMITS_MAX_RUNNING=4 …), and that more than the file.\n"
    "\n"
    "  --config FILE        settings in YAML (default: $SKILLVM_CONFIG, else none)\n"
    "  --socket PATH        the unix socket to listen on\n"
    "  --socket-mode MODE   octal permissions of the socket (default 0660)\n"
    "  --listen ADDRESS     a TCP address to listen on too, for callers with a key\n"
    "  --data DIR           skills, executions, artifacts and snapshots\n"
    "  --share DIR          guest kernel and images (default: ../share/skillvm beside\n"
    "                       this program)\n"
    "  --vmm PATH           the skillvm-vmm program (default: beside this program)\n"
    "  --max-running N      executions at the same time (default 2, at most 256)\n"
    "  --max-queued N       executions that wait; more get 429 (default 64)\n"
    "  --grace SECONDS      how long a guest may be late before it is killed (default 5)\n"
    "  --stop-timeout SECONDS  how long running executions may go on after SIGTERM\n"
    "                       (default 10); then they are cancelled\n"
    "  --log-level LEVEL    error, warn, info or debug (default info)\n"
    "  --check-config       say whether the settings are good, and end\n"
    "  --print-config       write the settings that would be in force, and end\n"
    "  --help, --version\n";

enum { CONFIG = 256, CHECK, PRINT, HELP, VERSION, SETTING }; /* no character */

/* Options that are settings; getopt_long gives SETTING and their index. */
static const struct {
    const char *origin;
    const char *key;
} settings[] = {
    {"--socket", "socket.path"},
    {"--socket-mode", "socket.mode"},
    {"--listen", "listen.address"},
    {"--data", "data"},
    {"--share", "share"},
    {"--vmm", "vmm"},
    {"--max-running", "limits.max_running"},
    {"--max-queued", "limits.max_queued"},
    {"--grace", "grace"},
    {"--stop-timeout", "stop_timeout"},
    {"--log-level", "log.level"},
};
#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const struct option others[] = {
    {"config", required_argument, NULL, CONFIG}, {"check-config", no_argument, NULL, CHECK},
    {"print-config", no_argument, NULL, PRINT},  {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
};
#define N_OTHERS (sizeof(others) / sizeof(others[0]))

static int complain(const char *what)
{
    (void)fprintf(stderr, "skillvmd: %s; skillvmd --help says what there is\n", what);
    return -EINVAL;
}

static int take(struct config_options *o, int option)
{
    switch (option) {
    case CONFIG:
        o->config_file = optarg;
        return 0;
    case CHECK:
        o->action = OPTIONS_CHECK;
        return 0;
    case PRINT:
        o->action = OPTIONS_PRINT;
        return 0;
    case HELP:
        (void)fputs(usage_text, stdout);
        o->action = OPTIONS_DONE;
        return 0;
    case VERSION:
        (void)puts("skillvmd " SKILLVM_VERSION);
        o->action = OPTIONS_DONE;
        return 0;
    default:
        break;
    }
    if (option < SETTING)
        return complain("an option was not understood");
    if (o->n_overrides == OPTIONS_MAX)
        return complain("too many options");
    o->overrides[o->n_overrides++] =
        (struct config_override){.key = settings[option - SETTING].key,
                                 .text = optarg,
                                 .origin = settings[option - SETTING].origin};
    return 0;
}

int config_options_parse(int argc, char **argv, struct config_options *ret)
{
    struct option known[N_SETTINGS + N_OTHERS + 1] = {0};
    struct config_options o = {.action = OPTIONS_SERVE,
                               .config_file = getenv("SKILLVM_CONFIG")};
    int option, r = 0;

    for (size_t i = 0; i < N_SETTINGS; i++)
        known[i] = (struct option){.name = settings[i].origin + 2,
                                   .has_arg = required_argument,
                                   .val = SETTING + (int)i};
    for (size_t i = 0; i < N_OTHERS; i++)
        known[N_SETTINGS + i] = others[i];
    if (o.config_file && !*o.config_file)
        o.config_file = NULL;
    while (r == 0 && o.action != OPTIONS_DONE &&
           (option = getopt_long(argc, argv, "", known, NULL)) != -1)
        r = take(&o, option);
    if (r == 0 && o.action != OPTIONS_DONE && optind < argc)
        r = complain("unexpected argument");
    if (r == 0)
        *ret = o;
    return r;
}
