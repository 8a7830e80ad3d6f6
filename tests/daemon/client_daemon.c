/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of libskillvm: many threads, restarts of the daemon, what is large. */
#include "tests/unit/cmocka_all.h"

#include "api/client/skillvm.h"
#include "base/fd.h"
#include "tests/daemon/daemon_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS  12

static struct harness harness;
static struct skillvm *client;

static int start(void **state)
{
    (void)state;
    harness_init(&harness, "boot", "restore");
    harness_start(&harness, NULL);
    harness_wait_ready(&harness);
    assert_int_equal(harness_push(&harness, "demo", "1.0", "print(1)"), 201);
    return skillvm_open(harness.socket, NULL, &client, NULL);
}

static int finish(void **state)
{
    int status = harness_stop(&harness, SIGTERM);

    (void)state;
    skillvm_close(client);
    harness_finish(&harness);
    return status;
}

static int keep_id(void *ctx, const char *execution_id, const char *status)
{
    (void)status;
    (void)snprintf(ctx, 64, "%s", execution_id);
    return 0;
}

/* Runs, and looks for its own execution, again and again. How often something was wrong. */
static void *work(void *arg)
{
    char id[64] = "";
    struct skillvm_events events = {.on_status = keep_id, .ctx = id};
    uintptr_t wrong = 0;

    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct skillvm_error error = {0};
        char *json = NULL;

        if (skillvm_run(client, "{\"skill\":\"demo\"}", -1, &events, &json, &error) < 0 ||
            !strstr(json, id))
            wrong++;
        skillvm_free(json);
        json = NULL;
        if (skillvm_get_execution(client, id, &json, &error) < 0 || !strstr(json, id))
            wrong++;
        skillvm_free(json);
        if (skillvm_request(client, "GET", "/v1/nothing", NULL, NULL, &error) == 0 ||
            error.http_status != 404)
            wrong++;
    }
    return (void *)wrong;
}

static void many_threads(void **state)
{
    pthread_t threads[THREADS];
    void *wrong;

    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

/* A connection that the handle kept is gone; the next request makes another. */
static void restarted(void **state)
{
    struct skillvm_error error;
    char *json = NULL;

    (void)state;
    assert_int_equal(skillvm_ready(client, &error), 0);
    assert_int_equal(harness_stop(&harness, SIGTERM), 0);
    assert_int_equal(skillvm_ready(client, &error), -ENOENT);
    harness_start(&harness, NULL);
    harness_wait_ready(&harness);
    if (skillvm_run(client, "{\"skill\":\"demo\"}", -1, NULL, &json, &error) < 0)
        fail_msg("%s", error.message);
    assert_non_null(strstr(json, "success"));
    skillvm_free(json);
}

static void killed(void **state)
{
    struct skillvm_error error;

    (void)state;
    assert_int_equal(skillvm_ready(client, &error), 0);
    (void)harness_stop(&harness, SIGKILL);
    assert_int_equal(skillvm_ready(client, &error), -ECONNREFUSED);
    harness_start(&harness, NULL);
    harness_wait_ready(&harness);
    assert_int_equal(skillvm_ready(client, &error), 0);
}

/* How large a skill may be is the daemon's to say, and an operator's to set. */
static void large_skills_are_sent(void **state)
{
    char path[128];
    struct skillvm_error error;
    _cleanup_fd_ int made = -1, fd = -1;
    char *json = NULL;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/large.zip", harness.dir);
    made = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_return_code(ftruncate(made, 289 << 20), errno);
    if (skillvm_open_skill(path, &fd, &error) < 0)
        fail_msg("%s", error.message);
    assert_true(skillvm_run(client, "{}", fd, NULL, &json, &error) < 0);
    assert_int_equal(error.http_status, 413);
    assert_non_null(strstr(error.message, "288 MiB"));
    /* More than any setting allows. */
    fd_close(&fd);
    assert_return_code(ftruncate(made, 513 << 20), errno);
    assert_int_equal(skillvm_open_skill(path, &fd, &error), -EFBIG);
    assert_return_code(unlink(path), errno);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads),
        cmocka_unit_test(restarted),
        cmocka_unit_test(killed),
        cmocka_unit_test(large_skills_are_sent),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
