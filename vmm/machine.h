/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One microVM: guest memory, one vCPU on a thread of its own, and its devices. The main
 * thread owns the machine and the host's descriptors; the vCPU thread calls devices from guest
 * exits. `lock` is held across every call into a device and guards what is marked so. Whatever
 * the guest does ends at most this machine, and the reason is kept in words.
 */
#ifndef SKILLVM_VMM_MACHINE_H
#define SKILLVM_VMM_MACHINE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "vmm/arch/arch.h"
#include "vmm/kvm.h"
#include "vmm/last_words.h"
#include "vmm/layout.h"
#include "vmm/memory.h"
#include "vmm/serial.h"
#include "vmm/virtio/blk.h"
#include "vmm/virtio/mmio.h"
#include "vmm/virtio/vsock.h"

/*
 * The devices, each on a virtio-mmio transport; the place of one says its window and interrupt
 * line. A new device is a file in virtio/ and a line in this table in machine.c.
 */
extern const struct virtio_ops *const machine_devices[];
extern const size_t machine_n_devices;

/* Why the guest does not run any more. */
enum machine_end {
    MACHINE_RUNS,
    MACHINE_SHUTDOWN, /* the guest stopped the machine */
    MACHINE_RULES,    /* it broke rules of a device, or did what KVM cannot go on with */
    MACHINE_FAILED,   /* the host could not run it */
};

/* Descriptors are borrowed and must outlive the machine, but for the first. */
struct machine_config {
    int kvm_fd;    /* /dev/kvm, which the machine takes over; -1: it opens it */
    int memory_fd; /* guest memory as a file that is copied on write; -1: fresh memory */
    uint64_t memory_bytes;
    bool log_dirty; /* KVM notes which pages the guest writes */
    struct virtio_host host;
    int console_fd; /* -1: no serial port, and nothing in its window */
};

struct harden_plan;

struct machine {
    bool made; /* machine_init was called */
    struct machine_config config;
    struct kvm kvm;
    void *mapping; /* config.memory_bytes of guest memory */
    struct memory memory;

    pthread_mutex_t lock;
    struct machine_device {
        struct machine *machine;
        uint32_t gsi;
        struct virtio_device *device; /* owned; NULL: not made */
        struct virtio_mmio mmio;
    } devices[LAYOUT_DEVICES_MAX]; /* as machine_devices has them */
    struct vsock *vsock;           /* of devices; what the main thread serves */
    struct blk *disk;              /* of devices; where a skill's disk goes */
    struct serial serial;
    struct last_words last_words; /* under lock; where there is no serial port */

    /* The vCPU thread writes wake_fd when the main thread has something to look at. */
    int wake_fd;
    enum machine_end end; /* under lock */
    struct err end_err;   /* under lock; what happened, in words */
    int waited_events;    /* under lock; vsock_poll_events() as the main thread waits for */
    enum vsock_state seen_state; /* under lock; vsock_state() as the main thread last saw it */

    pthread_t thread;
    bool thread_started;
    const struct harden_plan *plan; /* borrowed: of vcpu_create */
    sem_t gate;                     /* the vCPU thread waits here for vcpu_start */
    sem_t parked;                   /* it waits at the gate again */
    bool at_rest;                   /* vCPU thread, until it parks: nothing is half done */
    atomic_bool stop;               /* asks the vCPU thread to return */
    atomic_bool pause;              /* asks it to park */
    struct {
        pid_t pid;
        _Atomic pid_t tid;
    } kick;                  /* the vCPU thread, as tgkill(2) names it */
    struct arch_flush flush; /* of a reset machine; the vCPU thread's while it runs */
    uint64_t exit_count;     /* vCPU thread only */
};

/*
 * Puts the machine together: memory, KVM machine and vCPU, devices, interrupts. The vCPU has no
 * state yet. 0 or -errno; call machine_finish in both cases.
 */
int machine_init(struct machine *m, const struct machine_config *config, struct err *err);
/*
 * Puts the devices back to how machine_init left them, with another end of the vsock stream
 * (borrowed). The vCPU is paused. Allocates nothing.
 */
void machine_renew_devices(struct machine *m, int vsock_fd);
/*
 * The part of machine_init that makes the devices, which need config.host, memory and kvm, but
 * no usable KVM; and the part of machine_finish that releases them. 0 or -errno.
 */
int machine_make_devices(struct machine *m, struct err *err);
void machine_release_devices(struct machine *m);
/* Stops the vCPU thread and releases everything. Safe on a zeroed machine or one whose init
   failed. */
void machine_finish(struct machine *m);

/* Ends the guest's run for a reason given in words (first one wins) and wakes the main thread.
 */
void machine_set_end(struct machine *m, enum machine_end end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* How the guest ended, with the words in ret_err. */
enum machine_end machine_get_end(struct machine *m, struct err *ret_err);
/* Writes to fd what the guest last wrote to a console that it does not have. Never waits. */
void machine_tell_last_words(struct machine *m, int fd);

/* The guest read or wrote len (1 … 8) bytes at gpa, outside its memory. vCPU thread. */
void machine_mmio(struct machine *m, uint64_t gpa, void *data, uint32_t len, bool is_write);

/*
 * The main thread's side of the devices. vsock_wait serves what earlier calls left behind
 * (*ret_more: there is still more, do not wait), says what to poll the host's end for (see
 * vsock_poll_events) and remembers it, so that the vCPU thread wakes the main thread when it
 * changes.
 */
int machine_vsock_wait(struct machine *m, enum vsock_state *ret_state, bool *ret_more);
void machine_vsock_ready(struct machine *m, short revents);
int machine_vsock_connect(struct machine *m);
/* Gives the guest the disk of a skill, until the devices are renewed. As blk_attach. */
int machine_attach_disk(struct machine *m, int fds[BLK_PARTS_MAX],
                        const uint64_t bytes[BLK_PARTS_MAX], struct err *err);

/* Sends an interrupt pulse on gsi. */
void machine_pulse(struct machine *m, uint32_t gsi);

#endif
