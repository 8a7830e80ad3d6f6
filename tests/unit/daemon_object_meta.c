/* SPDX-License-Identifier: Apache-2.0 */
/* What the bucket of objects says of one, as it is written and as it is read of a stranger. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/object_meta.h"

#include <errno.h>
#include <string.h>

/* Of no bytes at all. */
#define NAME "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define KEY                                                                                    \
    "M.ZTNiMGM0NDI5OGZjMWMxNDlhZmJmNGM4OTk2ZmI5MjQyN2FlNDFlNDY0OWI5MzRjYTQ5NTk5MWI3ODUyYjg1"   \
    "NQ=="
#define DIGEST "\"digest\":\"SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=\""
#define HEAD   "{\"name\":\"" NAME "\","
#define REST   "\"nuid\":\"abc\",\"size\":300000,\"chunks\":3,"

static void a_key_is_the_name_in_base64url(void **state)
{
    char key[OBJECT_KEY_SIZE];

    (void)state;
    object_meta_key(NAME, key);
    assert_string_equal(key, KEY);
    object_chunks_key("abc", key);
    assert_string_equal(key, "C.abc");
}

static void it_is_written_as_others_read_it(void **state)
{
    static const char text[] =
        HEAD "\"options\":{\"max_chunk_size\":131072},\"bucket\":\"b\","
             "\"nuid\":\"abc\",\"size\":300000,"
             "\"mtime\":\"0001-01-01T00:00:00Z\",\"chunks\":3," DIGEST "}\n";
    const struct object_meta meta = {
        .digest = NAME, .chunks_under = "abc", .size = 300000, .chunks = 3};
    struct object_meta back = {0};
    struct buf written;

    (void)state;
    assert_int_equal(object_meta_write(&meta, "b", &written), 0);
    assert_string_equal(buf_cstr(&written), text);
    assert_int_equal(object_meta_parse(KEY, text, strlen(text), &back), 0);
    assert_memory_equal(&meta, &back, sizeof(meta));
    buf_finish(&written);
}

/* Others write further members, and what a deleted one had is nothing. */
static void what_others_write_is_read(void **state)
{
    static const char more[] =
        HEAD "\"description\":\"x\",\"headers\":{}," REST DIGEST ",\"deleted\":false}";
    static const char deleted[] = HEAD "\"deleted\":true,\"nuid\":\"\",\"size\":0}";
    static const char marked[] = HEAD "\"deleted\":true,\"nuid\":\"abc\",\"size\":0}";
    struct object_meta meta;

    (void)state;
    assert_int_equal(object_meta_parse(KEY, more, strlen(more), &meta), 0);
    assert_int_equal(meta.size, 300000);
    assert_false(meta.is_deleted);
    assert_int_equal(object_meta_parse(KEY, deleted, strlen(deleted), &meta), 0);
    assert_true(meta.is_deleted);
    assert_string_equal(meta.chunks_under, "");
    /* Its chunks may not have gone with it. */
    assert_int_equal(object_meta_parse(KEY, marked, strlen(marked), &meta), 0);
    assert_true(meta.is_deleted);
    assert_string_equal(meta.chunks_under, "abc");
}

static void what_is_none_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        HEAD REST "\"digest\":\"SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFA=\"}",
        HEAD REST "\"digest\":\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=\"}",
        HEAD REST "\"digest\":null}",
        HEAD "\"nuid\":\"a.b\",\"size\":1,\"chunks\":1," DIGEST "}",
        HEAD "\"nuid\":\">\",\"size\":1,\"chunks\":1," DIGEST "}",
        HEAD "\"nuid\":\"\",\"size\":1,\"chunks\":1," DIGEST "}",
        HEAD "\"nuid\":\"a\",\"size\":-1,\"chunks\":1," DIGEST "}",
        HEAD "\"nuid\":\"a\",\"size\":18446744073709551616,\"chunks\":1," DIGEST "}",
        HEAD "\"nuid\":\"a\",\"size\":1," DIGEST "}",
        "{\"name\":\"x\"," REST DIGEST "}",
        HEAD REST DIGEST,
    };
    static const char good[] = HEAD REST DIGEST "}";
    struct object_meta meta = {.size = 7};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(object_meta_parse(KEY, cases[i], strlen(cases[i]), &meta), -EINVAL);
    assert_int_equal(object_meta_parse("M.x", good, strlen(good), &meta), -EINVAL);
    assert_int_equal(object_meta_parse(KEY, NULL, 0, &meta), -EINVAL);
    assert_int_equal(object_meta_parse(KEY, good, OBJECT_META_BYTES_MAX + 1, &meta), -EINVAL);
    assert_int_equal(meta.size, 7);
    assert_int_equal(object_meta_parse(KEY, good, strlen(good), &meta), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_the_name_in_base64url),
        cmocka_unit_test(it_is_written_as_others_read_it),
        cmocka_unit_test(what_others_write_is_read),
        cmocka_unit_test(what_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
