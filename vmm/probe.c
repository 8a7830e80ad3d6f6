/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "vmm/arch/arch.h"
#include "vmm/kvm.h"

#define MILLISECOND_NS 1000000ull

/* Kept back from the time limit for killing the child and printing. */
#define RESERVE_MS 100u

static void put_outcome(char *out, size_t cap, int r, const struct err *err)
{
    if (r >= 0)
        (void)snprintf(out, cap, "ok");
    else
        (void)snprintf(out, cap, "%.*s", (int)cap - 1, err->message);
}

/* The child: everything that touches KVM. */
static void probe(struct probe_report *report, unsigned test_ms)
{
    struct kvm kvm = kvm_init();
    struct err err = {0};
    int r = kvm_open(&kvm, -1, &err);

    put_outcome(report->open, sizeof(report->open), r, &err);
    if (r < 0)
        return;
    report->api_version = KVM_API_VERSION;
    r = kvm_create_vm(&kvm, &err);
    put_outcome(report->vm, sizeof(report->vm), r, &err);
    kvm_finish(&kvm);
    if (r >= 0)
        arch_probe(report, test_ms);
}

/* Waits for the child until deadline_ns, then kills it. It may not even die: no wait for that.
 */
static void supervise(pid_t child, int done_fd, uint64_t deadline_ns)
{
    struct pollfd p = {.fd = done_fd, .events = POLLIN};
    int r;

    do {
        r = poll(&p, 1, clock_timeout_ms(deadline_ns));
    } while (r < 0 && errno == EINTR);
    if (r <= 0)
        (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, r > 0 ? 0 : WNOHANG);
}

int probe_run(unsigned timeout_ms, struct probe_report *ret_report, struct err *err)
{
    unsigned limit_ms = timeout_ms > 2 * RESERVE_MS ? timeout_ms - RESERVE_MS : RESERVE_MS;
    uint64_t deadline_ns = clock_monotonic_ns() + limit_ms * MILLISECOND_NS;
    struct probe_report *shared;
    int pipe_fds[2];
    pid_t child;

    shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return err_set_errno(err, errno, "mmap");
    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        int r = err_set_errno(err, errno, "pipe");

        (void)munmap(shared, sizeof(*shared));
        return r;
    }
    arch_cpu_model(shared->cpu, sizeof(shared->cpu));
    child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(pipe_fds[0]);
        /* Every test but the last may hang and the last still has its turn. */
        probe(shared, limit_ms / (PROBE_TESTS_MAX + 1));
        _exit(0);
    }
    fd_close(&pipe_fds[1]);
    if (child > 0)
        supervise(child, pipe_fds[0], deadline_ns);
    else
        (void)err_set_errno(err, errno, "fork");
    fd_close(&pipe_fds[0]);
    *ret_report = *shared;
    (void)munmap(shared, sizeof(*shared));
    return child > 0 ? 0 : -EAGAIN;
}

bool probe_explain(const struct probe_report *report, char *reason, unsigned cap)
{
    if (strcmp(report->open, "ok") != 0) {
        (void)snprintf(reason, cap, "the device cannot be used: %s",
                       report->open[0] ? report->open : "opening it does not return");
        return false;
    }
    if (strcmp(report->vm, "ok") != 0) {
        (void)snprintf(reason, cap, "the device opens but creates no machine: %s",
                       report->vm[0] ? report->vm : "the call does not return");
        return false;
    }
    for (uint32_t i = 0; i < report->n_tests; i++) {
        const struct probe_test *t = &report->tests[i];

        if (t->status == PROBE_OK)
            continue;
        (void)snprintf(reason, cap,
                       "the device opens but %s %s in the guest: an ordinary kernel cannot run",
                       t->label,
                       t->status == PROBE_FAILED ? t->text : "does not come to an end");
        return false;
    }
    if (report->n_tests == 0 || report->instructions_per_second == 0) {
        (void)snprintf(reason, cap, "the device opens but its guest does not start");
        return false;
    }
    if (report->instructions_per_second < PROBE_MIN_INSTRUCTIONS_PER_SECOND) {
        (void)snprintf(reason, cap,
                       "the device opens but runs only %.1f million instructions per second: "
                       "it emulates them one by one",
                       (double)report->instructions_per_second / 1e6);
        return false;
    }
    return true;
}
