/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a process of the skill's: session, user, limits, filter, streams, environment.
 * The process must never keep a descriptor, capability or signal mask of guest-init.
 */
#ifndef SKILLVM_GUEST_SKILL_H
#define SKILLVM_GUEST_SKILL_H

#include <sys/types.h>

#include "base/err.h"
#include "guest-init/sandbox.h"

struct skill_command {
    const char *path;  /* of the program */
    char *const *argv; /* NULL-terminated, borrowed like everything here */
    char *const *env;
    const char *cwd;
    int extra_fd; /* becomes descriptor 3, or -1 */
};

/*
 * Starts command in the sandbox with its three streams. Returns once the child exists; what
 * goes wrong in it is told on its standard error with exit code 127, as a shell does. 0 and
 * *ret_pid, or -errno with err set.
 */
int skill_spawn(const struct sandbox *sb, const struct skill_command *command, pid_t *ret_pid,
                struct err *err);

/*
 * The environment of a run: the fixed part, the contract's variables, the caller's. input may
 * be NULL when it is too large for a variable. 0 or -ENOMEM; the caller owns *ret_env either
 * way.
 */
int skill_environment(const struct sandbox *sb, const struct run *run, const char *input,
                      struct run_strings *ret_env);
/*
 * The command line of a run without a zygote, argv[0] included. 0 or -ENOMEM; the caller owns
 * *ret_argv either way.
 */
int skill_arguments(const struct sandbox *sb, const struct run *run,
                    struct run_strings *ret_argv);
/* The file or module to run, as the skill sees it. 0 or -ENOMEM; *ret_target is the caller's.
 */
int skill_target(const struct sandbox *sb, const struct run *run, char **ret_target);
/* The run's working directory. ret_path: SANDBOX_PATH_MAX. */
void skill_cwd(const struct sandbox *sb, const struct run *run, char *ret_path);
/* The interpreter of a run, or NULL when this image has none for its language. */
const char *skill_interpreter(const struct sandbox *sb, const struct run *run);

#endif
