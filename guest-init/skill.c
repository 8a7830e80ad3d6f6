/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/skill.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest-init/filter.h"

#define SKILL_UID 65534u
/* The kernel takes no argument or variable longer than 32 pages (MAX_ARG_STRLEN). */
#define VARIABLE_MAX (128u * 1024u)

struct limit {
    int resource;
    rlim_t soft;
    rlim_t hard;
};

static int set_limits(void)
{
    static const struct limit limits[] = {
        {RLIMIT_CORE, 0, 0},
        {RLIMIT_NOFILE, 1024, 4096},
        {RLIMIT_MEMLOCK, 8u << 20, 8u << 20},
        {RLIMIT_MSGQUEUE, 819200, 819200},
        {RLIMIT_NICE, 0, 0},
        {RLIMIT_RTPRIO, 0, 0},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit value = {limits[i].soft, limits[i].hard};

        if (setrlimit((__rlimit_resource_t)limits[i].resource, &value) < 0)
            return -errno;
    }
    return 0;
}

static int reset_signals(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &plain, NULL);
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int set_streams(const struct sandbox *sb, int extra_fd)
{
    const int from[] = {sb->input_read, sb->out_write, sb->err_write, extra_fd};
    int moved[4];
    int count = extra_fd < 0 ? 3 : 4;

    /* First out of the way of 0 to 3, then into place: a source may be another one's target. */
    for (int i = 0; i < count; i++) {
        moved[i] = fcntl(from[i], F_DUPFD, 8);
        if (moved[i] < 0)
            return -errno;
    }
    for (int i = 0; i < count; i++)
        if (dup2(moved[i], i) < 0)
            return -errno;
    return close_range((unsigned)count, ~0u, 0) < 0 ? -errno : 0;
}

static int drop_privileges(void)
{
    if (setgroups(0, NULL) < 0 || setresgid(SKILL_UID, SKILL_UID, SKILL_UID) < 0 ||
        setresuid(SKILL_UID, SKILL_UID, SKILL_UID) < 0)
        return -errno;
    return 0;
}

/* Everything between fork and exec. Only async-signal-safe calls: the parent may have threads.
 */
static const char *child_prepare(const struct sandbox *sb, const struct skill_command *command,
                                 int *ret_error)
{
    int r;

    if (setsid() < 0) {
        *ret_error = -errno;
        return "setsid";
    }
    r = cgroup_join(&sb->cgroup);
    *ret_error = r;
    if (r < 0)
        return "cgroup";
    r = set_streams(sb, command->extra_fd);
    *ret_error = r;
    if (r < 0)
        return "streams";
    r = set_limits();
    *ret_error = r;
    if (r < 0)
        return "limits";
    if (sb->config->isolated) {
        r = drop_privileges();
        *ret_error = r;
        if (r < 0)
            return "user";
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir(command->cwd) < 0) {
        *ret_error = -errno;
        return command->cwd;
    }
    r = reset_signals();
    *ret_error = r;
    if (r < 0)
        return "signals";
    r = filter_install();
    *ret_error = r;
    return r < 0 ? "filter" : NULL;
}

static void __attribute__((noreturn)) child_fail(const char *what, int error)
{
    char text[256];
    int len = snprintf(text, sizeof(text), "skillvm: cannot start the skill: %s: %s\n", what,
                       strerror(error));

    if (len > 0)
        (void)!write(STDERR_FILENO, text, strlen(text));
    _exit(127);
}

int skill_spawn(const struct sandbox *sb, const struct skill_command *command, pid_t *ret_pid,
                struct err *err)
{
    const char *what;
    int error = 0;
    pid_t pid = fork();

    if (pid < 0)
        return err_set_errno(err, errno, "cannot fork");
    if (pid > 0) {
        *ret_pid = pid;
        return 0;
    }
    what = child_prepare(sb, command, &error);
    if (what)
        child_fail(what, -error);
    (void)execve(command->path, command->argv, command->env);
    child_fail(command->path, errno);
}

static void add_path(const struct sandbox *sb, struct run_strings *env, const char *name,
                     const char *path)
{
    char full[SANDBOX_PATH_MAX];

    sandbox_path(sb, path, full);
    run_strings_add_env(env, name, full);
}

