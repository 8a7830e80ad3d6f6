/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the jail tells of a cell whose machine memory ended, and who is left in one: of files as
 * the kernel writes them.
 */
#include "vmm/jail/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

#define CELL 7

static char root[] = "/tmp/skillvm-unit.XXXXXX";
static struct limits limits = {.base_fd = -1};

static void put(const char *name, const char *text)
{
    int fd = openat(limits.machines_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(root))
        return -1;
    limits.machines_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (limits.machines_fd < 0 || mkdirat(limits.machines_fd, "7", 0700) < 0)
        return -1;
    put("7/cgroup.events", "populated 0\nfrozen 0\n");
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlinkat(limits.machines_fd, "7/memory.events", 0);
    (void)unlinkat(limits.machines_fd, "7/cgroup.events", 0);
    (void)unlinkat(limits.machines_fd, "7/cgroup.kill", 0);
    (void)unlinkat(limits.machines_fd, "7", AT_REMOVEDIR);
    (void)close(limits.machines_fd);
    return rmdir(root);
}

static enum jail_memory look_at(const char *events)
{
    put("7/memory.events", events);
    return limits_look(&limits, CELL);
}

static void test_who_ended_it(void **state)
{
    (void)state;
    assert_int_equal(look_at("low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"),
                     JAIL_MEMORY_ENOUGH);
    /* It had what it wanted of others' pages in the end. */
    assert_int_equal(look_at("low 0\nhigh 0\nmax 35\noom 0\noom_kill 0\noom_group_kill 0\n"),
                     JAIL_MEMORY_ENOUGH);
    assert_int_equal(look_at("low 0\nhigh 0\nmax 35\noom 1\noom_kill 2\noom_group_kill 1\n"),
                     JAIL_MEMORY_OVER);
    /* A kernel that does not count groups. */
    assert_int_equal(look_at("low 0\nhigh 0\nmax 35\noom 1\noom_kill 1\n"), JAIL_MEMORY_OVER);
    assert_int_equal(look_at("low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n"),
                     JAIL_MEMORY_SHORT);
}

static void test_what_is_not_there(void **state)
{
    (void)state;
    assert_int_equal(look_at(""), JAIL_MEMORY_ENOUGH);
    assert_int_equal(look_at("oom_group_kill 1\noom_kills 1\noom_kill"), JAIL_MEMORY_ENOUGH);
    assert_int_equal(limits_look(&limits, CELL + 1), JAIL_MEMORY_ENOUGH);
}

static unsigned removals;

int __real_unlinkat(int dir_fd, const char *name, int flags);
int __wrap_unlinkat(int dir_fd, const char *name, int flags);
int __wrap_unlinkat(int dir_fd, const char *name, int flags)
{
    removals += flags == AT_REMOVEDIR && strcmp(name, "7") == 0;
    return __real_unlinkat(dir_fd, name, flags);
}

/* Nobody asked about it: the daemon had ended it as well. */
static void test_what_the_next_one_is_not_told(void **state)
{
    int fd = -1;

    (void)state;
    removals = 0;
    put("7/memory.events", "low 0\nhigh 0\nmax 35\noom 0\noom_kill 0\noom_group_kill 0\n");
    /* There is nothing here that could be limited. */
    assert_int_equal(limits_open_cell(&limits, CELL, 1 << 20, &fd), -ENOENT);
    assert_int_equal(removals, 0);
    put("7/memory.events", "low 0\nhigh 0\nmax 35\noom 1\noom_kill 1\noom_group_kill 1\n");
    assert_int_equal(limits_open_cell(&limits, CELL, 1 << 20, &fd), -ENOENT);
    assert_int_equal(removals, 1);
}

/* Whether who is told to end by cgroup.kill does so, which shows while it is waited for. */
static bool they_go, they_went;

int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_left)
{
    struct stat st;

    (void)time;
    (void)ret_left;
    if (!they_go || fstatat(limits.machines_fd, "7/cgroup.kill", &st, 0) < 0 || st.st_size == 0)
        return 0;
    put("7/cgroup.events", "populated 0\nfrozen 0\n");
    they_went = true;
    return 0;
}

static int open_populated(bool go)
{
    int fd = -1;

    they_go = go;
    put("7/memory.events", "oom_kill 0\n");
    put("7/cgroup.kill", "");
    put("7/cgroup.events", "populated 1\nfrozen 0\n");
    return limits_open_cell(&limits, CELL, 1 << 20, &fd);
}

/* Whoever a machine has left in its cell is ended before the next one. */
static void test_leftovers(void **state)
{
    (void)state;
    /* Beyond that there is nothing here that could be limited. */
    assert_int_equal(open_populated(true), -ENOENT);
    assert_true(they_went);
    assert_int_equal(open_populated(false), -EBUSY);
    put("7/cgroup.events", "populated 0\nfrozen 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_ended_it),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_what_the_next_one_is_not_told),
        cmocka_unit_test(test_leftovers),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
