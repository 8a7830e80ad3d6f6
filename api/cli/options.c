/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define RULES_MAX   64u
#define RULE_NUMBER 3000 /* getopt_long values of options without a letter */

static const struct rule {
    unsigned kind; /* of enum option_kind */
    char letter;   /* 0: none */
    const char *name;
    const char *argument; /* what it takes, for the help; NULL: it is a flag */
    size_t offset;        /* of its member in struct options: a bool, or a text */
    const char *help;
} rules[] = {
#define MEMBER(member) offsetof(struct options, member)
    {OPTION_FORMAT, 'o', "output", "json|table", MEMBER(output), "how to print"},
    {OPTION_JSON, 0, "json", NULL, MEMBER(json), "the same as -o json"},
    {OPTION_FOLLOW, 'f', "follow", NULL, MEMBER(follow), "go on until it ends"},
    {OPTION_STRICT, 0, "strict", NULL, MEMBER(strict), "by the specification's validator"},
    {OPTION_DIR, 'd', "output-dir", "DIR", MEMBER(output_dir), "where to put it"},
    {OPTION_FILTER, 0, "skill", "NAME", MEMBER(skill), "of this skill alone"},
    {OPTION_FILTER, 0, "status", "WORD", MEMBER(status), "of this status alone"},
    {OPTION_FILTER, 'n', "limit", "N", MEMBER(limit), "at most so many, up to 200 (50)"},
    {OPTION_FILTER, 0, "cursor", "CURSOR", MEMBER(cursor), "from where a page before ended"},
    {OPTION_TENANT, 0, "tenant", "TENANT", MEMBER(tenant), "whose, by id or name"},
    {OPTION_NAME, 0, "name", "NAME", MEMBER(name), "its name, for people"},
    {OPTION_ROLE, 0, "role", "tenant|operator", MEMBER(role), "what it may do (tenant)"},
    {OPTION_SWITCH, 0, "enable", NULL, MEMBER(enable), "its keys work again"},
    {OPTION_SWITCH, 0, "disable", NULL, MEMBER(disable), "its keys are refused"},
    {OPTION_LIMITS, 0, "weight", "N", MEMBER(weight), "share of the machines, 1 to 100 (10)"},
    {OPTION_LIMITS, 0, "max-running", "N", MEMBER(max_running), "executions at a time"},
    {OPTION_LIMITS, 0, "max-queued", "N", MEMBER(max_queued), "executions that wait"},
    {OPTION_LIMITS, 0, "rate", "N", MEMBER(rate), "executions begun in a minute"},
    {OPTION_LIMITS, 0, "cpu-per-day", "2h", MEMBER(cpu_per_day), "processor time in a day"},
    {OPTION_LIMITS, 0, "storage", "10Gi", MEMBER(storage), "of skills, files and results"},
    {OPTION_LIMITS, 0, "max-timeout", "60s", MEMBER(max_timeout), "longest execution"},
    {OPTION_LIMITS, 0, "max-memory", "512Mi", MEMBER(max_memory), "memory of an execution"},
    {OPTION_LIMITS, 0, "reuse", "WORD", MEMBER(reuse),
     "skill, tenant or never: of its machines"},
#undef MEMBER
};

#define N_RULES (sizeof(rules) / sizeof(rules[0]))

static int number_of(size_t rule)
{
    return rules[rule].letter ? rules[rule].letter : RULE_NUMBER + (int)rule;
}

/* The rule with this getopt value, or NULL. */
static const struct rule *find_rule(int option)
{
    for (size_t i = 0; i < N_RULES; i++) {
        if (number_of(i) == option)
            return &rules[i];
    }
    return NULL;
}

static void make_tables(struct option *longs, char *shorts)
{
    static const struct option globals[] = {CLI_GLOBAL_OPTIONS, {0}};
    size_t n = 0;

    *shorts++ = 'h';
    for (size_t i = 0; i < N_RULES; i++) {
        longs[n++] = (struct option){
            .name = rules[i].name,
            .has_arg = rules[i].argument ? required_argument : no_argument,
            .val = number_of(i),
        };
        if (rules[i].letter)
            *shorts++ = rules[i].letter;
        if (rules[i].letter && rules[i].argument)
            *shorts++ = ':';
    }
    *shorts = '\0';
    memcpy(longs + n, globals, sizeof(globals));
}

static void keep(const struct rule *rule, struct options *o)
{
    char *member = (char *)o + rule->offset;
    bool yes = true;

    if (rule->argument)
        memcpy(member, &optarg, sizeof(optarg));
    else
        memcpy(member, &yes, sizeof(yes));
}

/* The help with a line for each option before its example. */
static void print_help(const char *help, unsigned kinds)
{
    const char *example = strstr(help, "example");

    if (!example)
        example = help + strlen(help);
    printf("%.*s", (int)(example - help), help);
    for (size_t i = 0; i < N_RULES; i++) {
        const struct rule *r = &rules[i];
        char left[64];

        if (!(r->kind & kinds))
            continue;
        (void)snprintf(left, sizeof(left), "%c%c%s--%s%s%s", r->letter ? '-' : ' ',
                       r->letter ? r->letter : ' ', r->letter ? ", " : "  ", r->name,
                       r->argument ? " " : "", r->argument ? r->argument : "");
        printf("  %-28s %s\n", left, r->help);
    }
    if (!(kinds & OPTION_OFFLINE))
        printf("  --server, --key, --as, --socket, --data  as in `skillvm help`\n");
    printf("%s%s", kinds == OPTION_OFFLINE ? "" : "\n", example);
}

int options_parse(struct cli_globals *globals, const char *command, const char *shown,
                  const char *help, unsigned kinds, int argc, char **argv, struct options *o)
{
    struct option longs[RULES_MAX];
    char shorts[2 * RULES_MAX];
    int c, status;

    _Static_assert(N_RULES + 8 < RULES_MAX, "the tables hold every rule");
    make_tables(longs, shorts);
    optind = 0;
    while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct rule *rule = find_rule(c);

        if (rule && !(rule->kind & kinds))
            return help_usage_error(command, "`skillvm %s` has no option --%s", shown,
                                    rule->name);
        if (rule) {
            keep(rule, o);
            continue;
        }
        if (c == 'h' && help) {
            print_help(help, kinds);
            return CLI_OK;
        }
        status = cli_take_global(c, globals, command);
        if (status >= 0)
            return status;
    }
    if (o->output && strcmp(o->output, "json") != 0 && strcmp(o->output, "table") != 0)
        return help_usage_error(command, "--output is json or table, not \"%s\"", o->output);
    if (o->output)
        o->json = strcmp(o->output, "json") == 0;
    else if (globals->output && (kinds & OPTION_FORMAT))
        o->json = o->json || strcmp(globals->output, "json") == 0;
    o->args = argv + optind;
    o->n_args = argc - optind;
    return -1;
}

int options_parse_simple(struct cli_globals *globals, const char *command, unsigned kinds,
                         int argc, char **argv, struct options *o)
{
    int status = options_parse(globals, command, command, NULL, kinds, argc, argv, o);

    return status >= 0 ? status : cli_refuse_arguments(argc, argv, command);
}
