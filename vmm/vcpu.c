/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vCPU thread: enters the guest, hands its exits on, and ends it in words when KVM cannot
 * go on. It must never allocate and never fail for what the guest did.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "vmm/arch/arch.h"
#include "vmm/machine.h"
#include "vmm/vcpu.h"

/* Only interrupts KVM_RUN. */
#define KICK_SIGNAL SIGUSR1

static void on_kick(int signal_number)
{
    (void)signal_number;
}

/*
 * What the guest did in one exit. False when the thread must end. An exit that nothing handles
 * is a guest's doing, not a failure of the host: a guest kernel can cause each of them.
 */
static bool handle_exit(struct machine *m)
{
    struct kvm_run *run = m->kvm.run;

    switch (run->exit_reason) {
    case KVM_EXIT_MMIO:
        machine_mmio(m, run->mmio.phys_addr, run->mmio.data,
                     run->mmio.len > sizeof(run->mmio.data) ? sizeof(run->mmio.data)
                                                            : run->mmio.len,
                     run->mmio.is_write != 0);
        return true;
    case KVM_EXIT_INTR:
        return true;
    case KVM_EXIT_FAIL_ENTRY:
        machine_set_end(m, MACHINE_RULES, "KVM could not enter the guest: reason %#llx",
                        (unsigned long long)run->fail_entry.hardware_entry_failure_reason);
        return false;
    case KVM_EXIT_INTERNAL_ERROR:
        machine_set_end(m, MACHINE_RULES,
                        "KVM could not go on with the guest: internal error %u",
                        run->internal.suberror);
        return false;
    case KVM_EXIT_SYSTEM_EVENT:
        machine_set_end(m, MACHINE_SHUTDOWN, "the guest stopped: system event %u",
                        run->system_event.type);
        return false;
    default:
        break;
    }
    switch (arch_handle_exit(run, m->kvm.run_bytes)) {
    case ARCH_EXIT_CONTINUE:
        return true;
    case ARCH_EXIT_STOPPED:
        machine_set_end(m, MACHINE_SHUTDOWN, "the guest shut down");
        return false;
    case ARCH_EXIT_UNKNOWN:
        break;
    }
    machine_set_end(m, MACHINE_RULES, "the guest caused KVM exit %u, which nothing handles",
                    run->exit_reason);
    return false;
}

static void *vcpu_main(void *arg)
{
    struct machine *m = arg;

    while (sem_wait(&m->gate) < 0 && errno == EINTR)
        ;
    while (!atomic_load(&m->stop)) {
        if (ioctl(m->kvm.vcpu_fd, KVM_RUN, NULL) < 0) {
            if (errno == EINTR || errno == EAGAIN)
                continue;
            machine_set_end(m, MACHINE_FAILED, "KVM_RUN: errno %d", errno);
            break;
        }
        m->exit_count++;
        if (!handle_exit(m))
            break;
    }
    return NULL;
}

int vcpu_create(struct machine *m, struct err *err)
{
    struct sigaction action = {.sa_handler = on_kick};
    int r;

    if (sigaction(KICK_SIGNAL, &action, NULL) < 0)
        return err_set_errno(err, errno, "sigaction");
    atomic_store(&m->stop, false);
    m->kvm.run->immediate_exit = 0;
    r = pthread_create(&m->thread, NULL, vcpu_main, m);
    if (r != 0)
        return err_set_errno(err, r, "starting the vCPU thread");
    m->thread_started = true;
    return 0;
}

void vcpu_start(struct machine *m)
{
    (void)sem_post(&m->gate);
}

void vcpu_stop(struct machine *m)
{
    if (!m->thread_started)
        return;
    /* immediate_exit closes the gap between the thread's look at stop and KVM_RUN. */
    atomic_store(&m->stop, true);
    __atomic_store_n(&m->kvm.run->immediate_exit, 1, __ATOMIC_SEQ_CST);
    (void)pthread_kill(m->thread, KICK_SIGNAL);
    (void)sem_post(&m->gate);
    (void)pthread_join(m->thread, NULL);
    m->thread_started = false;
}

int vcpu_complete_exit(struct machine *m, struct err *err)
{
    m->kvm.run->immediate_exit = 1;
    for (int i = 0; i < 16; i++) {
        int r = ioctl(m->kvm.vcpu_fd, KVM_RUN, NULL);

        if (r < 0 && errno == EINTR)
            return 0;
        if (r < 0 && errno != EAGAIN)
            return err_set_errno(err, errno, "completing the last exit");
        if (r >= 0 && !handle_exit(m))
            break;
    }
    return err_set(err, EIO, "the vCPU does not come to rest");
}
