/* SPDX-License-Identifier: Apache-2.0 */
/* A program of skillvm's, started with descriptors under fixed numbers and nothing else. */
#ifndef SKILLVM_API_DAEMON_MACHINE_LAUNCH_H
#define SKILLVM_API_DAEMON_MACHINE_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

#define LAUNCH_FDS_MAX  4
#define LAUNCH_ARGS_MAX 16

struct launch {
    const char *program; /* borrowed, as the arguments are */
    char *argv[LAUNCH_ARGS_MAX];
    size_t argc;
    int fds[LAUNCH_FDS_MAX]; /* owned copies, above the numbers that they will have */
    size_t n_fds;
    int error; /* -errno of the first descriptor that could not be passed, or 0 */
    char numbers[LAUNCH_FDS_MAX][8];
};

/* A program with its first argument, or none: NULL. */
struct launch launch_init(const char *program, const char *argument);
void launch_add(struct launch *l, const char *argument);
/* Passes a borrowed descriptor, and an option that names its number. */
void launch_add_fd(struct launch *l, const char *option, int fd);
/* Starts it, printing to stdout_fd, or nowhere where that is -1. Finishes l. 0 or -errno. */
int launch_run(struct launch *l, int stdout_fd, pid_t *ret_pid);

#endif
