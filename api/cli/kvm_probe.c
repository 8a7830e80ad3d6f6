/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/kvm_probe.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_TEXT_MAX (64u * 1024u)
/* The probe ends by itself after two seconds; this is for one that hangs in the kernel. */
#define PROBE_PATIENCE_NS (10 * NS_PER_SECOND)

void kvm_probe_parse(struct kvm_probe *probe, char *text)
{
    char *rest = text;

    *probe = (struct kvm_probe){.text = text};
    for (char *line = strsep(&rest, "\n"); line && probe->n < KVM_PROBE_LINES_MAX;
         line = strsep(&rest, "\n")) {
        char *equals = strchr(line, '=');
        if (!equals)
            continue;
        *equals = '\0';
        probe->lines[probe->n].key = line;
        probe->lines[probe->n].value = equals + 1;
        probe->n++;
    }
    const char *result = kvm_probe_get(probe, "result");
    probe->usable = result && strcmp(result, "usable") == 0;
}

const char *kvm_probe_get(const struct kvm_probe *probe, const char *key)
{
    for (size_t i = 0; i < probe->n; i++) {
        if (strcmp(probe->lines[i].key, key) == 0)
            return probe->lines[i].value;
    }
    return NULL;
}

const char *kvm_probe_reason(const struct kvm_probe *probe)
{
    const char *reason = kvm_probe_get(probe, "reason");

    if (probe->usable)
        return "";
    return reason ? reason : "the probe found no usable KVM";
}

void kvm_probe_finish(struct kvm_probe *probe)
{
    free(probe->text);
    *probe = (struct kvm_probe){0};
}

static int spawn(const struct cli *cli, const char *program, int out_fd, pid_t *ret_pid,
                 struct err *err)
{
    char path[PATH_MAX], command[] = "probe";
    /* posix_spawn never writes through it. */
    char *const argv[] = {(char *)(uintptr_t)program, command, NULL};
    posix_spawn_file_actions_t actions;

    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return err_set_errno(err, code, "cannot run the KVM probe");
    code = posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
    if (!code)
        code =
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!code)
        code = posix_spawn(ret_pid, cli_sibling(cli, program, path), &actions, NULL, argv,
                           environ);
    posix_spawn_file_actions_destroy(&actions);
    return code ? err_set_errno(err, code, "cannot run %s", path) : 0;
}

int kvm_probe_run(const struct cli *cli, const char *program, struct kvm_probe *ret_probe,
                  struct err *err)
{
    _cleanup_buf_ struct buf out = buf_init(PROBE_TEXT_MAX);
    _cleanup_fd_ int from = -1, to = -1;
    uint64_t deadline = clock_monotonic_ns() + PROBE_PATIENCE_NS;
    int pipe_fds[2];
    pid_t pid;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_set_errno(err, errno, "cannot run the KVM probe");
    from = pipe_fds[0];
    to = pipe_fds[1];
    int result = spawn(cli, program, to, &pid, err);
    fd_close(&to);
    if (result < 0)
        return result;
    for (;;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        char chunk[4096];
        int n = poll(&ready, 1, clock_timeout_ms(deadline));
        if (n < 0 && errno == EINTR)
            continue;
        ssize_t got = n > 0 ? read(from, chunk, sizeof(chunk)) : 0;
        if (got <= 0)
            break;
        buf_append_clipped(&out, chunk, (size_t)got);
    }
    if (clock_timeout_ms(deadline) == 0)
        kill(pid, SIGKILL);
    (void)process_reap(pid);
    if (!buf_cstr(&out))
        return err_no_memory(err);
    kvm_probe_parse(ret_probe, (char *)steal_ptr(&out.data));
    return 0;
}
