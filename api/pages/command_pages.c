/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of commands and options say, for the manual and the completion. */
#include "api/pages/pages.h"

#include "api/cli/verbs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void put_text(const char *text)
{
    while (text && *text) {
        size_t len = strcspn(text, "\n");

        printf("%s", len == 0 ? ".Pp\n" : *text == ' ' ? ".Dl " : "");
        if (len > 0)
            pages_roff(text + strspn(text, " "), len - strspn(text, " "));
        text += len + (text[len] == '\n');
    }
}

static void put_options(unsigned kinds)
{
    for (size_t i = 0; i < option_n_rules; i++) {
        const struct option_rule *r = &option_rules[i];

        if (!(r->kind & kinds))
            continue;
        printf(".It");
        if (r->letter)
            printf(" Fl %c ,", r->letter);
        printf(" Fl -%s%s%s\n%c%s.\n", r->name, r->argument ? " Ar " : "",
               r->argument ? r->argument : "", toupper(r->help[0]), r->help + 1);
    }
}

/* A command, or a verb behind its command, with its options in a list as far as it has some. */
static void put_described(const char *before, const struct verb *verb)
{
    unsigned kinds = verb->options & ~(unsigned)OPTION_OFFLINE;

    printf(".It Ic %s%s%s%s", before, *before ? " " : "", verb->name,
           *verb->args ? " Ar " : "");
    pages_roff(verb->args, strlen(verb->args));
    put_text(verb->text);
    if (!kinds)
        return;
    printf(".Bl -tag -width Ds\n");
    put_options(kinds);
    printf(".El\n");
}

void pages_globals(void)
{
    put_options(OPTION_GLOBAL | OPTION_HELP | OPTION_PROGRAM);
}

void pages_commands(void)
{
    for (const struct verb *c = commands; c->name; c++) {
        if (!c->verbs)
            put_described("", c);
        for (const struct verb *v = c->verbs; v && v->name; v++)
            put_described(c->name, v);
    }
}

/* One entry of the completion's table: "command -option" and what that takes. */
static void put_entry(const char *command, const char *verb, const char *option, char letter,
                      const char *takes)
{
    printf("    ['%s%s%s%s", command, verb ? " " : "", verb ? verb : "",
           option || letter ? " -" : "");
    if (option)
        printf("-%s", option);
    else if (letter)
        putchar(letter);
    printf("']='%s'\n", takes ? takes : "");
}

static void put_words(const char *command, const struct verb *verb, unsigned kinds)
{
    const char *name = verb ? verb->name : NULL;

    for (size_t i = 0; i < option_n_rules; i++) {
        const struct option_rule *r = &option_rules[i];

        if (!(r->kind & kinds))
            continue;
        put_entry(command, name, r->name, 0, r->argument);
        if (r->letter)
            put_entry(command, name, NULL, r->letter, r->argument);
    }
}

void pages_completion(void)
{
    put_words("*", NULL, OPTION_GLOBAL | OPTION_HELP);
    put_words("", NULL, OPTION_FORMAT | OPTION_PROGRAM);
    for (const struct verb *c = commands; c->name; c++) {
        put_entry(c->name, NULL, NULL, 0, c->args);
        put_words(c->name, NULL, c->options);
        for (const struct verb *v = c->verbs; v && v->name; v++) {
            put_entry(c->name, v->name, NULL, 0, v->args);
            put_words(c->name, v, v->options);
        }
    }
}
