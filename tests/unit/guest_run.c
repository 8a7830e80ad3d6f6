/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init/run: a RUN message is decoded whole or refused; nothing in it can leave the skill.
 */
#include "guest-init/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/cmocka_all.h"

struct message {
    uint8_t data[4096];
    struct bytes_writer w;
};

static void start(struct message *m)
{
    m->w = bytes_writer_init(m->data, sizeof(m->data));
}

static void put(struct message *m, uint16_t tag, const void *value, size_t len)
{
    bytes_put_u16(&m->w, tag);
    bytes_put_u16(&m->w, 0);
    bytes_put_u32(&m->w, (uint32_t)len);
    bytes_put(&m->w, value, len);
}

static void put_text(struct message *m, uint16_t tag, const char *text)
{
    put(m, tag, text, strlen(text));
}

static void put_number(struct message *m, uint16_t tag, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    struct bytes_writer w = bytes_writer_init(bytes, sizeof(bytes));

    bytes_put_u64(&w, value);
    put(m, tag, bytes, size);
}

static void put_least(struct message *m)
{
    start(m);
    put_text(m, PROTO_F_LANG, "python");
    put_text(m, PROTO_F_ENTRY, "main.py");
}

static int decode(const struct message *m, struct run *run)
{
    struct err err = {0};
    int r = run_decode(m->data, m->w.len, run, &err);

    assert_int_equal(r, -err.code);
    return r;
}

/* The expected -errno of a message; the run is finished. */
static void expect(const struct message *m, int result)
{
    struct run run;

    assert_int_equal(decode(m, &run), result);
    run_finish(&run);
}

static void test_everything(void **state)
{
    struct message m;
    struct run run;

    (void)state;
    start(&m);
    put_text(&m, PROTO_F_LANG, "bash");
    put_number(&m, PROTO_F_MODE, PROTO_MODE_SCRIPT, 1);
    put_text(&m, PROTO_F_ENTRY, "scripts/x y.sh");
    put_text(&m, PROTO_F_ARG, "one");
    put_text(&m, PROTO_F_ARG, "");
    put_text(&m, PROTO_F_ARG, "three = 3");
    put_text(&m, PROTO_F_ENV, "A=b=c");
    put_text(&m, PROTO_F_ENV, "EMPTY=");
    put_number(&m, PROTO_F_TIMEOUT_MS, 1500, 8);
    put_number(&m, PROTO_F_MEMORY_BYTES, 64u << 20, 8);
    put_number(&m, PROTO_F_PIDS_MAX, 7, 4);
    put_number(&m, PROTO_F_LOG_BYTES, 0, 8);
    put_number(&m, PROTO_F_FILES_MAX, 3, 4);
    put_number(&m, PROTO_F_FILES_BYTES, 1ull << 40, 8);
    put_number(&m, PROTO_F_OUTPUT_BYTES, 9, 8);
    put_text(&m, PROTO_F_INSTRUCTIONS, "do\nthis");
    put_text(&m, PROTO_F_SKILL_NAME, "name");
    put_text(&m, 999, "from a later version");
    assert_int_equal(decode(&m, &run), 0);
    assert_int_equal(run.lang, RUN_LANG_BASH);
    assert_int_equal(run.mode, PROTO_MODE_SCRIPT);
    assert_string_equal(run.entry, "scripts/x y.sh");
    assert_int_equal(run.args.count, 3);
    assert_string_equal(run.args.items[1], "");
    assert_string_equal(run.args.items[2], "three = 3");
    assert_null(run.args.items[3]);
    assert_int_equal(run.env.count, 2);
    assert_string_equal(run.env.items[0], "A=b=c");
    assert_int_equal(run.timeout_ms, 1500);
    assert_int_equal(run.memory_bytes, 64u << 20);
    assert_int_equal(run.pids_max, 7);
    assert_int_equal(run.log_bytes, 0);
    assert_int_equal(run.files_max, 3);
    assert_true(run.files_bytes == 1ull << 40);
    assert_int_equal(run.output_bytes, 9);
    assert_string_equal(run.instructions, "do\nthis");
    assert_string_equal(run.skill_name, "name");
    run_finish(&run);
    assert_null(run.entry);
}

static void test_defaults(void **state)
{
    struct message m;
    struct run run;

    (void)state;
    put_least(&m);
    assert_int_equal(decode(&m, &run), 0);
    assert_int_equal(run.mode, PROTO_MODE_ENTRY);
    assert_int_equal(run.timeout_ms, 120000);
    assert_int_equal(run.memory_bytes, 256u << 20);
    assert_int_equal(run.pids_max, 128);
    assert_int_equal(run.files_max, 10000);
    assert_null(run.instructions);
    run_finish(&run);
}

