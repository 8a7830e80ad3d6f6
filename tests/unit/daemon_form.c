/* SPDX-License-Identifier: Apache-2.0 */
/* multipart/form-data on its own: the same in pieces of every size. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/http/http_form.h"
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct form {
    char text[512]; /* what was told */
};

static bool note_part(void *ctx, const char *name, const char *file_name, const char *type)
{
    struct form *f = ctx;

    (void)snprintf(f->text + strlen(f->text), sizeof(f->text) - strlen(f->text), "[%s|%s|%s]",
                   name ? name : "-", file_name ? file_name : "-", type ? type : "-");
    return true;
}

static bool note_content(void *ctx, const char *data, size_t len)
{
    struct form *f = ctx;

    assert_true(strlen(f->text) + len < sizeof(f->text));
    strncat(f->text, data, len);
    return true;
}

/* Feeds pieces of so many bytes until one is refused. */
static int feed_form(struct http_form *f, const char *text, size_t len, size_t size)
{
    int r = 0;

    for (size_t at = 0; r == 0 && at < len; at += size)
        r = http_form_feed(f, text + at, at + size < len ? size : len - at);
    return r;
}

#define DISPOSITION "Content-Disposition: form-data; "

/* Forms say the same in pieces of every size. */
static void forms_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        const char *told;
        int result; /* 1: not whole */
    } cases[] = {
        {"--b\r\n" DISPOSITION "name=\"a\"\r\n\r\n1\r\n--b--\r\n", "[a|-|-]1", 0},
        {"--b\r\n" DISPOSITION "filename=\"x;name=y\"; name=a\r\n"
         "content-type: text/x\r\n\r\n\r\n--c\r\n--\r\n--b\r\nX: y\r\n\r\n\r\n--b--more",
         "[a|x;name=y|text/x]\r\n--c\r\n--[-|-|-]", 0},
        {"--b\r\n\r\n1\r\n--b--", "[-|-|-]1", 0},
        {"--b--", "", 0},
        {"--b\r\n" DISPOSITION "name=a\r\n\r\n1\r\n--b", "[a|-|-]1", 1},
        {"", "", 1},
        {"x--b--", "", -EBADMSG},
        {"--c--", "", -EBADMSG},
        {"--b\n\r\n\r\n", "", -EBADMSG},
        {"--bx\r\n\r\n1\r\n--b--", "", -EBADMSG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t len = strlen(cases[i].text);

        for (size_t size = 1; size <= len + 1; size++) {
            struct form told = {.text = ""};
            const struct http_form_events events = {note_part, note_content, &told};
            struct http_form *f =
                http_form_create("multipart/form-data; boundary=\"b\"", &events);
            int r;

            assert_non_null(f);
            r = feed_form(f, cases[i].text, len, size);
            if (r == 0 && !http_form_is_whole(f))
                r = 1;
            if (r != cases[i].result || strcmp(told.text, cases[i].told) != 0)
                fail_msg("%s by %zu: %d %s", cases[i].text, size, r, told.text);
            http_form_destroy(f);
        }
    }
}

struct tally {
    size_t parts, bytes;
};

static bool count_part(void *ctx, const char *name, const char *file_name, const char *type)
{
    assert_string_equal(name, "a");
    assert_true(!file_name && !type);
    ((struct tally *)ctx)->parts++;
    return true;
}

static bool count_content(void *ctx, const char *data, size_t len)
{
    assert_non_null(data);
    ((struct tally *)ctx)->bytes += len;
    return true;
}

/* Any number of parts, each of whose headers have a limit, however they come. */
static void forms_have_a_limit(void **state)
{
    static const size_t sizes[] = {1, 7, 4096, 32768};
    const char part[] = "--b\r\n" DISPOSITION "name=a\r\n\r\nxy\r\n";

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct buf text = buf_init(1u << 20);
        struct tally tally = {0};
        const struct http_form_events events = {count_part, count_content, &tally};
        struct http_form *f = http_form_create("multipart/form-data; boundary=b", &events);

        assert_non_null(f);
        for (unsigned n = 0; n < 5000; n++)
            assert_int_equal(buf_append(&text, part, sizeof(part) - 1), 0);
        assert_int_equal(feed_form(f, (const char *)text.data, text.len, sizes[i]), 0);
        assert_int_equal(tally.parts, 5000);
        buf_clear(&text);
        assert_int_equal(buf_append(&text, "--b\r\nX: ", 8), 0);
        for (unsigned n = 0; n < 9000; n++)
            assert_int_equal(buf_append(&text, "a", 1), 0);
        assert_int_equal(buf_append(&text, "\r\n\r\n\r\n--b--", 11), 0);
        assert_int_equal(feed_form(f, (const char *)text.data, text.len, sizes[i]), -EBADMSG);
        assert_true(tally.parts == 5000 && tally.bytes == 10000);
        http_form_destroy(f);
        buf_finish(&text);
    }
}

/* Of parts without content, and behind the last one, only so much is taken. */
static void what_is_around_parts_has_a_limit(void **state)
{
    static const char part[] = "--b\r\n" DISPOSITION "name=a\r\n\r\n\r\n";
    static const char end[] = "--b--";
    struct tally tally = {0};
    const struct http_form_events events = {count_part, count_content, &tally};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct http_form *f = http_form_create("multipart/form-data; boundary=b", &events);
        size_t fed = 0;

        assert_non_null(f);
        if (i == 1)
            assert_int_equal(http_form_feed(f, end, strlen(end)), 0);
        while (fed < (2u << 20) && http_form_feed(f, part, strlen(part)) == 0)
            fed += strlen(part);
        assert_in_range(fed, 1u << 19, 1u << 20);
        http_form_destroy(f);
    }
}

static void forms_need_a_boundary(void **state)
{
    static const char long_one[] =
        "multipart/form-data; boundary=0123456789012345678901234567890"
        "1234567890123456789012345678901234567890";
    static const char *const bad[] = {"multipart/form-data", "multipart/form-data; boundary=",
                                      "multipart/form-data; boundary=\"\"",
                                      "multipart/form-data; xboundary=a", long_one};
    const struct http_form_events events = {note_part, note_content, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(http_form_create(bad[i], &events));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_taken_apart),
        cmocka_unit_test(forms_have_a_limit),
        cmocka_unit_test(what_is_around_parts_has_a_limit),
        cmocka_unit_test(forms_need_a_boundary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
