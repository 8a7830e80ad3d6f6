/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that are made, replaced and removed while the daemon runs: who asks from then on finds
 * what there is, and who waits or runs keeps what was chosen.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/image_tables.h"
#include "base/fd.h"
#include "tests/daemon/daemon_harness.h"
#include "tests/unit/fake_built.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define expect  harness_expect
#define PYTHON  "language python 3.11\nstandard json\nprogram bash\n"
#define RELOAD  "/v1/admin/images/reload"
#define MESSAGE "\"message\":\"there is no image \\\""
/* What a run says of its machine's image. */
#define IN(name)   "{\"code\":\"1\",\"image\":\"" name "\",\"env\":{\"FAKE\":\"image\"}}"
#define SAYS(text) "\"logs\":\"" text "\""
#define LATER(name)                                                                            \
    "{\"code\":\"1\",\"async\":true,\"image\":\"" name "\",\"env\":{\"FAKE\":\"image\"}}"
#define HANGS(name)                                                                            \
    "{\"code\":\"1\",\"async\":true,\"image\":\"" name "\",\"env\":{\"FAKE\":\"hang\"}}"
#define RELOADS 8
#define EVENTS  "Accept: text/event-stream\r\nContent-Type: application/json\r\n"
#define TRIES   3000 /* of 20 ms */

static void folder_of(const struct harness *h, char ret[192])
{
    snprintf(ret, 192, "%s/images", h->data);
}

static void make(const struct harness *h, const char *name, const char *content)
{
    char folder[192], file[64];

    folder_of(h, folder);
    snprintf(file, sizeof(file), "%s.manifest", name);
    char path[300];
    snprintf(path, sizeof(path), "data/images/%s", file);
    harness_write(h, path, PYTHON "module numpy\n");
    snprintf(file, sizeof(file), "%s.erofs", name);
    /* Another file, as the builder moves one to its place. */
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    (void)unlink(path);
    fake_built(folder, file, content);
}

static void take_away(const struct harness *h, const char *name)
{
    static const char *const parts[] = {"erofs", "sha256", "manifest"};
    char folder[192], path[300];

    folder_of(h, folder);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s.%s", folder, name, parts[i]);
        assert_int_equal(unlink(path), 0);
    }
}

static void reload(const struct harness *h, const char *part)
{
    expect(harness_request(h, "POST", RELOAD, "", "", 0), 200, part);
}

static int start(void **state)
{
    static const char *const one[] = {"--max-running", "1", NULL};
    struct harness *h = calloc(1, sizeof(*h));
    char path[256];

    *state = h;
    harness_init(h, "boot", "restore");
    /* The installation has python alone. */
    snprintf(path, sizeof(path), "%s/data.erofs", h->dir);
    assert_int_equal(unlink(path), 0);
    harness_write(h, "python.manifest", PYTHON);
    folder_of(h, path);
    assert_int_equal(fd_make_folders(path, 0700, 0700), 0);
    harness_start(h, one);
    harness_wait_ready(h);
    return 0;
}

/* Each begins and ends with the image python alone. */
static int end_each(void **state)
{
    const struct harness *h = *state;
    char command[256], folder[192];

    folder_of(h, folder);
    snprintf(command, sizeof(command), "rm -f '%s'/*", folder);
    assert_int_equal(system(command), 0);
    reload(h, "\"images\":[\"python\"]");
    return 0;
}

static void a_new_one_is_taken_up(void **state)
{
    const struct harness *h = *state;
    static const struct harness_file files[] = {
        {"SKILL.md", "---\nname: tables\ndescription: A skill of a test.\n---\n"},
        {"main.py", "import numpy\n"},
        {NULL, NULL}};

    expect(harness_push_files(h, files), 201, "\"image\":\"python\"");
    expect(harness_run(h, IN("tools")), 400, MESSAGE "tools\\\" here; there is python\"");
    expect(harness_run(h, "{\"skill\":\"tables\"}"), 200, "\"image\":\"python\"");
    make(h, "tools", "restore, first");
    expect(harness_run(h, IN("tools")), 400, MESSAGE "tools\\\" here; there is python\"");
    reload(h, "\"added\":[\"tools\"],\"replaced\":[],\"removed\":[],\"refused\":[]");
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, first"));
    /* What was remembered is not so any more. */
    expect(harness_run(h, "{\"skill\":\"tables\"}"), 200,
           "\"image\":\"tools\",\"image_reason\":\"smallest of 2 that has numpy\"");
    expect(harness_get(h, "/v1/skills/tables/latest/inspect"), 200, "\"image\":\"tools\"");
    reload(h, "\"images\":[\"python\",\"tools\"],\"added\":[]");
    take_away(h, "tools");
    reload(h, "\"images\":[\"python\"],\"added\":[],\"replaced\":[],\"removed\":[\"tools\"]");
    expect(harness_run(h, IN("tools")), 400, MESSAGE "tools\\\" here; there is python\"");
    expect(harness_run(h, "{\"skill\":\"tables\"}"), 200, "\"image\":\"python\"");
}

