/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tenant removed counts against its storage for as long as something reads it: the disk
 * has it until then. Each time what is as large finds no room, and does when that is over.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tenants_world.h"

#include "base/fd.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect
#define BYTES                                                                                  \
    (800u << 10) /* of what is removed: more than a socket takes, and over half of:            \
                  */
#define LIMIT "\"storage_bytes\":1048576"

static struct world w;

static int start(void **state)
{
    (void)state;
    begin(&w, "1", "0");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    end(&w);
    return 0;
}

static struct answer upload(void)
{
    static char content[BYTES];

    return harness_request(&w.h, "POST", "/v1/files?name=x", w.a.headers, content, BYTES);
}

static bool finds_room(void)
{
    struct answer a = upload();
    bool found = a.status == 201;

    answer_finish(&a);
    return found;
}

/* Path to a file that is there now. */
static void upload_one(char id[ID_SIZE], char path[64])
{
    struct answer a = upload();

    assert_int_equal(a.status, 201);
    answer_text(&a, "id", id, ID_SIZE);
    answer_finish(&a);
    snprintf(path, 64, "/v1/files/%s", id);
}

static void what_is_downloaded_counts(void **state)
{
    char id[ID_SIZE], path[64], head[512];
    struct pollfd pfd = {.events = POLLIN};

    (void)state;
    set_limits(&w, &w.a, LIMIT);
    upload_one(id, path);
    pfd.fd = harness_connect(&w.h);
    snprintf(head, sizeof(head), "GET %s/download HTTP/1.1\r\nHost: x\r\n%s\r\n", path,
             w.a.headers);
    assert_int_equal(fd_write_full(pfd.fd, head, strlen(head)), 0);
    assert_int_equal(poll(&pfd, 1, 60000), 1);
    expect(as(&w, &w.a, "DELETE", path, ""), 204, "");
    expect(upload(), 413, "storage_bytes");
    close(pfd.fd);
    harness_until(finds_room());
}

/* One that waits for the only slot; ids[0] has it. */
static void submit_waiting(const char *json, char ids[2][ID_SIZE])
{
    submit(&w, &w.b, ASYNC("ticks", ""), ids[0]);
    wait_status(&w, &w.b, ids[0], "running");
    submit(&w, &w.a, json, ids[1]);
}

static void end_both(char ids[2][ID_SIZE])
{
    expect(cancel(&w, &w.a, ids[1]), 202, "");
    expect(cancel(&w, &w.b, ids[0]), 202, "");
}

static void what_an_execution_waits_with_counts(void **state)
{
    char id[ID_SIZE], path[64], json[160], ids[2][ID_SIZE];

    (void)state;
    set_limits(&w, &w.a, LIMIT);
    upload_one(id, path);
    /* Twice the same counts once. */
    snprintf(json, sizeof(json),
             "{\"skill\":\"demo\",\"async\":true,\"files\":[\"%s\","
             "{\"id\":\"%s\",\"path\":\"y\"}]}",
             id, id);
    submit_waiting(json, ids);
    expect(as(&w, &w.a, "DELETE", path, ""), 204, "");
    expect(upload(), 413, "storage_bytes");
    end_both(ids);
    harness_until(finds_room());
}

static void so_does_its_skill(void **state)
{
    static char script[BYTES];
    char ids[2][ID_SIZE], headers[sizeof(w.a.headers) + 64];
    size_t len;
    char *tar;

    (void)state;
    memset(script, '#', BYTES - 1);
    tar = harness_skill("large", "1", script, &len);
    snprintf(headers, sizeof(headers), "%.*s\r\nContent-Type: application/octet-stream\r\n",
             (int)strcspn(w.a.headers, "\r"), w.a.headers);
    expect(harness_request(&w.h, "POST", "/v1/skills", headers, tar, len), 201, "large");
    free(tar);
    set_limits(&w, &w.a, LIMIT);
    submit_waiting("{\"skill\":\"large\",\"async\":true}", ids);
    expect(as(&w, &w.a, "DELETE", "/v1/skills/large/1", ""), 204, "");
    expect(upload(), 413, "storage_bytes");
    end_both(ids);
    harness_until(finds_room());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_downloaded_counts, start, stop),
        cmocka_unit_test_setup_teardown(what_an_execution_waits_with_counts, start, stop),
        cmocka_unit_test_setup_teardown(so_does_its_skill, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
