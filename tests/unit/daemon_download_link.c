/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that need no key: nobody makes one, changes one or uses one too late. */
#include "api/daemon/routes/download_link.h"

#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ID    "exec_0123456789abcdef0123456789abcdef"
#define OTHER "exec_1123456789abcdef0123456789abcdef"
#define NOW   1700000000u

static const struct download_link mine = {.tenant = "ten_x", .id = ID};

static void good_until_its_time(void **state)
{
    struct download_links links, after_restart;
    char name[DOWNLOAD_LINK_NAME_SIZE];
    struct download_link link;

    (void)state;
    assert_int_equal(download_links_init(&links, NULL), 0);
    assert_int_equal(download_links_init(&after_restart, NULL), 0);
    assert_int_equal(download_links_name(&links, &mine, NOW + 5, name), 0);
    assert_true(download_links_check(&links, name, NOW, &link));
    assert_string_equal(link.id, ID);
    assert_string_equal(link.tenant, "ten_x");
    assert_true(download_links_check(&links, name, NOW + 4, &link));
    assert_false(download_links_check(&links, name, NOW + 5, &link));
    assert_false(download_links_check(&after_restart, name, NOW, &link));
}

/* Nodes of one cluster have one secret, and those of another one another. */
static void a_cluster_has_one_secret(void **state)
{
    static const char mark[] = "0123456789abcdef0123456789abcdef";
    struct download_links own, other, here, there;
    char name[DOWNLOAD_LINK_NAME_SIZE];
    struct download_link link;

    (void)state;
    assert_int_equal(download_links_init(&own, NULL), 0);
    assert_int_equal(download_links_init(&other, NULL), 0);
    assert_int_equal(download_links_of(&own, mark, &here), 0);
    assert_int_equal(download_links_of(&other, mark, &there), 0);
    assert_int_equal(download_links_name(&here, &mine, NOW + 5, name), 0);
    assert_true(download_links_check(&there, name, NOW, &link));
    assert_string_equal(link.id, ID);
    assert_false(download_links_check(&own, name, NOW, &link));
    assert_int_equal(download_links_of(&own, "1123456789abcdef0123456789abcdef", &there), 0);
    assert_false(download_links_check(&there, name, NOW, &link));
    /* Without one it is that of the daemon. */
    assert_int_equal(download_links_of(&own, "", &here), 0);
    assert_int_equal(download_links_name(&own, &mine, NOW + 5, name), 0);
    assert_true(download_links_check(&here, name, NOW, &link));
}

static void nothing_may_change(void **state)
{
    struct download_links links;
    char name[DOWNLOAD_LINK_NAME_SIZE], other[DOWNLOAD_LINK_NAME_SIZE];
    struct download_link link;

    (void)state;
    assert_int_equal(download_links_init(&links, NULL), 0);
    assert_int_equal(download_links_name(&links, &mine, NOW + 5, name), 0);
    for (size_t i = 0; i < strlen(name); i++) {
        memcpy(other, name, sizeof(other));
        other[i] = (char)(other[i] == 'a' ? 'b' : 'a');
        assert_false(download_links_check(&links, other, NOW, &link));
    }
    assert_false(download_links_check(&links, "", NOW, &link));
    assert_false(download_links_check(&links, "x", NOW, &link));
    name[strlen(name) - 1] = '\0';
    assert_false(download_links_check(&links, name, NOW, &link));
}

static void present(const struct download_links *links, const char *text, struct buf *out)
{
    buf_clear(out);
    assert_int_equal(
        download_links_present(links, "http://h:1", "ten_x", text, strlen(text), NOW, out), 0);
    assert_non_null(buf_cstr(out));
}

static void only_files_url_is_replaced(void **state)
{
    static const char with[] =
        "{\"execution_id\":\"" ID "\",\"output\":{\"files_url\":\"/v1/executions/" OTHER
        "/files\"},\"files_url\":\"/v1/executions/" ID "/files\",\"logs\":\"x\"}\n";
    static const char without[] = "{\"execution_id\":\"" ID "\",\"files_url\":null}\n";
    struct download_links links;
    struct buf out = buf_init(4096);
    char name[DOWNLOAD_LINK_NAME_SIZE], expected[1024];

    (void)state;
    assert_int_equal(download_links_init(&links, NULL), 0);
    assert_int_equal(download_links_name(&links, &mine, NOW + DOWNLOAD_LINK_SECONDS, name), 0);
    snprintf(expected, sizeof(expected),
             "{\"execution_id\":\"" ID "\",\"output\":{\"files_url\":\"/v1/executions/" OTHER
             "/files\"},\"files_url\":\"http://h:1/v1/downloads/%s\",\"logs\":\"x\"}\n",
             name);
    present(&links, with, &out);
    assert_string_equal((const char *)out.data, expected);
    present(&links, without, &out);
    assert_string_equal((const char *)out.data, without);
    assert_int_equal(download_links_present(&links, "http://h", "ten_x", "{}", 2, NOW, &out),
                     -EINVAL);
    assert_int_equal(download_links_present(&links, "http://h", "ten_x", "[", 1, NOW, &out),
                     -EINVAL);
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_until_its_time),
        cmocka_unit_test(a_cluster_has_one_secret),
        cmocka_unit_test(nothing_may_change),
        cmocka_unit_test(only_files_url_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
