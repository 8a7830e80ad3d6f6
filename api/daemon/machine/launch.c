/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/launch.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FD 3 /* descriptors of the child are 3, 4, … */
/* Sources lie above every target, so no dup2 hits one. */
#define SOURCE_FD_MIN 16

struct launch launch_init(const char *program, const char *argument)
{
    struct launch l = {.program = program};

    launch_add(&l, basename(program));
    if (argument)
        launch_add(&l, argument);
    return l;
}

void launch_add(struct launch *l, const char *argument)
{
    /* posix_spawn takes char *const[] and never writes through it. */
    l->argv[l->argc++] = (char *)(uintptr_t)argument;
}

void launch_add_fd(struct launch *l, const char *option, int fd)
{
    size_t i = l->n_fds;
    int copy;

    if (l->error)
        return;
    copy = fcntl(fd, F_DUPFD_CLOEXEC, SOURCE_FD_MIN);
    if (copy < 0) {
        l->error = -errno;
        return;
    }
    l->fds[i] = copy;
    l->n_fds++;
    (void)snprintf(l->numbers[i], sizeof(l->numbers[i]), "%zu", FIRST_FD + i);
    launch_add(l, option);
    launch_add(l, l->numbers[i]);
}

/* 0 or an errno, as posix_spawn. */
static int spawn(struct launch *l, int stdout_fd, posix_spawn_file_actions_t *actions,
                 posix_spawnattr_t *attr, pid_t *ret_pid)
{
    char *const no_env[] = {NULL};
    int r;

    r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r != 0)
        return r;
    r = stdout_fd < 0
            ? posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
            : posix_spawn_file_actions_adddup2(actions, stdout_fd, STDOUT_FILENO);
    for (size_t i = 0; r == 0 && i < l->n_fds; i++)
        r = posix_spawn_file_actions_adddup2(actions, l->fds[i], FIRST_FD + (int)i);
    if (r != 0)
        return r;
    l->argv[l->argc] = NULL;
    return posix_spawn(ret_pid, l->program, actions, attr, l->argv, no_env);
}

static int spawn_with_attributes(struct launch *l, int stdout_fd, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int r = posix_spawn_file_actions_init(&actions);

    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attr);
    if (r != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    /* A group of its own: a Ctrl-C at the daemon's terminal is the daemon's to handle. Flags
       and masks that are right cannot fail. */
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    r = spawn(l, stdout_fd, &actions, &attr, ret_pid);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -r;
}

int launch_run(struct launch *l, int stdout_fd, pid_t *ret_pid)
{
    int r = l->error ? l->error : spawn_with_attributes(l, stdout_fd, ret_pid);

    for (size_t i = 0; i < l->n_fds; i++)
        fd_close(&l->fds[i]);
    l->n_fds = 0;
    return r;
}
