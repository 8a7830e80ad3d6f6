/* SPDX-License-Identifier: Apache-2.0 */
/* The registry, the object store, spools, and the lock of the data folder. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/recover.h"
#include "api/daemon/http/listener.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/spool.h"
#include "api/daemon/store/store.h"
#include "base/fd.h"
#include "tests/unit/registry_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_1     "exec_00000000000000000000000000000001"
#define ID_2     "exec_00000000000000000000000000000002"

static int accept_row(struct registry *registry, const char *id, const char *skill,
                      const char *digest, uint64_t ns, const char *key)
{
    const struct registry_execution a = {.id = id,
                                         .skill_name = skill,
                                         .skill_version = "1",
                                         .skill_digest = digest,
                                         .accepted_ns = ns,
                                         .idempotency_key = key,
                                         .request_digest = key ? digest : NULL};

    return registry_execution_accept(registry, TENANT_DEFAULT, &a, NULL);
}

static int put_skill(struct registry *registry, const char *version, const char *digest)
{
    const struct registry_skill r = {
        .name = "x", .version = version, .digest = digest, .description = "d", .bytes = 100};
    char *previous = NULL;

    return registry_skill_put(registry, TENANT_DEFAULT, &r, false, &previous, NULL);
}

static void skills_are_kept(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_skill skill;
    bool known = true;

    assert_int_equal(
        registry_skill_get(registry, TENANT_DEFAULT, "x", NULL, &skill, &known, NULL), -ENOENT);
    assert_false(known);
    assert_int_equal(put_skill(registry, "1", DIGEST_A), 0);
    assert_int_equal(put_skill(registry, "1", DIGEST_A), 0);
    assert_int_equal(put_skill(registry, "1", DIGEST_B), -EEXIST);
    assert_int_equal(put_skill(registry, "0.9", DIGEST_B), 0);
    assert_int_equal(
        registry_skill_get(registry, TENANT_DEFAULT, "x", NULL, &skill, &known, NULL), 0);
    assert_string_equal(skill.version, "0.9");
    registry_skill_finish(&skill);
    assert_int_equal(
        registry_skill_get(registry, TENANT_DEFAULT, "x", "2", &skill, &known, NULL), -ENOENT);
    assert_true(known);
    registry_close(registry);
    registry = open_registry(*state);
    assert_int_equal(
        registry_skill_get(registry, TENANT_DEFAULT, "x", "1", &skill, &known, NULL), 0);
    assert_string_equal(skill.digest, DIGEST_A);
    registry_skill_finish(&skill);
    registry_close(registry);
}

static void executions_are_kept(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_execution row;
    const struct registry_ending ending = {
        .status = "success", .result = "{}", .result_len = 2, .finished_ns = 9};

    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_1, &row, NULL),
                     -ENOENT);
    assert_int_equal(accept_row(registry, ID_1, "x", DIGEST_A, 7, NULL), 0);
    assert_int_equal(accept_row(registry, ID_1, "x", DIGEST_A, 7, NULL), -EIO);
    assert_int_equal(accept_row(registry, ID_2, "x", DIGEST_A, 8, NULL), 0);
    assert_int_equal(registry_execution_end(registry, ID_2, &ending, NULL), 0);
    registry_close(registry);
    registry = open_registry(*state);
    assert_int_equal(registry_execution_unfinished(registry, &row, NULL), 0);
    assert_string_equal(row.id, ID_1);
    assert_string_equal(row.status, "accepted");
    assert_null(row.result);
    assert_int_equal(row.accepted_ns, 7);
    registry_execution_finish(&row);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_2, &row, NULL), 0);
    assert_null(row.result);
    assert_int_equal(registry_execution_read_result(registry, &row, NULL), 0);
    assert_string_equal(row.result, "{}");
    registry_execution_finish(&row);
    registry_close(registry);
}

static void refuses_what_is_no_database(void **state)
{
    struct registry *registry = NULL;
    struct err err = {0};
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/skillvm.db", (char *)*state);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(fd_write_full(fd, "this is no database. ", 21), 0);
    close(fd);
    assert_true(registry_open(path, &registry, &err) < 0);
    assert_non_null(strstr(err.message, "database"));
}

static void lost_executions_are_ended(void **state)
{
    struct registry *registry;
    struct registry_execution row;
    struct data_folder folder;

    assert_int_equal(data_folder_open(*state, &folder, NULL), 0);
    registry = open_registry(*state);
    assert_int_equal(accept_row(registry, ID_1, "x", DIGEST_A, 7, NULL), 0);
    assert_int_equal(accept_row(registry, ID_2, "y", "", 7, NULL), 0);
    assert_int_equal(recover_executions(registry, false, NULL), 0);
    assert_int_equal(registry_execution_unfinished(registry, &row, NULL), -ENOENT);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_1, &row, NULL), 0);
    assert_string_equal(row.status, "failed");
    assert_int_equal(registry_execution_read_result(registry, &row, NULL), 0);
    assert_non_null(strstr(row.result, "\"status\":\"failed\""));
    assert_non_null(strstr(row.result, "the daemon stopped while this execution ran"));
    registry_execution_finish(&row);
    registry_close(registry);
    data_folder_close(&folder);
}

/* A disk that is full is no reason not to start; the rows are ended when there is room again.
 */
