/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of settings says, in each of its forms. */
#include "api/pages/pages.h"

#include "api/daemon/config/config_keys.h"
#include "api/daemon/config/config_options.h"
#include "base/help_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its text and its range, and more that belongs to that. */
static void say(const struct config_key *key, const char *more, char *text, size_t size)
{
    char range[96];
    const char *between;

    config_value_range(key->type, key->min, key->max, range, sizeof(range));
    between = *range && *more ? ", " : "";
    (void)snprintf(text, size, *range || *more ? "%s (%s%s%s)" : "%s", key->text, range,
                   between, more);
}

/* As a sentence of a manual. */
static void put_sentence(const char *text)
{
    char sentence[1100];

    (void)snprintf(sentence, sizeof(sentence), "%c%s.", toupper(text[0]), text + 1);
    pages_roff(sentence, strlen(sentence));
}

static void put_option(const char *name, const char *takes)
{
    printf(".It Fl %s%s%s\n", name + 1, takes ? " Ar " : "", takes ? takes : "");
}

void pages_options(void)
{
    char text[1024];

    for (const struct config_action *a = config_actions; a->name; a++) {
        put_option(a->name, a->takes);
        put_sentence(a->text);
    }
    for (const struct config_key *key = config_keys; key->name; key++) {
        if (!key->option)
            continue;
        put_option(key->option, key->takes);
        say(key, "", text, sizeof(text));
        put_sentence(text);
        printf("The setting\n.Cm %s .\n", key->name);
    }
}

void pages_settings(void)
{
    char text[1024];

    for (const struct config_key *key = config_keys; key->name; key++) {
        const struct config_section *section = config_section_begun(key);

        if (section) {
            printf(".It Cm %s\n", section->name);
            pages_roff(section->text, strlen(section->text));
        }
        printf(".It Cm %s\n", key->name);
        say(key, "", text, sizeof(text));
        put_sentence(text);
        printf("%s\n.Cm %s .\n",
               key->live ? "A reload can change it; by default" : "By default",
               *key->initial ? key->initial : "\\(dq\\(dq");
    }
}

/* A comment in lines of a bounded width. */
static void put_comment(const char *text, int indent)
{
    int column = printf("%*s# ", indent, "");

    help_text_fill(text, strlen(text), (size_t)column, "# ");
}

static void put_value(const struct config_key *key, const struct config *config)
{
    _cleanup_buf_ struct buf value = buf_init(8192);
    if (config_value_write(key->type, config_key_look(key, config), &value) < 0 ||
        !buf_cstr(&value))
        abort();
    fputs(buf_cstr(&value), stdout);
}

void pages_sample(const struct config *sample)
{
    char text[1024];

    for (const struct config_key *key = config_keys; key->name; key++) {
        size_t len = config_key_section(key);
        const struct config_section *section = config_section_begun(key);
        int indent = len > 0 ? 2 : 0;

        if (section || len == 0)
            putchar('\n');
        if (section) {
            put_comment(section->text, 0);
            printf("%s:\n", section->name);
        }
        say(key, key->live ? "reload" : "", text, sizeof(text));
        put_comment(text, indent);
        printf("%*s%s: ", indent, "", key->name + len + (len > 0));
        put_value(key, sample);
        putchar('\n');
    }
}

void pages_rows(void)
{
    struct config defaults = {0};
    struct err err = {0};
    char text[1024];

    if (config_defaults(&defaults, &err) < 0)
        abort();
    printf("| key | default | reload | what it is |\n|---|---|---|---|\n");
    for (const struct config_key *key = config_keys; key->name; key++) {
        say(key, "", text, sizeof(text));
        printf("| `%s` | `", key->name);
        put_value(key, &defaults);
        printf("` | %s | %s |\n", key->live ? "yes" : "no", text);
    }
    config_finish(&defaults);
}
