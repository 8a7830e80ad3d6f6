/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/options.h"

#include "api/cli/verbs.h"
#include "base/text.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define RULES_MAX   64u
#define RULE_NUMBER 1000 /* getopt_long values of the rules */

const struct option_rule option_rules[] = {
#define MEMBER(member) offsetof(struct options, member)
#define GLOBAL(member) offsetof(struct cli_globals, member)
    {OPTION_RUN, 'i', "input", "JSON", MEMBER(input),
     "the skill's input; @FILE reads a file, - standard input"},
    {OPTION_RUN, 'f', "file", "[NAME=]PATH", OPTION_REPEATS,
     "give it this file, or all files in this folder, as input, in /sandbox/in by its own name "
     "or by NAME; may be repeated"},
    {OPTION_DIR, 'd', "output-dir", "DIR", MEMBER(output_dir), "the folder to put files in"},
    {OPTION_RUN, 't', "timeout", "30s", MEMBER(timeout),
     "stop it after this long (default 2m, at most 10m)"},
    {OPTION_RUN, 's', "script", "PATH", MEMBER(script), "run this script of the skill"},
    {OPTION_RUN, 'm', "module", "NAME", MEMBER(module), "run this Python module of the skill"},
    {OPTION_RUN, 'c', "code", "CODE", MEMBER(code),
     "run this code in place of a skill; - reads it from standard input"},
    {OPTION_RUN | OPTION_LANG, 0, "lang", "python|bash|shell|node", MEMBER(lang),
     "what code is in (by its file's name or its first line, else python)"},
    {OPTION_RUN, 0, "image", "NAME", MEMBER(image),
     "the image to run it in (the skill's own, else the smallest that has what it needs)"},
    {OPTION_IMAGE, 0, "build-image", NULL, MEMBER(build_image),
     "build the image by its recipe if it is not here, as is done on a terminal"},
    {OPTION_RUN, 'e', "env", "NAME=VALUE", OPTION_REPEATS,
     "set a variable; NAME alone takes it from here; may be repeated"},
    {OPTION_RUN, 0, "network", "HOST[:PORT]", OPTION_REPEATS,
     "of the hosts that it declares only this one; for code, a host that it may reach; may be "
     "repeated"},
    {OPTION_RUN | OPTION_NO_NETWORK, 0, "no-network", NULL, MEMBER(no_network),
     "it reaches no host"},
    {OPTION_RUN, 0, "fresh", NULL, MEMBER(fresh),
     "in a machine that has run nothing for anybody and will run nothing else"},
    {OPTION_RUN, 0, "session", "ID", MEMBER(session),
     "let it find in /sandbox/session what the run before with this ID left there, and keep "
     "what it leaves"},
    {OPTION_DRAIN, 0, "undo", NULL, MEMBER(undo), "it takes executions again"},
    {OPTION_DRAIN, 0, "timeout", "10m", MEMBER(timeout),
     "wait no longer; it stays drained (for ever)"},
    {OPTION_FORMAT, 'o', "output", "json|table", MEMBER(output),
     "how to print what the command answers"},
    {OPTION_FORMAT, 0, "json", NULL, MEMBER(json), "the same as -o json"},
    {OPTION_HOST, 0, "host", "auto|native|soft", MEMBER(host),
     "where to start a daemon if there is none: on this machine's KVM or in the software host"},
    {OPTION_DAEMON, 0, "listen", "ADDRESS", MEMBER(listen),
     "a TCP address to listen on too, such as 127.0.0.1:8080, for callers with a key"},
    {OPTION_DAEMON, 0, "config", "FILE", MEMBER(config), "the daemon's settings, in YAML"},
    {OPTION_FOREGROUND, 'f', "foreground", NULL, MEMBER(foreground),
     "do not go to the background"},
    {OPTION_FOLLOW, 'f', "follow", NULL, MEMBER(follow), "go on until it ends"},
    {OPTION_STRICT, 0, "strict", NULL, MEMBER(strict), "by the specification's validator"},
    {OPTION_SPDX, 0, "spdx", NULL, MEMBER(spdx), "as an SPDX document: what it was made of"},
    {OPTION_REPLACE, 0, "replace", NULL, MEMBER(replace),
     "take the place of what its version has; that is forgotten"},
    {OPTION_FILTER, 0, "skill", "SKILL", MEMBER(skill), "of this skill alone"},
    {OPTION_FILTER, 0, "status", "accepted|running|success|failed|timeout|cancelled",
     MEMBER(status), "of this status alone"},
    {OPTION_FILTER, 'n', "limit", "N", MEMBER(limit), "at most so many, up to 200 (50)"},
    {OPTION_FILTER, 0, "cursor", "CURSOR", MEMBER(cursor), "from where a page before ended"},
    {OPTION_TENANT, 0, "tenant", "TENANT", MEMBER(tenant), "whose, by id or name"},
    {OPTION_NAME, 0, "name", "NAME", MEMBER(name), "its name, for people"},
    {OPTION_ROLE, 0, "role", "tenant|operator", MEMBER(role),
     "whether it may administer the daemon (tenant: it may not)"},
    {OPTION_SWITCH, 0, "enable", NULL, MEMBER(enable), "its keys work again"},
    {OPTION_SWITCH, 0, "disable", NULL, MEMBER(disable), "its keys are refused"},
    {OPTION_LIMITS, 0, "weight", "N", MEMBER(weight),
     "its share of the machines where tenants wait for each other, 1 to 100 (10)"},
    {OPTION_LIMITS, 0, "max-running", "N", MEMBER(max_running), "executions at a time"},
    {OPTION_LIMITS, 0, "max-queued", "N", MEMBER(max_queued), "executions that wait"},
    {OPTION_LIMITS, 0, "rate", "N", MEMBER(rate), "executions begun in a minute"},
    {OPTION_LIMITS, 0, "cpu-per-day", "2h", MEMBER(cpu_per_day), "processor time in a day"},
    {OPTION_LIMITS, 0, "storage", "10Gi", MEMBER(storage), "of skills, files and results"},
    {OPTION_LIMITS, 0, "max-timeout", "60s", MEMBER(max_timeout), "the longest execution"},
    {OPTION_LIMITS, 0, "max-memory", "512Mi", MEMBER(max_memory),
     "the most memory of an execution"},
    {OPTION_LIMITS, 0, "reuse", "skill|tenant|never|none", MEMBER(reuse),
     "whose later executions a machine may run, each from the snapshot again; the narrower of "
     "this and the daemon's setting holds"},
    {OPTION_LIMITS, 0, "images", "NAME,NAME", MEMBER(images),
     "the images that it may use, and no others; none takes the limit away"},
    {OPTION_LIMITS, 0, "network-policy", "POLICY", MEMBER(network_policy),
     "which hosts its skills may reach: off, declared (all that they declare), or a list, "
     "\"api.example.com *.example.org:8443\"; none is none of its own"},
    {OPTION_GLOBAL, 0, "server", "URL", GLOBAL(server),
     "one behind http:// or https:// (SKILLVM_SERVER, SKILLBOX_SERVER_URL)"},
    {OPTION_GLOBAL, 0, "key", "KEY", GLOBAL(key),
     "the API key to show it; @FILE reads it from a file, since others can see a command line "
     "(SKILLVM_API_KEY, SKILLBOX_API_KEY)"},
    {OPTION_GLOBAL, 0, "as", "TENANT", GLOBAL(tenant),
     "the operator works for this tenant, by id or name"},
    {OPTION_GLOBAL, 0, "socket", "PATH", GLOBAL(socket_path),
     "the unix socket of one (SKILLVM_SOCKET)"},
    {OPTION_GLOBAL, 0, "data", "DIR", GLOBAL(data_dir),
     "the data directory of this machine's, with its socket in it (SKILLVM_DATA; else "
     "~/.local/state/skillvm)"},
    {OPTION_PROGRAM, 'V', "version", NULL, MEMBER(version), "print the version"},
    {OPTION_HELP, 'h', "help", NULL, 0, "print the help of a command"},
#undef MEMBER
#undef GLOBAL
};
const size_t option_n_rules = sizeof(option_rules) / sizeof(option_rules[0]);
_Static_assert(sizeof(option_rules) / sizeof(option_rules[0]) < RULES_MAX,
               "room in make_tables");

