/* SPDX-License-Identifier: Apache-2.0 */
/* What every command says about itself, from the tables of commands and options. */
#include "api/cli/cli.h"
#include "api/cli/verbs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WIDTH   92u
#define INDENT  30u /* of what options and verbs do */
#define GLOBALS "--server, --key, --as, "

/* Words between column and WIDTH, further lines behind so many blanks. */
static void print_filled(const char *text, size_t len, size_t column)
{
    size_t indent = column;
    const char *end = text + len;

    while (text < end) {
        size_t n = strcspn(text, " \n");

        n = n < (size_t)(end - text) ? n : (size_t)(end - text);
        if (column > indent && column + 1 + n > WIDTH)
            column = (size_t)printf("\n%*s", (int)indent, "") - 1;
        else if (column > indent)
            column += (size_t)printf(" ");
        column += (size_t)printf("%.*s", (int)n, text);
        text += n < (size_t)(end - text) ? n + 1 : n;
    }
    putchar('\n');
}

static void print_text(const char *text)
{
    while (text && *text) {
        size_t len = strcspn(text, "\n");

        if (*text == ' ')
            printf("%.*s\n", (int)len, text);
        else
            print_filled(text, len, 0);
        text += len + (text[len] == '\n');
    }
}

/* "  left   help", with help on a line of its own where left is long. */
static void print_pair(const char *left, const char *help)
{
    int n = printf("  %s", left);

    if (n + 2 > (int)INDENT)
        n = printf("\n") - 1;
    printf("%*s", (int)INDENT - n, "");
    print_filled(help, strlen(help), INDENT);
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
        print_pair(left, r->help);
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
        print_pair(left, v->summary);
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
        printf("  %s--socket, --data  as in `skillvm help`\n",
               verb->options & OPTION_HERE ? "" : GLOBALS);
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

    if (!*command)
        return print_program();
    return verb ? help_print_verb(command, verb)
                : help_usage_error("", "there is no command \"%s\"", command);
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

int cmd_help(struct cli_globals *globals, int argc, char **argv)
{
    (void)globals;
    if (argc > 2)
        return help_usage_error("help", "\"%s\" is one argument too many", argv[2]);
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return help_print("help");
    return help_print(argc == 2 ? argv[1] : "");
}
