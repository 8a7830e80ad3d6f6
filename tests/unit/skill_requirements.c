/* SPDX-License-Identifier: Apache-2.0 */
/* What a requirements.txt and the block of a script require, as pip and PEP 723 read them. */
#include "api/skill/requirements.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/cmocka_all.h"

/* "LINE KIND TEXT[|OPTIONS];" of each. */
static int note(void *ctx, const struct requirements_line *line)
{
    static const char kinds[] = {[REQUIREMENTS_NAMED] = 'n',
                                 [REQUIREMENTS_PLACE] = 'p',
                                 [REQUIREMENTS_OPTION] = 'o',
                                 [REQUIREMENTS_PYTHON] = 'y'};

    return buf_printf(ctx, "%u%c %s%s%s;", line->line, kinds[line->kind], line->text,
                      line->options ? "|" : "", line->options ? line->options : "");
}

static int stop(void *ctx, const struct requirements_line *line)
{
    ++*(unsigned *)ctx;
    return line->line == 2 ? -EDOM : 0;
}

/* In memory that ends where the text does, so that nothing is read behind it unseen. */
static void expect(bool script, const char *text, const char *want, int result)
{
    size_t len = strlen(text);
    char *copy = len > 0 ? malloc(len) : NULL;
    struct buf got = buf_init(4096);
    struct err err = {0};
    int r;

    if (len > 0)
        memcpy(copy, text, len);
    r = script ? requirements_read_script(copy, len, note, &got, &err)
               : requirements_read_file(copy, len, note, &got);
    if (r != result || strcmp(buf_cstr(&got), want) != 0)
        fail_msg("%s: %d %s, %s", text, r, buf_cstr(&got), err.message);
    buf_finish(&got);
    free(copy);
}

static void files_are_cut_as_pip_does(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"six", "1n six;"},
        {"\n  six>=1 ; x # why\r\n# all\nrich#no\n", "2n six>=1 ; x;4n rich#no;"},
        {"a \\\n  >=1\nb\n", "1n a    >=1;3n b;"},
        {"a \\\r\n  >=1\r\nb", "1n a    >=1;3n b;"},
        {"a \\\n# a comment \\\nb", "1n a;3n b;"},
        {"# no \\\nb", "2n b;"},
        {"a\\", "1n a;"},
        {"\\\n\\\n\\\n", ""},
        {"-r more.txt\n--index-url x # y\n-e .", "1o -r more.txt;2o --index-url x;3o -e .;"},
        {"a==1 --hash=sha256:1 \\\n --hash=sha256:2",
         "1n a==1|--hash=sha256:1   --hash=sha256:2;"},
        {"./a\n/b\nx-1.whl\nhttps://e.org/x\nx @ https://e.org/x\n",
         "1p ./a;2p /b;3p x-1.whl;4p https://e.org/x;5p x @ https://e.org/x;"},
    };
    unsigned n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(false, cases[i].text, cases[i].want, 0);
    assert_int_equal(requirements_read_file("a\nb\nc", 5, stop, &n), -EDOM);
    assert_int_equal(n, 2);
}

static void blocks_are_cut_as_they_are_written(void **state)
{
#define BEGIN "# /// script\n"
#define END   "# ///\n"
    static const struct {
        const char *text, *want;
        int result;
    } cases[] = {
        {"", "", 0},
        {"import six\n", "", 0},
        {"#!/usr/bin/env python3\n" BEGIN "# requires-python = \">=3.11\"\n# dependencies = "
         "[\n#   \"a<3\", # a ]\n#\n#   'b'\n# "
         "]\n" END "x",
         "3y >=3.11;5n a<3;7n b;", 0},
        {BEGIN "# dependencies = ['a', \"b # c\"]\n# requires-python = '>=3.12'\r\n" END,
         "2n a;2n b # c;3y >=3.12;", 0},
        {BEGIN "# other = 'dependencies = [\"x\"]'\n#  dependencies=['a @ https://e/x']\n" END,
         "3p a @ https://e/x;", 0},
        {BEGIN "# [tool.x]\n# dependencies = ['a']\n" END, "", 0},
        {BEGIN "# dependencies_of = ['a']\n" END, "", 0},
        {BEGIN "# dependencies = ['a']\n", "", 0},
        {BEGIN "# dependencies = ['a']\nimport x\n" END, "", 0},
        {BEGIN "# dependencies = 'a'\n" END, "", -EINVAL},
        {BEGIN "# dependencies = ['a', b]\n" END, "2n a;", -EINVAL},
        {BEGIN "# dependencies = ['a\n# ']\n" END, "", -EINVAL},
        {BEGIN "# dependencies = ['a'\n" END, "2n a;", -EINVAL},
        {BEGIN "# requires-python = 3.11\n" END, "", -EINVAL},
        {BEGIN "# dependencies =\n" END, "", -EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(true, cases[i].text, cases[i].want, cases[i].result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_cut_as_pip_does),
        cmocka_unit_test(blocks_are_cut_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
