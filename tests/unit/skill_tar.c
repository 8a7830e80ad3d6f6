/* SPDX-License-Identifier: Apache-2.0 */
/* The tar writer and the push reader, against each other and against damage. */
#include "api/skill/tar.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What a reader saw, as text. */
struct seen {
    struct buf text;
    int fail_begin;
};

static int on_begin(void *user, const struct tar_header *header)
{
    struct seen *seen = user;

    if (seen->fail_begin)
        return seen->fail_begin;
    buf_printf(&seen->text, "[%c %s %o %llu %llu%s%s:", (char)header->type, header->path,
               header->mode, (unsigned long long)header->size,
               (unsigned long long)header->mtime_s, header->target ? " -> " : "",
               header->target ? header->target : "");
    return 0;
}

static int on_data(void *user, const uint8_t *data, size_t len)
{
    struct seen *seen = user;

    return buf_append(&seen->text, data, len);
}

static int on_end(void *user)
{
    struct seen *seen = user;

    return buf_append(&seen->text, "]", 1);
}

static const struct tar_ops ops = {on_begin, on_data, on_end};

static void put(struct buf *out, struct tar_header header, const char *content)
{
    static const char zero[TAR_BLOCK];

    header.size = content ? strlen(content) : 0;
    assert_int_equal(tar_put_header(out, &header), 0);
    if (content) {
        buf_append(out, content, header.size);
        buf_append(out, zero, tar_padding(header.size));
    }
}

static void put_end(struct buf *out)
{
    static const char zero[TAR_TRAILER];

    buf_append(out, zero, sizeof(zero));
}

static int read_pieces(const struct buf *tar, size_t piece, struct seen *seen,
                       bool *ret_complete)
{
    struct tar_reader *r = tar_reader_create(&ops, seen);
    struct err err = {0};
    int result = 0;

    for (size_t at = 0; at < tar->len && !result; at += piece) {
        size_t n = tar->len - at < piece ? tar->len - at : piece;
        result = tar_reader_push(r, tar->data + at, n, &err);
    }
    *ret_complete = tar_reader_complete(r);
    tar_reader_destroy(r);
    return result;
}

static void expect(const struct buf *tar, const char *text)
{
    static const size_t pieces[] = {1, 7, 511, 512, 513, 100000};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct seen seen = {.text = buf_init(1 << 20)};
        bool complete;
        assert_int_equal(read_pieces(tar, pieces[i], &seen, &complete), 0);
        assert_true(complete);
        assert_string_equal(buf_cstr(&seen.text), text);
        buf_finish(&seen.text);
    }
}

static void round_trip(void **state)
{
    struct buf tar = buf_init(1 << 20);
    char path[301], text[4096];
    (void)state;

    memset(path, 'p', 300);
    path[300] = '\0';
    put(&tar, (struct tar_header){.path = "a", .type = TAR_FILE, .mode = 0644, .mtime_s = 7},
        "hello");
    put(&tar, (struct tar_header){.path = "d", .type = TAR_DIR, .mode = 0755}, NULL);
    put(&tar, (struct tar_header){.path = "d/empty", .type = TAR_FILE, .mode = 0600}, "");
    put(&tar, (struct tar_header){.path = path, .type = TAR_FILE, .mode = 0755}, "long");
    put(&tar, (struct tar_header){.path = "l", .target = path, .type = TAR_LINK, .mode = 0777},
        NULL);
    put(&tar, (struct tar_header){.path = "\xc3\xa9", .type = TAR_FILE, .mode = 0644}, "x");
    put_end(&tar);
    snprintf(text, sizeof(text),
             "[0 a 644 5 7:hello][5 d 755 0 0:][0 d/empty 600 0 0:][0 %s 755 4 0:long]"
             "[2 l 777 0 0 -> %s:][0 \xc3\xa9 644 1 0:x]",
             path, path);
    expect(&tar, text);
    buf_finish(&tar);
}

static void name_of_99_and_100(void **state)
{
    (void)state;

    for (size_t len = 97; len < 103; len++) {
        struct buf tar = buf_init(1 << 20);
        char path[128], text[256];
        memset(path, 'n', len);
        path[len] = '\0';
        put(&tar, (struct tar_header){.path = path, .type = TAR_FILE, .mode = 0644}, "1");
        put_end(&tar);
        snprintf(text, sizeof(text), "[0 %s 644 1 0:1]", path);
        expect(&tar, text);
        buf_finish(&tar);
    }
}

static void incomplete(void **state)
{
    struct buf tar = buf_init(1 << 20);
    (void)state;

    put(&tar, (struct tar_header){.path = "a", .type = TAR_FILE, .mode = 0644}, "hello");
    put_end(&tar);
    for (size_t len = 1; len < tar.len; len++) {
        struct buf part = tar;
        struct seen seen = {.text = buf_init(1 << 20)};
        bool complete;
        part.len = len;
        assert_int_equal(read_pieces(&part, 64, &seen, &complete), 0);
        if (len < 2 * TAR_BLOCK)
            assert_false(complete);
        buf_finish(&seen.text);
    }
    buf_finish(&tar);
}

static void damaged(void **state)
{
    struct buf tar = buf_init(1 << 20);
    char path[200];
    (void)state;

    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    put(&tar, (struct tar_header){.path = path, .type = TAR_FILE, .mode = 0644}, "hello");
    put_end(&tar);
    /* Any byte of the headers and of the pax records, to several values: no crash, no hang. */
    for (size_t at = 0; at < 3 * TAR_BLOCK; at++) {
        static const uint8_t values[] = {0, ' ', '0', '9', '=', '\n', 0xff};
        uint8_t before = tar.data[at];
        for (size_t i = 0; i < sizeof(values); i++) {
            struct seen seen = {.text = buf_init(1 << 20)};
            bool complete;
            tar.data[at] = values[i];
            int result = read_pieces(&tar, 4096, &seen, &complete);
            assert_true(result == 0 || result == -EPROTO);
            buf_finish(&seen.text);
        }
        tar.data[at] = before;
    }
    buf_finish(&tar);
}

static void op_fails(void **state)
{
    struct buf tar = buf_init(1 << 20);
    struct seen seen = {.text = buf_init(100), .fail_begin = -ENOSPC};
    struct tar_reader *r = tar_reader_create(&ops, &seen);
    (void)state;

    put(&tar, (struct tar_header){.path = "a", .type = TAR_FILE, .mode = 0644}, "hello");
    assert_int_equal(tar_reader_push(r, tar.data, tar.len, NULL), -ENOSPC);
    assert_int_equal(tar_reader_push(r, tar.data, tar.len, NULL), -ENOSPC);
    assert_false(tar_reader_complete(r));
    tar_reader_destroy(r);
    buf_finish(&seen.text);
    buf_finish(&tar);
}

static void refused_headers(void **state)
{
    struct buf tar = buf_init(1 << 20);
    char path[TAR_PATH_MAX + 2];
    (void)state;

    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(tar_put_header(&tar, &(struct tar_header){.path = path, .type = TAR_FILE}),
                     -EINVAL);
    assert_int_equal(tar_put_header(&tar, &(struct tar_header){.path = "", .type = TAR_FILE}),
                     -EINVAL);
    assert_int_equal(
        tar_put_header(&tar,
                       &(struct tar_header){.path = "a", .type = TAR_FILE, .size = 8ull << 30}),
        -EINVAL);
    assert_int_equal(tar.len, 0);
    buf_finish(&tar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(name_of_99_and_100),
        cmocka_unit_test(incomplete), cmocka_unit_test(damaged),
        cmocka_unit_test(op_fails),   cmocka_unit_test(refused_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
