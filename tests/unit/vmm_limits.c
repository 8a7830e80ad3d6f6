/* SPDX-License-Identifier: Apache-2.0 */
/* What the jail tells of a cell whose machine memory ended: of files as the kernel writes them.
 */
#include "vmm/jail/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

#define CELL 7

static char root[] = "/tmp/skillvm-unit.XXXXXX";
static struct limits limits = {.base_fd = -1};

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(root))
        return -1;
    limits.machines_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return limits.machines_fd < 0 ? -1 : mkdirat(limits.machines_fd, "7", 0700);
}

static int end(void **state)
{
    (void)state;
    (void)unlinkat(limits.machines_fd, "7/memory.events", 0);
    (void)unlinkat(limits.machines_fd, "7", AT_REMOVEDIR);
    (void)close(limits.machines_fd);
    return rmdir(root);
}

static void put_events(const char *events)
{
    int fd = openat(limits.machines_fd, "7/memory.events", O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, events, strlen(events)), strlen(events));
    (void)close(fd);
}

static enum jail_memory look_at(const char *events)
{
    put_events(events);
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
    put_events("low 0\nhigh 0\nmax 35\noom 0\noom_kill 0\noom_group_kill 0\n");
    /* There is nothing here that could be limited. */
    assert_int_equal(limits_open_cell(&limits, CELL, 1 << 20, &fd), -ENOENT);
    assert_int_equal(removals, 0);
    put_events("low 0\nhigh 0\nmax 35\noom 1\noom_kill 1\noom_group_kill 1\n");
    assert_int_equal(limits_open_cell(&limits, CELL, 1 << 20, &fd), -ENOENT);
    assert_int_equal(removals, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_ended_it),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_what_the_next_one_is_not_told),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
