/* SPDX-License-Identifier: Apache-2.0 */
/* What of a run's input files comes with its request, and what is uploaded for it. */
#include "tests/unit/cmocka_all.h"

#include "api/cli/remote.h"
#include "api/cli/run_files.h"
#include "api/client/skillvm.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64];
static struct cli cli;

static void put(const char *name, const void *data, size_t len)
{
    _cleanup_fd_ int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, data, len), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(top, "/tmp/cli-run-files-XXXXXX");
    if (!mkdtemp(top) || chdir(top) < 0)
        return -1;
    /* Nobody listens there: what is uploaded fails. */
    (void)snprintf(cli.socket_path, sizeof(cli.socket_path), "%s/none", top);
    return remote_open(&cli, &cli.client, NULL);
}

static int tear_down(void **state)
{
    char command[96];

    (void)state;
    skillvm_close(cli.client);
    (void)snprintf(command, sizeof(command), "rm -rf %s", top);
    return system(command);
}

static void expect_content(const cJSON *item, const char *name, const void *data, size_t len)
{
    const char *base64 = cJSON_GetStringValue(cJSON_GetObjectItem(item, "base64"));
    _cleanup_buf_ struct buf content = buf_init(1 << 20);

    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(item, "name")), name);
    assert_non_null(base64);
    assert_int_equal(buf_append(&content, base64, strlen(base64)), 0);
    assert_int_equal(base64_decode(&content), 0);
    assert_int_equal(content.len, len);
    assert_memory_equal(content.data, data, len);
}

static int send(const char *const arguments[], const char *input, cJSON **ret)
{
    struct run_files files = {0};
    struct err err = {0};
    cJSON *request = cJSON_CreateObject();
    int r = 0;

    if (input)
        cJSON_AddRawToObject(request, "input", input);
    for (size_t i = 0; arguments[i]; i++)
        assert_int_equal(run_files_add(&files, arguments[i], &err), 0);
    r = run_files_send(&files, &cli, request, &err);
    run_files_finish(&files, NULL);
    if (r == 0 && ret)
        *ret = request;
    else
        cJSON_Delete(request);
    return r;
}

static void small_ones_come_with_the_request(void **state)
{
    static const char *const arguments[] = {"text", "b=binary", "empty", "dir", NULL};
    static const char binary[] = "\0\xff\n\"";
    cJSON *request = NULL, *files;

    (void)state;
    put("text", "a,b\n", 4);
    put("binary", binary, 4);
    put("empty", "", 0);
    assert_int_equal(mkdir("dir", 0700), 0);
    put("dir/x", "x", 1);
    assert_int_equal(send(arguments, "{}", &request), 0);
    files = cJSON_GetObjectItem(request, "files");
    assert_int_equal(cJSON_GetArraySize(files), 4);
    expect_content(cJSON_GetArrayItem(files, 0), "text", "a,b\n", 4);
    expect_content(cJSON_GetArrayItem(files, 1), "b", binary, 4);
    expect_content(cJSON_GetArrayItem(files, 2), "empty", "", 0);
    expect_content(cJSON_GetArrayItem(files, 3), "dir/x", "x", 1);
    cJSON_Delete(request);
}

static void what_is_large_is_uploaded(void **state)
{
    static const char *const one[] = {"one", NULL}, *const many[] = {"dir", NULL};
    static char data[49153], input[(8 << 20) + 3];
    char name[16];

    (void)state;
    put("one", data, sizeof(data) - 1);
    assert_int_equal(send(one, NULL, NULL), 0);
    put("one", data, sizeof(data));
    assert_int_equal(send(one, NULL, NULL), -ENOENT);

    /* And what there is no room for: in sum, or beside an input. */
    put("one", "x", 1);
    memset(input, 'x', sizeof(input) - 1);
    assert_int_equal(send(one, input, NULL), -ENOENT);
    for (unsigned i = 0; i < 128; i++) {
        (void)snprintf(name, sizeof(name), "dir/%u", i);
        put(name, data, sizeof(data) - 1);
    }
    assert_int_equal(send(many, NULL, NULL), -ENOENT);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(send(many, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones_come_with_the_request),
        cmocka_unit_test(what_is_large_is_uploaded),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
