/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vCPU thread: enters the guest, hands its exits on, and ends it in words when KVM cannot
 * go on. It must never allocate and never fail for what the guest did.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/arch/arch.h"
#include "vmm/machine.h"
#include "vmm/vcpu.h"

/* Only interrupts KVM_RUN. */
#define KICK_SIGNAL SIGUSR1
/* Times in a row that KVM may say to try again, which it does while a vCPU is made ready. */
#define AGAIN_MAX 1000
/* A string instruction goes on for up to 1024 elements, each of up to four exits. */
#define COMPLETE_STEPS_MAX 8192

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

/*
 * Finishes what the last exit left half done (the result of a read that is not in its register
 * yet), without running the guest. Then the vCPU's state may be read or replaced.
 */
static bool complete_exit(struct machine *m)
{
    for (int i = 0; i < COMPLETE_STEPS_MAX; i++) {
        if (ioctl(m->kvm.vcpu_fd, KVM_RUN, NULL) < 0) {
            if (errno == EINTR)
                return true;
            if (errno != EAGAIN)
                return false;
        } else if (!handle_exit(m)) {
            return false;
        }
    }
    return false;
}

/* False, with the guest ended, when its old address translations may still be there. */
static bool check_flush(struct machine *m)
{
    struct err err = {0};

    if (arch_flush_check(&m->flush, &err) >= 0)
        return true;
    machine_set_end(m, MACHINE_FAILED, "%s", err.message);
    return false;
}

/*
 * EIO is a machine that KVM gave up. Since Linux 6.2 it does that to a guest that brings itself
 * into system management mode, where no memory is: not a failure of the host.
 */
static void end_without_exit(struct machine *m, int error)
{
    if (error == EIO)
        machine_set_end(m, MACHINE_RULES, "KVM gave the guest up");
    else
        machine_set_end(m, MACHINE_FAILED, "KVM_RUN: errno %d", error);
}

/* Enters the guest or somebody asks for the vCPU. */
static void run_guest(struct machine *m)
{
    int again = 0;

    while (!atomic_load(&m->stop) && !atomic_load(&m->pause)) {
        if (ioctl(m->kvm.vcpu_fd, KVM_RUN, NULL) < 0) {
            if (errno == EINTR || (errno == EAGAIN && again++ < AGAIN_MAX))
                continue;
            end_without_exit(m, errno);
            return;
        }
        again = 0;
        m->exit_count++;
        /* Before anything that the guest says is looked at. */
        if (m->flush.due && !check_flush(m))
            return;
        if (!handle_exit(m))
            return;
    }
}

/* False, with the machine ended, when the thread kept what it has to give up. */
static bool give_up(struct machine *m)
{
    struct err err = {0};

    if (harden_thread(m->plan, HARDEN_VCPU, &err) >= 0)
        return true;
    machine_set_end(m, MACHINE_FAILED, "%s", err.message);
    return false;
}

/*
 * All KVM_RUN of a machine come from this thread: one from another thread waits for a grace
 * period of RCU in the kernel. So it lives as long as the machine and parks in between.
 */
static void *vcpu_main(void *arg)
{
    struct machine *m = arg;
    bool ready;

    atomic_store(&m->kick.tid, gettid());
    ready = give_up(m);
    for (;;) {
        while (sem_wait(&m->gate) < 0 && errno == EINTR)
            ;
        if (atomic_load(&m->stop))
            return NULL;
        if (ready)
            run_guest(m);
        m->at_rest = atomic_load(&m->pause) && complete_exit(m);
        (void)sem_post(&m->parked);
    }
}

int vcpu_create(struct machine *m, const struct harden_plan *plan, struct err *err)
{
    struct sigaction action = {.sa_handler = on_kick};
    int r;

    if (sigaction(KICK_SIGNAL, &action, NULL) < 0)
        return err_set_errno(err, errno, "sigaction");
    atomic_store(&m->stop, false);
    atomic_store(&m->pause, false);
    m->kvm.run->immediate_exit = 0;
    m->kick.pid = getpid();
    m->plan = plan;
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

/*
 * Makes the thread leave the guest. The flag that asks for it is set already; immediate_exit
 * closes the gap between the thread's look at it and KVM_RUN. The numbers are those of this
 * process, and the filter allows no others.
 */
static void kick(struct machine *m)
{
    __atomic_store_n(&m->kvm.run->immediate_exit, 1, __ATOMIC_SEQ_CST);
    (void)syscall(SYS_tgkill, m->kick.pid, atomic_load(&m->kick.tid), KICK_SIGNAL);
}

static void wait_parked(struct machine *m)
{
    while (sem_wait(&m->parked) < 0 && errno == EINTR)
        ;
}

int vcpu_pause(struct machine *m, struct err *err)
{
    atomic_store(&m->pause, true);
    kick(m);
    wait_parked(m);
    atomic_store(&m->pause, false);
    m->kvm.run->immediate_exit = 0;
    return m->at_rest ? 0 : err_set(err, EIO, "the vCPU does not come to rest");
}

void vcpu_stop(struct machine *m)
{
    if (!m->thread_started)
        return;
    atomic_store(&m->stop, true);
    kick(m);
    (void)sem_post(&m->gate);
    (void)pthread_join(m->thread, NULL);
    m->thread_started = false;
}
