/* SPDX-License-Identifier: Apache-2.0 */
/* What every command says about itself, from the tables of commands and options. */
#include "api/cli/cli.h"
#include "api/cli/verbs.h"
#include "base/help_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GLOBALS "--server, --key, --as, "

static void print_text(const char *text)
{
    while (text && *text) {
        size_t len = strcspn(text, "\n");

        if (*text == ' ')
            printf("%.*s\n", (int)len, text);
        else
            help_text_fill(text, len, 0, "");
        text += len + (text[len] == '\n');
    }
}

static void print_options(unsigned kinds)
{
    for (size_t i = 0; i < option_n_rules; i++) {
        const struct option_rule *r = &option_rules[i];
        char letter[] = {'-', r->letter, ',', ' ', '\0'}, left[96];

        if (!(r->kind & kinds))
            continue;
        (void)snprintf(left, sizeof(left), "%s--%s%s%s", r->letter ? letter : "    ", r->name,
                       r->argument ? " " : "", r->argument ? r->argument : "");
        help_text_pair(left, r->help);
    }
}

/* Each with the first thing that it takes. */
static void print_verbs(const struct verb *verbs)
{
    for (const struct verb *v = verbs; v->name; v++) {
        int taken = (int)strcspn(v->args, " [");
        char left[64];

        taken = verbs == commands ? 0 : taken;
        (void)snprintf(left, sizeof(left), "%s%s%.*s", v->name, taken ? " " : "", taken,
                       v->args);
        help_text_pair(left, v->summary);
    }
}

static void print_examples(const char *examples)
{
    printf("\nexample%s:\n", strchr(examples, '\n')[1] ? "s" : "");
    for (size_t len; *examples; examples += len + 1) {
        len = strcspn(examples, "\n");
        printf("  skillvm %.*s\n", (int)len, examples);
    }
}

int help_print_verb(const char *command, const struct verb *verb)
{
    bool is_verb = verbs_find(commands, command) != verb;

    printf("usage: skillvm %s%s%s%s%s\n\n", command, is_verb ? " " : "",
           is_verb ? verb->name : "", *verb->args ? " " : "", verb->args);
    print_text(verb->text);
    if (verb->text)
        putchar('\n');
    if (verb->verbs) {
        print_verbs(verb->verbs);
        printf("\n`skillvm %s VERB --help` says more.\n", command);
    }
    print_options(verb->options);
    if (!verb->verbs && !(verb->options & OPTION_OFFLINE))
        printf("  %s--socket, --data  as in `skillvm help`\n", verb->here ? "" : GLOBALS);
    print_examples(verb->examples);
    return CLI_OK;
}

static int print_program(void)
{
    printf("skillvm runs a skill in a microVM that is as its snapshot was.\n\n"
           "usage: skillvm [options] COMMAND …\n\n");
    print_verbs(commands);
    printf("\nWhich daemon:\n");
    print_options(OPTION_GLOBAL);
    print_text(
        "An option counts before a variable, then the order is SKILLVM_SOCKET, SKILLVM_SERVER, "
        "SKILLBOX_SERVER_URL, and last the daemon of the data directory. SKILLBOX_API_KEY is "
        "shown to a server alone. With a server nothing is started on this machine.\n"
        "\n"
        "These options go before or behind COMMAND, and so does -o json or -o table for "
        "commands that print such things. Colours are for terminals, unless NO_COLOR is set.");
    print_examples("run examples/word-counter --input '{\"text\": \"to be or not to be\"}'\n"
                   "help run\n");
    return CLI_OK;
}

int help_print(const char *command)
{
    const struct verb *verb = *command ? verbs_find(commands, command) : NULL;
    char hint[NEAREST_HINT_SIZE];

    if (!*command)
        return print_program();
    return verb ? help_print_verb(command, verb)
                : help_usage_error("", "there is no command \"%s\"%s", command,
                                   verbs_hint(commands, command, hint));
}

int help_usage_error(const char *command, const char *format, ...)
{
    va_list args;

    if (format) {
        fputs("skillvm: ", stderr);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
    fprintf(stderr, "See `skillvm help%s%s`.\n", *command ? " " : "", command);
    return CLI_USAGE;
}

int cmd_help(const struct cli *cli, const struct options *options)
{
    const char *command = options->n_args ? options->args[0] : "";
    const struct verb *of = options->n_args > 1 ? verbs_find(commands, command) : NULL;

    (void)cli;
    return of ? verbs_help(of, options->args[1]) : help_print(command);
}