static void add_optional(struct run_strings *env, const char *name, const char *value)
{
    if (value && strlen(name) + strlen(value) + 2 <= VARIABLE_MAX)
        run_strings_add_env(env, name, value);
}

/* Adds the caller's "NAME=value", in place of a variable of that name. */
static void add_callers(struct run_strings *env, const char *text)
{
    size_t name_len = (size_t)(strchrnul(text, '=') - text);

    for (size_t i = 0; i < env->count; i++) {
        char *copy;

        if (strncmp(env->items[i], text, name_len) != 0 || env->items[i][name_len] != '=')
            continue;
        copy = strdup(text);
        if (!copy) {
            env->error = -ENOMEM;
            return;
        }
        free(env->items[i]);
        env->items[i] = copy;
        return;
    }
    run_strings_add(env, text, strlen(text));
}

int skill_environment(const struct sandbox *sb, const struct run *run, const char *input,
                      struct run_strings *ret_env)
{
    *ret_env = (struct run_strings){0};
    run_strings_add_env(ret_env, "PATH", "/usr/local/bin:/usr/bin:/bin");
    run_strings_add_env(ret_env, "LANG", "C.UTF-8");
    add_path(sb, ret_env, "HOME", "/tmp");
    add_path(sb, ret_env, "SANDBOX_OUTPUT", "/sandbox/out/output.json");
    add_path(sb, ret_env, "SANDBOX_FILES_DIR", "/sandbox/out/files/");
    add_path(sb, ret_env, "SANDBOX_INPUT_DIR", "/sandbox/in/");
    if (run->session_bytes > 0)
        add_path(sb, ret_env, "SANDBOX_SESSION_DIR", "/sandbox/session/");
    add_optional(ret_env, "SANDBOX_INPUT", input);
    add_optional(ret_env, "SKILL_INSTRUCTIONS", run->instructions);
    add_optional(ret_env, "SKILL_NAME", run->skill_name);
    for (size_t i = 0; i < run->env.count; i++)
        add_callers(ret_env, run->env.items[i]);
    return ret_env->error;
}

int skill_target(const struct sandbox *sb, const struct run *run, char **ret_target)
{
    const char *below = run->mode == PROTO_MODE_ENTRY ? "/sandbox/scripts" : "/sandbox/skill";
    char *target;

    if (run->mode == PROTO_MODE_MODULE)
        target = strdup(run->entry);
    else if (asprintf(&target, "%s%s/%s", sb->config->root, below, run->entry) < 0)
        target = NULL;
    if (!target)
        return -ENOMEM;
    *ret_target = target;
    return 0;
}

int skill_arguments(const struct sandbox *sb, const struct run *run,
                    struct run_strings *ret_argv)
{
    const char *program = skill_interpreter(sb, run);
    _cleanup_free_ char *target = NULL;
    int r;

    *ret_argv = (struct run_strings){0};
    r = skill_target(sb, run, &target);
    if (r < 0)
        return r;
    if (program)
        run_strings_add(ret_argv, program, strlen(program));
    if (run->mode == PROTO_MODE_MODULE)
        run_strings_add(ret_argv, "-m", 2);
    run_strings_add(ret_argv, target, strlen(target));
    for (size_t i = 0; i < run->args.count; i++)
        run_strings_add(ret_argv, run->args.items[i], strlen(run->args.items[i]));
    return ret_argv->error;
}

void skill_cwd(const struct sandbox *sb, const struct run *run, char *ret_path)
{
    sandbox_path(sb, run->mode == PROTO_MODE_ENTRY ? "/sandbox" : "/sandbox/skill", ret_path);
}

const char *skill_interpreter(const struct sandbox *sb, const struct run *run)
{
    const char *path = NULL;

    switch (run->lang) {
    case RUN_LANG_PYTHON:
        path = sb->config->python;
        break;
    case RUN_LANG_BASH:
        path = sb->config->bash;
        break;
    case RUN_LANG_NODE:
        path = sb->config->node;
        break;
    }
    return path && access(path, X_OK) == 0 ? path : NULL;
}
