/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init/compile: what compiles somebody's packages has limits of memory, files and time,
 * and is gone when it is over them. A script stands in for the interpreter.
 */
#include "guest-init/compile.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-init/proto.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/guest_tree.h"

/* In place of the time that passes while it is waited for. */
static struct {
    bool is_over;
    int timeout_ms; /* that was asked for */
} wait;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    wait.timeout_ms = timeout;
    return wait.is_over ? 0 : __real_poll(fds, n, timeout);
}

static void run(struct tree *tree, const char *python)
{
    char program[SANDBOX_PATH_MAX];
    const struct sandbox_config config = {
        .root = tree->path, .python = program, .zygote_dirs = {tree->path}};
    const struct sandbox sb = {.config = &config};

    snprintf(program, sizeof(program), "%s/python", tree->path);
    tree_write(tree, "python", python);
    assert_int_equal(chmod(program, 0755), 0);
    tree_write(tree, "compile.py", "");
    compile_packages(&sb);
}

/* They hold once it has them, for which the stand-in waits. */
static void memory_and_files_are_limited(void **state)
{
    struct tree *tree = *state;

    wait.is_over = false;
    run(tree, "#!/bin/bash\n"
              "cd \"${0%/*}\"\n"
              "for ((n = 0; n < 100000; n++)); do\n"
              "[[ $(ulimit -c) = 0 && $(ulimit -v) != unlimited ]] && break\n"
              "done\n"
              "echo \"$(ulimit -v) $(ulimit -Hv) $(ulimit -f) $(ulimit -Hf) ${@:1:2} ${4##*/}\""
              " >limits\n");
    assert_string_equal(tree_read(tree, "limits"),
                        "524288 524288 32768 32768 -I -S packages\n");
}

/*
 * The host waits for the guest no longer than that (guest_hold). What goes on for ever is not
 * waited for: it was killed.
 */
static void it_ends_when_its_time_is_over(void **state)
{
    wait.is_over = true;
    run(*state, "#!/bin/bash\nwhile :; do read -rt 1000 <>/dev/null; done\n");
    assert_int_equal(wait.timeout_ms, PROTO_COMPILE_MS);
    assert_in_range(PROTO_COMPILE_MS, 1, 20000);
}

static int setup(void **state)
{
    struct tree *tree = calloc(1, sizeof(*tree));

    assert_non_null(tree);
    tree_make(tree);
    *state = tree;
    return 0;
}

static int teardown(void **state)
{
    tree_remove(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_and_files_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(it_ends_when_its_time_is_over, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
