/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/host/files and status: one holder of the lock, files with the right modes, a status that
 * reads back as written.
 */
#include "api/host/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

static char data_dir[64];

static int setup(void **state)
{
    struct err err = {0};

    (void)state;
    strcpy(data_dir, "/tmp/skillvm-files.XXXXXX");
    return mkdtemp(data_dir) ? files_make_dir(data_dir, &err) : -1;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", data_dir);
    return system(command);
}

static void inside(const char *name, char *out)
{
    assert_int_equal(files_path(data_dir, name, out, NULL), 0);
}

/* Asks from another process, as whoever runs `skillvm status` does. */
static int in_child(int (*ask)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(ask());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static int ask_lock(void)
{
    struct err err = {0};
    int fd, r = files_lock(data_dir, &fd, &err);

    return r == -EALREADY && strstr(err.message, data_dir) ? 1 : 0;
}

static int ask_holder(void)
{
    return files_lock_holder(data_dir) == getppid();
}

static int ask_status(void)
{
    struct host_status s;

    return host_status_read(data_dir, &s, NULL) == 0 && s.state == HOST_READY &&
           s.supervisor_pid == getppid() && s.qemu_pid == 42 && s.restarts == 3 &&
           s.boot_ms == 4321 && s.memory_mib == 2048 &&
           strcmp(s.last_reason, "it = hung up") == 0 && strstr(s.log_path, "/softhost/log");
}

static void test_one_holder(void **state)
{
    int fd = -1;

    (void)state;
    assert_int_equal(files_lock_holder(data_dir), 0);
    assert_int_equal(files_lock(data_dir, &fd, NULL), 0);
    assert_int_equal(in_child(ask_lock), 1);
    assert_int_equal(in_child(ask_holder), 1);
    close(fd);
    assert_int_equal(in_child(ask_lock), 0);
    assert_int_equal(files_lock_holder("/nonexistent"), 0);
}

static void test_status_round_trip(void **state)
{
    struct host_status s = {.state = HOST_READY,
                            .qemu_pid = 42,
                            .restarts = 3,
                            .boot_ms = 4321,
                            .memory_mib = 2048,
                            .last_reason = "it = hung\nup"};
    struct host_status none;
    int fd = -1;

    (void)state;
    assert_int_equal(host_status_read(data_dir, &none, NULL), 0);
    assert_int_equal(none.state, HOST_STOPPED);
    assert_int_equal(files_lock(data_dir, &fd, NULL), 0);
    assert_int_equal(files_write_status(data_dir, &s), 0);
    assert_int_equal(in_child(ask_status), 1);
    close(fd);
    /* What a dead supervisor left says nothing. */
    assert_int_equal(host_status_read(data_dir, &none, NULL), 0);
    assert_int_equal(none.state, HOST_STOPPED);
    assert_int_equal(none.restarts, 0);
}

static void test_token_is_private_and_new(void **state)
{
    uint8_t first[WIRE_TOKEN_SIZE], second[WIRE_TOKEN_SIZE], got[WIRE_TOKEN_SIZE];
    char path[FILES_PATH_MAX];
    struct stat st;

    (void)state;
    inside("token", path);
    assert_int_equal(files_make_token(data_dir, first, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(files_make_token(data_dir, second, NULL), 0);
    assert_memory_not_equal(first, second, sizeof(first));
    assert_int_equal(wire_token_read(path, got), 0);
    assert_memory_equal(got, second, sizeof(got));
}

static void test_disk_is_sparse_and_kept(void **state)
{
    char path[FILES_PATH_MAX];
    struct stat st;
    FILE *f;

    (void)state;
    inside("disk.img", path);
    assert_int_equal(files_make_disk(data_dir, 1ull << 30, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size == 1ll << 30 && st.st_blocks == 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    f = fopen(path, "r+");
    assert_non_null(f);
    assert_true(fputs("content", f) >= 0);
    fclose(f);
    assert_int_equal(files_make_disk(data_dir, 2ull << 30, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size == 1ll << 30 && st.st_blocks > 0);
}

static void test_log_moves_aside(void **state)
{
    char path[FILES_PATH_MAX], old[FILES_PATH_MAX];
    struct stat st;
    int fd;

    (void)state;
    inside("log", path);
    inside("log.old", old);
    fd = files_open_log(data_dir, 4);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "12345", 5), 5);
    close(fd);
    assert_int_equal(stat(old, &st), -1);
    fd = files_open_log(data_dir, 4);
    close(fd);
    assert_int_equal(stat(old, &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0);
}

static void test_too_long_a_path(void **state)
{
    static char name[FILES_PATH_MAX + 1];
    struct err err = {0};
    char out[FILES_PATH_MAX];

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(files_path(name, "log", out, &err), -ENAMETOOLONG);
    assert_int_equal(err.code, ENAMETOOLONG);
}

static void a_disk_needs_room_to_grow(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(files_check_space("/d", 0, 256u << 20, NULL), 0);
    assert_int_equal(files_check_space("/d", 200u << 20, 64u << 20, NULL), 0);
    assert_int_equal(files_check_space("/d", 100u << 20, 155u << 20, NULL), -ENOSPC);
    assert_int_equal(files_check_space("/d", 900u << 20, 63u << 20, NULL), -ENOSPC);
    assert_int_equal(files_check_space("/d", 0, 16u << 20, &err), -ENOSPC);
    assert_string_equal(err.message,
                        "/d has 16 MiB free, and the software host needs 256: make "
                        "room, or name another data directory by --data");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_holder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_status_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_is_private_and_new, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disk_is_sparse_and_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_moves_aside, setup, teardown),
        cmocka_unit_test(a_disk_needs_room_to_grow),
        cmocka_unit_test(test_too_long_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