/* The first rule of a name: for getopt all of one name are one option. */
static size_t first_of(const char *name)
{
    size_t i = 0;

    while (strcmp(option_rules[i].name, name) != 0)
        i++;
    return i;
}

/* All long names, so that one of another command can be named; the letters of kinds alone. */
static void make_tables(unsigned kinds, struct option *longs, char *shorts)
{
    for (size_t i = 0; i < option_n_rules; i++) {
        const struct option_rule *r = &option_rules[i];

        longs[i] = (struct option){
            .name = r->name,
            .has_arg = r->argument ? required_argument : no_argument,
            .val = RULE_NUMBER + (int)first_of(r->name),
        };
        if (!r->letter || !(r->kind & kinds))
            continue;
        *shorts++ = r->letter;
        if (r->argument)
            *shorts++ = ':';
    }
    longs[option_n_rules] = (struct option){0};
    *shorts = '\0';
}

/* Of rules of one name the one that these kinds have, or the first. */
static const struct option_rule *find_named(unsigned kinds, const struct option_rule *first)
{
    for (const struct option_rule *r = first; r < option_rules + option_n_rules; r++) {
        if ((r->kind & kinds) && strcmp(r->name, first->name) == 0)
            return r;
    }
    return first;
}

/* The rule of this getopt value, or NULL. */
static const struct option_rule *find_rule(unsigned kinds, int value)
{
    if (value >= RULE_NUMBER)
        return find_named(kinds, &option_rules[value - RULE_NUMBER]);
    for (size_t i = 0; i < option_n_rules; i++) {
        if (option_rules[i].letter == value && (option_rules[i].kind & kinds))
            return &option_rules[i];
    }
    return NULL;
}

