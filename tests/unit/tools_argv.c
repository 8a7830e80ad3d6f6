/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools_argv DESCRIPTION [ARGUMENTS]: reads a parser's description from a file and prints its
 * schema, or the command line for the arguments, one argument in a line, each in JSON; what is
 * refused goes to standard error with status 1.
 */
#include "api/tools/arguments.h"
#include "api/tools/parser.h"
#include "api/tools/schema.h"

#include "api/json/json_text.h"

#include <stdio.h>
#include <string.h>

static int print_argv(const struct parser *parser, const char *arguments, struct err *err)
{
    struct skill_strings argv = {0};
    struct buf out = buf_init(1u << 20);
    int r = arguments_to_argv(parser, arguments, strlen(arguments), &argv, err);

    for (size_t i = 0; r == 0 && i < argv.len; i++) {
        r = json_append_cstr(&out, argv.items[i]);
        if (r == 0)
            r = buf_append(&out, "\n", 1);
    }
    if (r == 0)
        (void)fwrite(out.data, 1, out.len, stdout);
    skill_strings_finish(&argv);
    buf_finish(&out);
    return r;
}

static int print_schema(const struct parser *parser)
{
    struct buf out = buf_init(SCHEMA_BYTES_MAX);
    int r = schema_write(parser, &out);

    if (r == 0)
        (void)fwrite(out.data, 1, out.len, stdout);
    buf_finish(&out);
    return r;
}

int main(int argc, char **argv)
{
    static char text[PARSER_BYTES_MAX];
    struct parser_script script;
    struct err err = {0};
    FILE *f = argc > 1 ? fopen(argv[1], "re") : NULL;
    size_t len = f ? fread(text, 1, sizeof(text), f) : 0;
    int r = parser_read(text, len, &script, &err);

    if (f)
        (void)fclose(f);
    if (r == 0) {
        r = argc > 2 ? print_argv(&script.parser, argv[2], &err) : print_schema(&script.parser);
        parser_script_finish(&script);
    }
    if (r < 0)
        (void)fprintf(stderr, "%s\n", err.message);
    return r < 0;
}
