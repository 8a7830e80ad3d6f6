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
    bool is_flag;
    const char *name;
    size_t offset; /* of its member in struct options: a bool, or a text */
} rules[] = {
    {OPTION_FORMAT, 'o', false, "output", offsetof(struct options, output)},
    {OPTION_JSON, 0, true, "json", offsetof(struct options, json)},
    {OPTION_FOLLOW, 'f', true, "follow", offsetof(struct options, follow)},
    {OPTION_STRICT, 0, true, "strict", offsetof(struct options, strict)},
    {OPTION_DIR, 'd', false, "output-dir", offsetof(struct options, output_dir)},
    {OPTION_FILTER, 0, false, "skill", offsetof(struct options, skill)},
    {OPTION_FILTER, 0, false, "status", offsetof(struct options, status)},
    {OPTION_FILTER, 'n', false, "limit", offsetof(struct options, limit)},
    {OPTION_TENANT, 0, false, "tenant", offsetof(struct options, tenant)},
    {OPTION_NAME, 0, false, "name", offsetof(struct options, name)},
    {OPTION_ROLE, 0, false, "role", offsetof(struct options, role)},
    {OPTION_LIMITS, 0, false, "weight", offsetof(struct options, weight)},
    {OPTION_LIMITS, 0, false, "max-running", offsetof(struct options, max_running)},
    {OPTION_LIMITS, 0, false, "max-queued", offsetof(struct options, max_queued)},
    {OPTION_LIMITS, 0, false, "rate", offsetof(struct options, rate)},
    {OPTION_LIMITS, 0, false, "cpu-per-day", offsetof(struct options, cpu_per_day)},
    {OPTION_LIMITS, 0, false, "storage", offsetof(struct options, storage)},
    {OPTION_LIMITS, 0, false, "max-timeout", offsetof(struct options, max_timeout)},
    {OPTION_LIMITS, 0, false, "max-memory", offsetof(struct options, max_memory)},
    {OPTION_SWITCH, 0, true, "enable", offsetof(struct options, enable)},
    {OPTION_SWITCH, 0, true, "disable", offsetof(struct options, disable)},
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
            .has_arg = rules[i].is_flag ? no_argument : required_argument,
            .val = number_of(i),
        };
        if (rules[i].letter)
            *shorts++ = rules[i].letter;
        if (rules[i].letter && !rules[i].is_flag)
            *shorts++ = ':';
    }
    *shorts = '\0';
    memcpy(longs + n, globals, sizeof(globals));
}

static void keep(const struct rule *rule, struct options *o)
{
    char *member = (char *)o + rule->offset;
    bool yes = true;

    if (rule->is_flag)
        memcpy(member, &yes, sizeof(yes));
    else
        memcpy(member, &optarg, sizeof(optarg));
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
            (void)fputs(help, stdout);
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
