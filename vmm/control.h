/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the daemon drives a skillvm-vmm process: command line, inherited descriptors, and fixed
 * size messages over one SOCK_SEQPACKET socket. Free of dependencies; never JSON.
 *
 *   skillvm-vmm boot    --control-fd N --vsock-fd N --kernel-fd N --image-fd N
 *                       --memory-mib N [--console-fd N] [--kvm-fd N] [--proc-fd N]
 *   skillvm-vmm restore --control-fd N --vsock-fd N --image-fd N --state-fd N --memory-fd N
 *                       [--working-set-fd N] [--record-fd N] [--console-fd N]
 *                       [--reusable] [--kvm-fd N] [--proc-fd N]
 *   skillvm-vmm probe   [--timeout-ms N]        text on standard output, see below
 *   skillvm-vmm fingerprint                      prints the CPU fingerprint, one line
 *   skillvm-vmm --help | --version
 *
 * Descriptors: control is the SEQPACKET socket; vsock is one end of a stream socketpair that
 * carries the bytes of the single connection to guest port 1024; kernel (vmlinux), image
 * (root file system), state and memory are read-only files, trusted because the daemon checked
 * their digests; console is where a serial port writes, which no machine has without: the
 * daemon gives one only to the machine that it boots for a snapshot. kvm is /dev/kvm, proc the
 * folder /proc, of which it opens self/oom_score_adj, and self/pagemap with --reusable; the VMM
 * opens no path but those two, where they are not given.
 *
 * The working set is a hint made by an earlier machine of the same snapshot: a restore with
 * --record-fd (an empty file, open for writing) writes it when the machine ends by QUIT or by
 * itself; a restore with --working-set-fd makes those pages private up front. The format is in
 * vmm/working_set.h.
 *
 * The connection to the guest: after boot or restore the VMM connects to guest port 1024,
 * trying again every 2 ms while nobody listens. When the host end of vsock is shut down or
 * closed the connection is closed towards the guest; when the guest closes, the VMM shuts down
 * the host end for writing.
 *
 * The VMM ends itself when the control socket closes, so no machine outlives its daemon. It is
 * also killed when the thread that started it ends (PR_SET_PDEATHSIG).
 *
 * Exit status: 0 the guest shut down or QUIT came, 1 failed (a FAILED event says why),
 * 2 wrong command line.
 */
#ifndef SKILLVM_VMM_CONTROL_H
#define SKILLVM_VMM_CONTROL_H

#include <stdint.h>

#define VMM_CONTROL_VERSION 2u
#define VMM_MESSAGE_MAX     256u
/* The most that both files of a DISK command have together. */
#define VMM_DISK_BYTES_MAX (1ull << 30)

enum vmm_command_type {
    /*
     * boot only: stop the vCPU, save, and exit 0. Carries two descriptors open for reading and
     * writing: state, memory. Refused (FAILED) while a guest connection is open: close the
     * vsock end first; the VMM waits up to 2 s for the guest to finish closing.
     */
    VMM_COMMAND_SNAPSHOT = 1,
    VMM_COMMAND_QUIT = 2,
    /*
     * restore with --reusable only: puts the guest back to its snapshot, whatever it is doing,
     * and lets it run. Carries one descriptor, the VMM's end of a new stream socketpair, which
     * takes the place of the old one; the guest is then connected to as after a restore.
     * Answered by RESET, or by FAILED and the end of the process. A guest that has ended cannot
     * be reset.
     */
    VMM_COMMAND_RESET = 3,
    /*
     * restore without --record-fd only: the guest's second disk, empty until then, holds two
     * files one after the other, which the two descriptors it carries are open to be read of:
     * disk_bytes of each, a positive multiple of 512, VMM_DISK_BYTES_MAX together at most,
     * which do not change. Answered by DISK, before which the guest must not look at it. A
     * RESET empties it again; a second one before that is refused.
     */
    VMM_COMMAND_DISK = 4,
};

struct vmm_command {
    uint32_t version;       /* VMM_CONTROL_VERSION */
    uint32_t type;          /* enum vmm_command_type */
    uint64_t disk_bytes[2]; /* DISK; else 0 */
};

enum vmm_event_type {
    VMM_EVENT_RESUMED = 1,   /* about to enter the guest for the first time */
    VMM_EVENT_CONNECTED = 2, /* the guest accepted the vsock connection */
    VMM_EVENT_SNAPSHOT = 3,  /* the snapshot is written (not yet fsynced: the daemon does) */
    VMM_EVENT_EXITED = 4,    /* the guest shut down by itself; value: enum vmm_exit_reason */
    VMM_EVENT_FAILED = 5,    /* message says what went wrong; the process ends */
    VMM_EVENT_RESET = 6,     /* about to enter the guest again; value: pages put back */
    VMM_EVENT_DISK = 7,      /* the disk is there */
};

enum vmm_exit_reason {
    VMM_EXIT_SHUTDOWN = 1, /* triple fault or KVM shutdown, which is how a guest kernel stops */
    /* a device found the guest breaking its rules beyond repair, or KVM could not go on */
    VMM_EXIT_RULES = 2,
};

struct vmm_event {
    uint32_t version; /* VMM_CONTROL_VERSION */
    uint32_t type;    /* enum vmm_event_type */
    uint64_t time_ns; /* CLOCK_MONOTONIC when it happened */
    uint64_t value;
    char message[VMM_MESSAGE_MAX]; /* NUL-terminated; "" where there is nothing to say */
};

/*
 * probe prints one `key=value` line per finding and exits 0 when KVM can run guests, 1 when it
 * cannot. Keys: device (path), open (ok|error text), api_version, vm (ok|…),
 * test.<name>=ok|fail (text) for ring0, ring3, syscall, cmpxchg16b, xsave, popcnt, int3,
 * instructions_per_second, exits_per_second, cpu (model text), reason (one sentence, only
 * when unusable), result=usable|unusable. It never takes longer than --timeout-ms (default
 * 2000).
 */

#endif
