/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest-init/proto.h"

#define MEMORY_MAX (512u << 20)
#define FILE_MAX   (32u << 20)

/* What somebody brought can neither fill the machine nor go on for ever. */
static void limit(pid_t pid)
{
    const struct {
        enum __rlimit_resource resource;
        rlim_t value;
    } limits[] = {{RLIMIT_AS, MEMORY_MAX}, {RLIMIT_FSIZE, FILE_MAX}, {RLIMIT_CORE, 0}};

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const struct rlimit both = {limits[i].value, limits[i].value};

        (void)prlimit(pid, limits[i].resource, &both, NULL);
    }
}

/* Without the signal mask of PID 1, and without a word. */
static int spawn(char *const argv[], pid_t *ret)
{
    char *const env[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int r;

    (void)sigemptyset(&none);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd <= 2; fd++)
        (void)posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    r = posix_spawn(ret, argv[0], &actions, &attributes, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}

static void await(pid_t pid)
{
    _cleanup_fd_ int fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    do
        n = poll(&p, 1, PROTO_COMPILE_MS);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || fd < 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void compile_packages(const struct sandbox *sb)
{
    const struct sandbox_config *config = sb->config;
    const char *dir = config->zygote_dirs[RUN_LANG_PYTHON];
    char python[SANDBOX_PATH_MAX], isolated[] = "-I", bare[] = "-S", script[SANDBOX_PATH_MAX],
                                   packages[SANDBOX_PATH_MAX];
    char *const argv[] = {python, isolated, bare, script, packages, NULL};
    pid_t pid;

    if (!dir)
        return;
    (void)snprintf(python, sizeof(python), "%s", config->python);
    (void)snprintf(script, sizeof(script), "%s/compile.py", dir);
    (void)snprintf(packages, sizeof(packages), "%s/sandbox/packages", config->root);
    if (access(script, R_OK) < 0 || spawn(argv, &pid) < 0)
        return;
    limit(pid);
    await(pid);
}