/* Another library may take other arguments, under the same names of skill and image. */
static void a_tool_is_described_anew_in_one_that_replaced(void **state)
{
    const struct harness *h = *state;
    static const struct harness_file files[] = {
        {"SKILL.md", "---\nname: described\ndescription: A skill of a test.\n---\n"},
        {"main.py", "import argparse\nimport numpy\n#probe:@image\n"},
        {NULL, NULL}};

    make(h, "tools", "restore, first");
    reload(h, "\"added\":[\"tools\"]");
    expect(harness_push_files(h, files), 201, "\"image\":\"tools\"");
    expect(harness_get(h, "/v1/tools"), 200, "A skill of a test.\\n\\nrestore, first");
    make(h, "tools", "restore, second");
    reload(h, "\"replaced\":[\"tools\"]");
    expect(harness_get(h, "/v1/tools"), 200, "A skill of a test.\\n\\nrestore, second");
}

static void one_that_is_damaged_is_refused(void **state)
{
    const struct harness *h = *state;

    make(h, "tools", "restore, first");
    reload(h, "\"added\":[\"tools\"]");
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, first"));
    make(h, "tools", "restore, second");
    make(h, "other", "restore");
    char path[300];
    snprintf(path, sizeof(path), "%s/images/tools.erofs", h->data);
    assert_int_equal(unlink(path), 0);
    harness_write(h, "data/images/tools.erofs", "restore, secon");
    harness_write(h, "data/images/none.erofs", "restore");
    struct answer a = harness_request(h, "POST", RELOAD, "", "", 0);
    assert_true(answer_has(&a, "\"images\":[\"python\",\"other\",\"tools\"]"));
    assert_true(answer_has(&a, "\"added\":[\"other\"]"));
    assert_non_null(strstr(a.body, "tools.erofs is not what was built"));
    assert_non_null(strstr(a.body, "none.erofs has no checksum"));
    expect(a, 200, "\"replaced\":[]");
    /* What was there stays, for who asks now too. */
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, first"));
    expect(harness_run(h, IN("other")), 200, SAYS("restore"));
    expect(harness_run(h, IN("none")), 400, MESSAGE "none\\\" here; there is python, other");
    make(h, "tools", "restore, second");
    reload(h, "\"replaced\":[\"tools\"]");
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, second"));
}

/* A list that is none does not take the image away from who had it. */
static void one_whose_manifest_is_none_is_refused(void **state)
{
    const struct harness *h = *state;

    make(h, "tools", "restore, first");
    reload(h, "\"added\":[\"tools\"]");
    harness_write(h, "data/images/tools.manifest", "language python none\n");
    struct answer a = harness_request(h, "POST", RELOAD, "", "", 0);
    assert_non_null(strstr(a.body, "\"refused\":[{\"name\":\"tools\""));
    expect(a, 200, "\"images\":[\"python\",\"tools\"],\"removed\":[]");
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, first"));
}

/* The path of an execution that was accepted. */
static void submit(const struct harness *h, const char *json, char ret_path[64])
{
    struct answer a = harness_run(h, json);

    assert_int_equal(a.status, 202);
    answer_execution_path(&a, ret_path, 64);
    answer_finish(&a);
}

static void wait_end(const struct harness *h, const char *path, const char *part)
{
    for (int i = 0; i < TRIES; i++) {
        struct answer a = harness_get(h, path);
        bool ended =
            answer_has(&a, "\"status\":\"success\"") || answer_has(&a, "\"status\":\"failed\"");

        if (ended) {
            expect(a, 200, part);
            return;
        }
        answer_finish(&a);
        usleep(20000);
    }
    fail_msg("%s does not end", path);
}

/* What nobody uses any more goes a moment later. */
static void wait_snapshots(const struct harness *h, unsigned n)
{
    harness_until(harness_count_files(h, "snapshots") == n);
}

/* The one that waits has had no machine of its image yet, nor has anybody. */
static void who_waits_or_runs_keeps_what_was_chosen(void **state)
{
    const struct harness *h = *state;
    char running[64], waiting[64], later[64];

    make(h, "tools", "restore, first");
    make(h, "gone", "restore, gone");
    reload(h, "\"added\":[\"gone\",\"tools\"]");
    submit(h, HANGS("tools"), running);
    harness_wait_executions(h, "running", 1);
    submit(h, LATER("gone"), waiting);
    submit(h, LATER("tools"), later);
    take_away(h, "gone");
    make(h, "tools", "restore, second");
    reload(h, "\"replaced\":[\"tools\"],\"removed\":[\"gone\"]");
    expect(harness_run(h, IN("gone")), 400, MESSAGE "gone\\\" here; there is python, tools");
    expect(harness_get(h, waiting), 200, "\"status\":\"accepted\",\"image\":\"gone\"");
    expect(harness_get(h, running), 200, "\"status\":\"running\",\"image\":\"tools\"");
    expect(harness_request(h, "DELETE", running, "", "", 0), 202, "");
    wait_end(h, waiting, "\"image\":\"gone\"," SAYS("restore, gone"));
    wait_end(h, later, "\"image\":\"tools\"," SAYS("restore, first"));
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, second"));
    /* And nothing is kept of those: python's snapshot is there, and that of tools. */
    wait_snapshots(h, 2);
}