/* Cut anywhere, the message is refused, unless the cut falls between fields. */
static void test_every_truncation(void **state)
{
    struct message m;
    size_t least, middle;

    (void)state;
    put_least(&m);
    least = m.w.len;
    put_text(&m, PROTO_F_ARG, "argument");
    middle = m.w.len;
    put_number(&m, PROTO_F_TIMEOUT_MS, 1, 8);
    for (size_t len = 0; len < m.w.len; len++) {
        /* A copy of its own, so that a sanitizer sees a read past the end. */
        uint8_t *copy = malloc(len + 1);
        struct run run;
        int r;

        assert_non_null(copy);
        memcpy(copy, m.data, len);
        r = run_decode(copy, len, &run, NULL);
        assert_int_equal(r == 0, len == least || len == middle);
        run_finish(&run);
        free(copy);
    }
}

static void test_paths(void **state)
{
    static const struct {
        const char *entry;
        int result;
    } cases[] = {
        {"a/b/c.py", 0},          {"./a", 0},      {"..a/b..", 0},    {"", -EINVAL},
        {"/etc/passwd", -EINVAL}, {"..", -EINVAL}, {"../x", -EINVAL}, {"a/../../x", -EINVAL},
        {"a/..", -EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct message m;

        start(&m);
        put_text(&m, PROTO_F_LANG, "python");
        put_text(&m, PROTO_F_ENTRY, cases[i].entry);
        expect(&m, cases[i].result);
    }
}

static void test_refused_fields(void **state)
{
    static const struct {
        uint16_t tag;
        const char *value;
        size_t len;
    } cases[] = {
        {PROTO_F_LANG, "perl", 4},
        {PROTO_F_ENTRY, "a\0b", 3},
        {PROTO_F_ARG, "a\0b", 3},
        {PROTO_F_ENV, "A=\0", 3},
        {PROTO_F_ENV, "NOVALUE", 7},
        {PROTO_F_ENV, "=x", 2},
        {PROTO_F_ENV, "", 0},
        {PROTO_F_MODE, "\3", 1},
        {PROTO_F_MODE, "\0\0", 2},
        {PROTO_F_TIMEOUT_MS, "\1\0\0\0", 4},
        {PROTO_F_TIMEOUT_MS, "\0\0\0\0\0\0\0\0", 8},
        {PROTO_F_TIMEOUT_MS, "\xff\xff\xff\xff\xff\xff\xff\xff", 8},
        {PROTO_F_MEMORY_BYTES, "\0\0\0\0\0\0\0\0", 8},
        {PROTO_F_PIDS_MAX, "\0\0\0\0", 4},
        {PROTO_F_PIDS_MAX, "\1\0\0\0\0", 5},
        {PROTO_F_SKILL_NAME, "\0", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct message m;

        start(&m);
        if (cases[i].tag != PROTO_F_LANG)
            put_text(&m, PROTO_F_LANG, "python");
        if (cases[i].tag != PROTO_F_ENTRY)
            put_text(&m, PROTO_F_ENTRY, "main.py");
        put(&m, cases[i].tag, cases[i].value, cases[i].len);
        expect(&m, -EINVAL);
    }
}

static void test_refused_forms(void **state)
{
    struct message m;

    (void)state;
    start(&m);
    expect(&m, -EPROTO);
    put_text(&m, PROTO_F_LANG, "python");
    expect(&m, -EPROTO);

    put_least(&m);
    put_text(&m, PROTO_F_ENTRY, "again.py");
    expect(&m, -EPROTO);

    put_least(&m);
    bytes_put_u16(&m.w, PROTO_F_ARG);
    bytes_put_u16(&m.w, 1);
    bytes_put_u32(&m.w, 0);
    expect(&m, -EPROTO);

    put_least(&m);
    bytes_put_u16(&m.w, 500);
    bytes_put_u16(&m.w, 0);
    bytes_put_u32(&m.w, UINT32_MAX);
    expect(&m, -EPROTO);

    start(&m);
    put_text(&m, PROTO_F_LANG, "bash");
    put_text(&m, PROTO_F_ENTRY, "module.name");
    put_number(&m, PROTO_F_MODE, PROTO_MODE_MODULE, 1);
    expect(&m, -EINVAL);
}

static void test_strings_grow(void **state)
{
    struct run_strings list = {0};

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(run_strings_add(&list, "xyz", i % 4), 0);
    assert_int_equal(run_strings_add_env(&list, "NAME", "value"), 0);
    assert_string_equal(list.items[999], "xyz");
    assert_string_equal(list.items[1000], "NAME=value");
    assert_null(list.items[1001]);
    run_strings_finish(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),       cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_truncation), cmocka_unit_test(test_paths),
        cmocka_unit_test(test_refused_fields),   cmocka_unit_test(test_refused_forms),
        cmocka_unit_test(test_strings_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
