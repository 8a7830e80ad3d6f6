/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored is looked at by turns, and one tenant never has them all. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/callers/uses.h"
#include "api/daemon/http/http_internal.h"
#include "api/daemon/routes/lookup.h"
#include "api/skill/artifacts.h"
#include "base/buf.h"
#include "base/fd.h"

#include "api/skill/tar.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_BYTES (1u << 20)

/* Tenant a has all turns that it may have, and waits in vain for one more. */
#define TAKEN 3u

struct world {
    struct daemon daemon;
    struct turn taken[TAKEN];
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    if (!w)
        return -1;
    *state = w;
    w->daemon.held = held_create(NULL, NULL);
    w->daemon.uses = uses_create(w->daemon.held);
    if (!w->daemon.held || !w->daemon.uses || turns_create(&w->daemon) < 0)
        return -1;
    for (size_t i = 0; i < TAKEN; i++) {
        if (turn_take(&w->taken[i], &w->daemon, TURN_LOOK, "a", NULL) < 0)
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    for (size_t i = 0; i < TAKEN; i++)
        turn_end(&w->taken[i]);
    turns_destroy(&w->daemon);
    uses_destroy(w->daemon.uses);
    held_destroy(w->daemon.held);
    free(w);
    return 0;
}

/* An archive of what an execution left: a file "here". */
static int make_archive(void)
{
    static const struct artifacts_limits limits = {.files = 9,
                                                   .folders = 9,
                                                   .names_bytes = 999,
                                                   .list_bytes = 999,
                                                   .bytes = 999,
                                                   .file_bytes = 999};
    const struct tar_header header = {
        .path = "here", .type = TAR_FILE, .mode = 0644, .size = 2};
    static const char end[TAR_TRAILER];
    struct buf tar = buf_init(1 << 16);
    int fd = memfd_create("files", MFD_CLOEXEC);
    struct artifacts *a =
        artifacts_create(fd, memfd_create("spool", MFD_CLOEXEC), &limits, NULL);

    assert_non_null(a);
    assert_int_equal(tar_put_header(&tar, &header), 0);
    assert_int_equal(buf_append(&tar, "hi", 2), 0);
    assert_int_equal(buf_append(&tar, end, tar_padding(2)), 0);
    assert_int_equal(buf_append(&tar, end, sizeof(end)), 0);
    assert_int_equal(artifacts_push(a, tar.data, tar.len, NULL), 0);
    assert_int_equal(artifacts_end(a, NULL), 0);
    artifacts_destroy(a);
    buf_finish(&tar);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static size_t count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Asks for a file of it; what is found is given back at once. As of daemon_reply_file. */
static int search(struct world *w, const char *tenant, const char *path, struct err *err)
{
    struct http_reply reply = http_reply_init();
    int r = daemon_reply_file(&w->daemon, tenant, &reply, make_archive(), path, err);

    assert_int_equal(reply.status, r == 0 ? 200 : 0);
    if (r < 0)
        return r;
    assert_int_equal(reply.stream_bytes, 2);
    reply.release(reply.stream_ctx);
    return 0;
}

static void a_file_is_looked_for_by_turns(void **state)
{
    struct world *w = *state;
    size_t n = count_open();
    struct err err = {0};

    assert_int_equal(search(w, "a", "here", &err), -EBUSY);
    assert_non_null(strstr(err.message, "too many files and results are being looked at"));
    assert_int_equal(search(w, "b", "none", &err), -ENOENT);
    /* Nobody keeps one while what was found is sent. */
    assert_int_equal(search(w, "b", "here", &err), 0);
    assert_int_equal(search(w, "b", "here", &err), 0);
    assert_int_equal(count_open(), n);
}

/* Looks at a result of this tenant's: which status says why not, or 0. */
static unsigned look(struct world *w, const char *tenant, uint64_t bytes)
{
    static const struct http_config config;
    struct http_exchange x = {.config = &config, .reply = http_reply_init()};
    struct registry_execution row = {.result_bytes = bytes, .result = strdup("{}")};
    _cleanup_turn_ struct turn turn = {0};
    bool is_there;

    snprintf(row.tenant, sizeof(row.tenant), "%s", tenant);
    is_there = lookup_result(&w->daemon, &x.request, &row, &turn, &x.reply);
    assert_int_equal(is_there, x.reply.status == 0);
    assert_int_equal(turn.gate != NULL, is_there && bytes >= LARGE_BYTES);
    registry_execution_finish(&row);
    buf_finish(&x.reply.body);
    return x.reply.status;
}

static void a_large_result_is_looked_at_by_turns(void **state)
{
    struct world *w = *state;

    assert_int_equal(look(w, "a", LARGE_BYTES), 429);
    assert_int_equal(look(w, "a", 2), 0);
    assert_int_equal(look(w, "b", LARGE_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_looked_for_by_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_large_result_is_looked_at_by_turns, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