static int refuse_word(const char *command, unsigned kinds, const struct option_rule *rule)
{
    char words[128] = "";
    size_t at = 0;

    for (const char *w = rule->argument; *w && at + 5 < sizeof(words); w++) {
        const char *between = *w != '|' ? NULL : strchr(w + 1, '|') ? ", " : " or ";

        if (between)
            at += (size_t)snprintf(words + at, sizeof(words) - at, "%s", between);
        else
            words[at++] = *w;
    }
    return help_usage_error(command, "--%s is %s, not \"%s\"%s", rule->name, words, optarg,
                            rule->kind == OPTION_FORMAT && (kinds & OPTION_DIR)
                                ? "; a folder for files is --output-dir"
                                : "");
}

static int keep(struct cli_globals *globals, const char *command, unsigned kinds,
                const struct option_rule *rule, struct options *o)
{
    char *base = rule->kind == OPTION_GLOBAL ? (char *)globals : (char *)o;
    bool yes = true;

    if (rule->offset == OPTION_REPEATS)
        return o->repeat(o->ctx, rule->name, optarg);
    if (!rule->argument) {
        memcpy(base + rule->offset, &yes, sizeof(yes));
        return -1;
    }
    if (strchr(rule->argument, '|') && !text_has_word(rule->argument, "|", optarg))
        return refuse_word(command, kinds, rule);
    memcpy(base + rule->offset, &optarg, sizeof(optarg));
    return -1;
}

int options_parse(struct cli_globals *globals, const char *command, const struct verb *verb,
                  int argc, char **argv, struct options *o)
{
    unsigned kinds = verb->options | OPTION_GLOBAL | OPTION_HELP;
    bool is_verb = verbs_find(commands, command) != verb && *command;
    struct option longs[RULES_MAX];
    char shorts[2 * RULES_MAX] = "+"; /* before a command, what follows is its own */
    int c, status;

    make_tables(kinds, longs, shorts + (*command ? 0 : 1));
    optind = 0;
    while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct option_rule *rule = find_rule(kinds, c);

        if (!rule)
            return help_usage_error(command, NULL);
        if (!(rule->kind & kinds))
            return help_usage_error(command, "`skillvm %s%s%s` has no option --%s", command,
                                    is_verb ? " " : "", is_verb ? verb->name : "", rule->name);
        if (rule->kind == OPTION_HELP)
            return *command ? help_print_verb(command, verb) : help_print("");
        status = keep(globals, command, kinds, rule, o);
        if (status >= 0)
            return status;
    }
    if (!o->output && (kinds & OPTION_FORMAT))
        o->output = o->json ? "json" : globals->output;
    o->json = o->output && strcmp(o->output, "json") == 0;
    o->args = argv + optind;
    o->n_args = argc - optind;
    return -1;
}