static void recovery_survives_a_full_disk(void **state)
{
    struct rlimit before, none = {0};
    struct registry *registry;
    struct registry_execution row;
    struct data_folder folder;

    assert_int_equal(data_folder_open(*state, &folder, NULL), 0);
    registry = open_registry(*state);
    assert_int_equal(accept_row(registry, ID_1, "x", DIGEST_A, 7, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 1;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(recover_executions(registry, false, NULL), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(registry_execution_unfinished(registry, &row, NULL), 0);
    registry_execution_finish(&row);
    assert_int_equal(recover_executions(registry, false, NULL), 0);
    assert_int_equal(registry_execution_unfinished(registry, &row, NULL), -ENOENT);
    registry_close(registry);
    data_folder_close(&folder);
}

/* Somebody who listens but does not accept is alive, and asking does not wait for him. */
static void a_busy_listener_is_alive(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct listener listener = listener_init();
    struct err err = {0};
    int fds[8];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", (char *)*state);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 0), 0);
    for (int i = 0; i < 8; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (struct sockaddr *)&address, sizeof(address));
    }
    assert_int_equal(listener_open(&listener, address.sun_path, 0600, &err), -EADDRINUSE);
    assert_non_null(strstr(err.message, "another process listens"));
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    close(fd);
    listener_close(&listener);
    /* Now the name is stale. */
    assert_int_equal(listener_open(&listener, address.sun_path, 0600, NULL), 0);
    listener_close(&listener);
    assert_int_equal(access(address.sun_path, F_OK), -1);
}

static void one_daemon_per_folder(void **state)
{
    struct data_folder first, second;
    struct err err = {0};
    char path[128];
    int fd;

    assert_int_equal(data_folder_open(*state, &first, NULL), 0);
    assert_int_equal(data_folder_open(*state, &second, &err), -EBUSY);
    assert_non_null(strstr(err.message, "another skillvmd"));
    fd = openat(first.tmp_fd, "left-over", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    assert_int_equal(mkdirat(first.tmp_fd, "snapshot-in-the-making", 0700), 0);
    data_folder_close(&first);
    assert_int_equal(data_folder_open(*state, &first, NULL), 0);
    snprintf(path, sizeof(path), "%s/tmp", (char *)*state);
    assert_int_equal(rmdir(path), 0);
    data_folder_close(&first);
}

struct killed {
    int lock_fd;
    pthread_t thread;
};

static void *let_go(void *arg)
{
    struct killed *k = arg;

    usleep(100000);
    close(k->lock_fd);
    return NULL;
}

/* The lock of a daemon that was killed goes with its last child, a moment later. */
static void a_lock_may_outlive_its_daemon(void **state)
{
    struct data_folder first, second;
    struct killed killed;

    assert_int_equal(data_folder_open(*state, &first, NULL), 0);
    killed.lock_fd = dup(first.lock_fd);
    data_folder_close(&first);
    assert_int_equal(pthread_create(&killed.thread, NULL, let_go, &killed), 0);
    assert_int_equal(data_folder_open(*state, &second, NULL), 0);
    data_folder_close(&second);
    pthread_join(killed.thread, NULL);
}

/* A store whose one question is answered here. */
struct fixture {
    struct data_folder folder;
    struct store *store;
    bool a_is_named;
};

static int is_named(void *ctx, const char *digest, bool *ret_named, struct err *err)
{
    const struct fixture *f = ctx;

    (void)err;
    *ret_named = f->a_is_named && strcmp(digest, DIGEST_A) == 0;
    return 0;
}

static void open_store(struct fixture *f, const char *dir)
{
    *f = (struct fixture){0};
    assert_int_equal(data_folder_open(dir, &f->folder, NULL), 0);
    assert_int_equal(store_create(&f->folder, is_named, f, &f->store, NULL), 0);
}

static void close_store(struct fixture *f)
{
    store_destroy(f->store);
    data_folder_close(&f->folder);
}

static void put(struct fixture *f, const char *text)
{
    _cleanup_store_lock_ struct store *store = store_lock(f->store);
    _cleanup_fd_ int fd = store_temporary(store);

    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(store_put(store, fd, DIGEST_A, NULL), 0);
}

static void objects_are_whole_or_absent(void **state)
{
    struct fixture f;
    struct err err = {0};
    char text[8] = {0};
    int fd;

    open_store(&f, *state);
    assert_int_equal(store_get(f.store, DIGEST_A, &err), -ENOENT);
    assert_int_equal(store_get(f.store, "../skillvm.db", NULL), -EINVAL);
    assert_int_equal(store_put(f.store, 0, "../skillvm.db", NULL), -EINVAL);
    put(&f, "first");
    put(&f, "other");
    fd = store_get(f.store, DIGEST_A, NULL);
    assert_true(fd >= 0);
    assert_int_equal(fd_read_full(fd, text, sizeof(text)), 5);
    assert_string_equal(text, "first");
    close(fd);
    close_store(&f);
}

static void what_is_named_is_not_released(void **state)
{
    struct fixture f;
    int fd;

    open_store(&f, *state);
    put(&f, "content");
    f.a_is_named = true;
    assert_int_equal(store_release(f.store, DIGEST_A, NULL), 0);
    fd = store_get(f.store, DIGEST_A, NULL);
    assert_true(fd >= 0);
    f.a_is_named = false;
    assert_int_equal(store_release(f.store, DIGEST_A, NULL), 0);
    assert_int_equal(store_get(f.store, DIGEST_A, NULL), -ENOENT);
    assert_int_equal(store_release(f.store, "../skillvmd.lock", NULL), 0);
    assert_int_equal(faccessat(f.folder.dir_fd, "skillvmd.lock", F_OK, 0), 0);
    close(fd);
    close_store(&f);
}

/* What came as a stream, counted as it came, becomes an object without being copied. */
static void spools_become_objects(void **state)
{
    char hex[SHA256_HEX_SIZE], again[SHA256_HEX_SIZE];
    struct fixture f;
    struct spool s;
    struct stat in_store, in_spool;
    int fd, named;

    open_store(&f, *state);
    s = spool_init(f.folder.tmp_fd, 1 << 20);
    assert_int_equal(spool_hash(&s), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(spool_append(&s, "one hundred bytes, nearly", 25), 0);
    fd = spool_to_fd(&s);
    assert_true(fd >= 0);
    spool_digest(&s, hex);
    assert_int_equal(sha256_of_fd(fd, again), 0);
    assert_string_equal(hex, again);
    assert_int_equal(store_put(f.store, fd, hex, NULL), 0);
    assert_int_equal(store_put(f.store, fd, hex, NULL), 0);
    assert_int_equal(fstatat(f.folder.objects_fd, hex, &in_store, 0), 0);
    assert_int_equal(fstat(fd, &in_spool), 0);
    assert_int_equal(in_store.st_ino, in_spool.st_ino);
    spool_finish(&s);
    /* A file that can get no name any more is copied. */
    named = openat(f.folder.tmp_fd, "x", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_full(named, "content", 7), 0);
    assert_int_equal(unlinkat(f.folder.tmp_fd, "x", 0), 0);
    assert_int_equal(store_put(f.store, named, DIGEST_A, NULL), 0);
    close(named);
    fd = store_get(f.store, DIGEST_A, NULL);
    assert_int_equal(fstat(fd, &in_spool), 0);
    assert_int_equal(in_spool.st_size, 7);
    close(fd);
    close_store(&f);
}

static void spools_move_to_disk(void **state)
{
    int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char block[50000];
    const char *view;
    struct spool s = spool_init(dir, 120000);

    memset(block, 'a', sizeof(block));
    assert_int_equal(spool_append(&s, block, sizeof(block)), 0);
    assert_int_equal(s.fd, -1);
    memset(block, 'b', sizeof(block));
    assert_int_equal(spool_append(&s, block, sizeof(block)), 0);
    assert_true(s.fd >= 0);
    assert_int_equal(spool_append(&s, block, sizeof(block)), -EFBIG);
    assert_int_equal(s.size, 100000);
    assert_int_equal(spool_view(&s, &view), 0);
    assert_int_equal(view[49999], 'a');
    assert_int_equal(view[50000], 'b');
    assert_int_equal(view[99999], 'b');
    spool_finish(&s);
    s = spool_init(dir, 10);
    assert_int_equal(spool_view(&s, &view), 0);
    assert_string_equal(view, "");
    spool_finish(&s);
    close(dir);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(skills_are_kept),
        IN_DIR(executions_are_kept),
        IN_DIR(refuses_what_is_no_database),
        IN_DIR(lost_executions_are_ended),
        IN_DIR(recovery_survives_a_full_disk),
        IN_DIR(a_busy_listener_is_alive),
        IN_DIR(one_daemon_per_folder),
        IN_DIR(a_lock_may_outlive_its_daemon),
        IN_DIR(objects_are_whole_or_absent),
        IN_DIR(spools_move_to_disk),
        IN_DIR(what_is_named_is_not_released),
        IN_DIR(spools_become_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