/* A reader of the events of one that has the image tools. */
static int read_slowly(const struct harness *h)
{
    static const char json[] =
        "{\"code\":\"1\",\"image\":\"tools\",\"env\":{\"FAKE\":\"flood\"}}";
    const int fd = harness_send(h, "POST", "/v1/executions", EVENTS, json, strlen(json));
    char first;

    /* It was accepted, and has its image. */
    assert_int_equal(recv(fd, &first, 1, 0), 1);
    return fd;
}

static bool is_open(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLRDHUP};

    return poll(&pfd, 1, 0) == 0;
}

static bool reloads(const struct harness *h)
{
    struct answer a = harness_request(h, "POST", RELOAD, "", "", 0);
    const int status = a.status;

    answer_finish(&a);
    return status == 200;
}

/* Of what has ended a reader of its events has the log and the result, and no images. */
static void who_reads_slowly_keeps_no_images(void **state)
{
    const struct harness *h = *state;
    int fds[IMAGE_TABLES_MAX];

    for (unsigned i = 0; i < IMAGE_TABLES_MAX; i++) {
        char content[32];

        snprintf(content, sizeof(content), "restore, %u", i);
        make(h, "tools", content);
        harness_until(reloads(h));
        fds[i] = read_slowly(h);
    }
    harness_until(reloads(h));
    for (unsigned i = 0; i < IMAGE_TABLES_MAX; i++) {
        assert_true(is_open(fds[i]));
        close(fds[i]);
    }
    /* The last of them may still wait, and need theirs. */
    harness_wait_executions(h, "accepted", 0);
    harness_wait_executions(h, "running", 0);
    harness_until(reloads(h));
}

/* One takes it up, and the others find it there, whatever runs meanwhile. */
static void many_may_reload_at_once(void **state)
{
    static const char request[] = "POST " RELOAD " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                  "Content-Length: 0\r\n\r\n";
    const struct harness *h = *state;
    char large[1u << 16];
    unsigned added = 0;
    int fds[RELOADS];

    memset(large, ' ', sizeof(large) - 1);
    memcpy(large, "restore,", 8);
    large[sizeof(large) - 1] = '\0';
    make(h, "tools", "restore, first");
    reload(h, "\"added\":[\"tools\"]");
    for (unsigned round = 0; round < 4; round++) {
        make(h, "large", large);
        for (unsigned i = 0; i < RELOADS; i++) {
            fds[i] = harness_connect(h);
            assert_true(fds[i] >= 0);
            assert_int_equal(fd_write_full(fds[i], request, strlen(request)), 0);
        }
        expect(harness_run(h, IN("tools")), 200, SAYS("restore, first"));
        for (unsigned i = 0; i < RELOADS; i++) {
            struct answer a = harness_read_answer(fds[i]);

            added += answer_has(&a, "\"added\":[\"large\"]");
            expect(a, 200, "\"images\":[\"python\",\"large\",\"tools\"]");
        }
        assert_int_equal(added, round + 1);
        take_away(h, "large");
        reload(h, "\"removed\":[\"large\"]");
    }
}

static void a_signal_does_the_same(void **state)
{
    const struct harness *h = *state;
    int status = 0;

    make(h, "tools", "restore, first");
    assert_int_equal(kill(h->pid, SIGHUP), 0);
    for (int i = 0; i < TRIES && status != 200; i++) {
        struct answer a = harness_run(h, IN("tools"));

        status = a.status;
        answer_finish(&a);
        usleep(20000);
    }
    assert_int_equal(status, 200);
    reload(h, "\"images\":[\"python\",\"tools\"],\"added\":[],\"replaced\":[]");
}

/* It finds all of it again, and needs to make nothing anew. */
static void a_start_finds_the_same(void **state)
{
    static const char *const one[] = {"--max-running", "1", NULL};
    struct harness *h = *state;

    make(h, "tools", "restore, first");
    reload(h, "\"added\":[\"tools\"]");
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, first"));
    wait_snapshots(h, 2);
    assert_int_equal(harness_stop(h, SIGTERM), 0);
    harness_start(h, one);
    harness_wait_ready(h);
    expect(harness_run(h, IN("tools")), 200, SAYS("restore, first"));
    assert_true(harness_metrics_have(h, "\nskillvm_snapshots_made_total{result=\"ok\"} 0\n"));
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, NULL, end_each)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_new_one_is_taken_up),
        EACH(a_tool_is_described_anew_in_one_that_replaced),
        EACH(one_that_is_damaged_is_refused),
        EACH(one_whose_manifest_is_none_is_refused),
        EACH(who_waits_or_runs_keeps_what_was_chosen),
        EACH(who_reads_slowly_keeps_no_images),
        EACH(many_may_reload_at_once),
        EACH(a_signal_does_the_same),
        EACH(a_start_finds_the_same),
    };

    return cmocka_run_group_tests(tests, start, harness_teardown);
}
