/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/config/config_options.h"

#include "api/daemon/config/config_keys.h"
#include "base/help_text.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define KNOWN_MAX 64u

static const char usage_text[] =
    "Usage: skillvmd [--config FILE] [--socket PATH] [--data DIR] [options]\n"
    "Runs skills in microVMs for clients of an HTTP API. Options count more than the\n"
    "environment (SKILLVM_LIMITS_MAX_RUNNING=4 …), and that more than the file.\n";

enum { CONFIG = 256, CHECK, PRINT, HELP, VERSION, SETTING }; /* no character */

const struct config_action config_actions[] = {
    {"--config", "FILE", CONFIG,
     "settings in YAML; without it the file that SKILLVM_CONFIG names, else none"},
    {"--check-config", NULL, CHECK, "say whether the settings are good, and end"},
    {"--print-config", NULL, PRINT,
     "write the settings that would be in force, as a file that --config takes, and end"},
    {"--help", NULL, HELP, "say what options there are"},
    {"--version", NULL, VERSION, "say which version this is"},
    {.name = NULL},
};

static void print_option(const char *name, const char *takes, const char *text)
{
    char left[64];

    (void)snprintf(left, sizeof(left), "%s%s%s", name, takes ? " " : "", takes ? takes : "");
    help_text_pair(left, text);
}

static void print_usage(void)
{
    (void)printf("%s\n", usage_text);
    for (const struct config_action *a = config_actions; a->name; a++)
        print_option(a->name, a->takes, a->text);
    for (const struct config_key *key = config_keys; key->name; key++) {
        char text[1024], range[96];

        if (!key->option)
            continue;
        config_value_range(key->type, key->min, key->max, range, sizeof(range));
        (void)snprintf(text, sizeof(text), *key->initial ? "%s (%s%s%s by default)" : "%s",
                       key->text, range, *range ? "; " : "", key->initial);
        print_option(key->option, key->takes, text);
    }
    (void)printf("\nmore settings: skillvmd.yaml(5)\n");
}

static int complain(const char *what)
{
    (void)fprintf(stderr, "skillvmd: %s; skillvmd --help says what there is\n", what);
    return -EINVAL;
}

static int override(struct config_options *o, const struct config_key *key)
{
    if (o->n_overrides == OPTIONS_MAX)
        return complain("too many options");
    o->overrides[o->n_overrides++] =
        (struct config_override){.key = key->name, .text = optarg, .origin = key->option};
    return 0;
}

static int take(struct config_options *o, int option)
{
    if (option >= SETTING)
        return override(o, &config_keys[option - SETTING]);
    if (option == CONFIG)
        o->config_file = optarg;
    else if (option == CHECK)
        o->action = OPTIONS_CHECK;
    else if (option == PRINT)
        o->action = OPTIONS_PRINT;
    else if (option == HELP || option == VERSION)
        o->action = OPTIONS_DONE;
    else
        return complain("an option was not understood");
    if (option == HELP)
        print_usage();
    if (option == VERSION)
        (void)puts("skillvmd " SKILLVM_VERSION);
    return 0;
}

/* What getopt_long is to know: a setting gives SETTING and its index. */
static void make_table(struct option *known)
{
    size_t n = 0;

    for (const struct config_action *a = config_actions; a->name; a++)
        known[n++] = (struct option){
            .name = a->name + 2,
            .has_arg = a->takes ? required_argument : no_argument,
            .val = a->value,
        };
    for (const struct config_key *key = config_keys; key->name; key++) {
        if (key->option && n < KNOWN_MAX)
            known[n++] = (struct option){
                .name = key->option + 2,
                .has_arg = required_argument,
                .val = SETTING + (int)(key - config_keys),
            };
    }
    known[n] = (struct option){0};
}

int config_options_parse(int argc, char **argv, struct config_options *ret)
{
    struct option known[KNOWN_MAX + 1];
    struct config_options o = {.action = OPTIONS_SERVE,
                               .config_file = getenv("SKILLVM_CONFIG")};
    int option, r = 0;

    make_table(known);
    if (o.config_file && !*o.config_file)
        o.config_file = NULL;
    while (r == 0 && o.action != OPTIONS_DONE &&
           (option = getopt_long(argc, argv, "", known, NULL)) != -1)
        r = take(&o, option);
    if (r < 0)
        return r;
    if (o.action != OPTIONS_DONE && optind < argc)
        return complain("unexpected argument");
    *ret = o;
    return 0;
}
