/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of a parser as a guest may send it, a line feed, and arguments of a caller's.
 * What must hold: the schema is JSON, names are valid and different in each parser, and a
 * command line has no more to it than what was given.
 */
#include "api/json/json_text.h"
#include "api/tools/arguments.h"
#include "api/tools/parser.h"
#include "api/tools/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_names(const struct parser *p)
{
    for (size_t i = 0; i < p->n_actions; i++) {
        const struct parser_action *a = &p->actions[i];
        size_t len = strnlen(a->property, PARSER_NAME_SIZE);

        if (len == 0 || len == PARSER_NAME_SIZE)
            abort();
        for (size_t k = 0; k < i; k++) {
            if (strcmp(p->actions[k].property, a->property) == 0)
                abort();
        }
        for (size_t k = 0; k < a->n_commands; k++)
            check_names(&a->commands[k].parser);
    }
}

static void check_schema(const struct parser *p, const char *arguments, size_t len)
{
    struct buf schema = buf_init(SCHEMA_BYTES_MAX);
    struct err err = {0};
    int r = schema_write(p, &schema);

    if (r < 0 && r != -E2BIG)
        abort();
    if (r == 0) {
        if (json_text_check((char *)schema.data, schema.len, NULL, NULL) < 0)
            abort();
        (void)schema_check(buf_cstr(&schema), arguments, len, &err);
    }
    buf_finish(&schema);
}

static void check_argv(const struct parser *p, const char *arguments, size_t len)
{
    struct skill_strings argv = {0};
    struct err err = {0};

    if (arguments_to_argv(p, arguments, len, &argv, &err) < 0 && err.code == 0)
        abort();
    skill_strings_finish(&argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *end;
    size_t len;
    struct parser_script script;
    struct err err = {0};

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    end = memchr(text, '\n', size);
    len = end ? (size_t)(end - text) : size;
    if (parser_read(text, len, &script, &err) == 0) {
        const char *arguments = end ? end + 1 : "{}";
        size_t left = end ? size - len - 1 : 2;

        check_names(&script.parser);
        if (json_text_check(arguments, left, NULL, NULL) == 0) {
            check_schema(&script.parser, arguments, left);
            check_argv(&script.parser, arguments, left);
        }
        parser_script_finish(&script);
    } else if (err.code == 0) {
        abort();
    }
    free(text);
    return 0;
}
