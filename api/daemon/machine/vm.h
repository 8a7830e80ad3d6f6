/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One skillvm-vmm process: started in the jail with fixed descriptors,
 * watched through its control socket, killed and reaped. vmm/control.h is the contract.
 * What the process says is checked: behind it is a hostile guest.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_VM_H
#define SKILLVM_API_DAEMON_MACHINE_VM_H

#include "base/err.h"
#include "vmm/control.h"
#include "vmm/jail/jail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jail;

struct vm {
    struct jail *jail;       /* borrowed: what started it */
    uint32_t cell;           /* of that */
    pid_t pid;               /* -1 when there is no process */
    int control_fd;          /* owned: SEQPACKET */
    int vsock_fd;            /* owned: the host end of the one connection, non-blocking */
    int weight_fd;           /* owned: as in struct jailed */
    int log_fd;              /* owned: what it writes to its standard error, for vm_finish */
    bool ended;              /* its control socket was found to have ended: it went by itself */
    bool killed;             /* it had not ended when vm_kill ended it */
    int status;              /* of waitpid(2), once vm_finish has reaped it */
    uint64_t memory_max;     /* bytes of the host's that it may have */
    enum jail_memory memory; /* whether that ended it, once vm_finish has reaped it */
};

/* How a process ended. */
enum vm_death {
    VM_DEATH_KILLED, /* by the daemon, when it was no longer needed */
    VM_DEATH_EXIT_0,
    VM_DEATH_EXIT_1,
    VM_DEATH_EXIT_OTHER,
    VM_DEATH_SIGABRT,
    VM_DEATH_SIGBUS,
    VM_DEATH_SIGILL,
    VM_DEATH_SIGKILL, /* by another */
    VM_DEATH_SIGSEGV,
    VM_DEATH_SIGSYS, /* a system call its filter does not allow */
    VM_DEATH_SIGNAL_OTHER,
    VM_DEATH_MEMORY_OVER,  /* by the kernel: it took more of the host's than it may */
    VM_DEATH_MEMORY_SHORT, /* by the kernel: the host had no more */
};
#define VM_DEATHS (VM_DEATH_MEMORY_SHORT + 1)

/* What a process may take of the host's memory beside its guest's, bytes. */
#define VM_OVERHEAD (UINT64_C(64) << 20)

/* Descriptors are borrowed for the call. */
struct vm_boot {
    struct jail *jail;
    int kernel_fd;
    int image_fd;
    int console_fd; /* boot log, or -1 */
    uint32_t memory_mib;
};

/* The files of a snapshot. */
enum vm_file {
    VM_STATE,
    VM_MEMORY,
    VM_WORKING_SET, /* pages to have ready; it need not be there */
};
#define VM_FILES (VM_WORKING_SET + 1)

/* These, open; -1 where there is none. */
struct vm_files {
    int fds[VM_FILES];
};

struct vm_restore {
    struct jail *jail;
    int image_fd;
    struct vm_files files;
    bool reusable; /* vm_reset may be used */
    int record_fd; /* where to note the pages that are used, or -1; see vm_quit */
};

/* The empty value: no process, no descriptors. */
struct vm vm_init(void);

/* Starts a machine. 0 or -errno; the caller ends it with vm_kill. */
int vm_start_boot(const struct vm_boot *boot, struct vm *ret, struct err *err);
int vm_start_restore(const struct vm_restore *restore, struct vm *ret, struct err *err);

/*
 * Takes the next event that is there, without waiting. 0; -EAGAIN when there is none; -EPIPE
 * when the process has gone; -EPROTO for what no VMM of ours says. The message in *ret is
 * NUL-terminated and holds no control bytes.
 */
int vm_next_event(struct vm *vm, struct vmm_event *ret, struct err *err);

/*
 * Waits until an event of this type came. 0; -ETIMEDOUT; -EPIPE or -EREMOTEIO with the reason
 * when the machine ended first. Other events are passed over. deadline_ns is monotonic.
 */
int vm_wait_event(struct vm *vm, enum vmm_event_type type, uint64_t deadline_ns,
                  struct vmm_event *ret, struct err *err);

/* Tells a booted machine to save itself into state and memory and to end. 0 or -errno. */
int vm_send_snapshot(struct vm *vm, const struct vm_files *files, struct err *err);

/*
 * Puts the guest of a reusable machine back to its snapshot, with a new stream in place of the
 * old one, whatever is still in that. 0; -ETIMEDOUT; -EPIPE or -EREMOTEIO with the reason: then
 * the machine is not to be used any more.
 */
int vm_reset(struct vm *vm, uint64_t deadline_ns, struct err *err);

/*
 * Gives its guest a disk of two files (borrowed), one after the other, each of a multiple of
 * 512 bytes. It is there once the event VMM_EVENT_DISK has come, and until the machine is
 * reset. 0 or -errno.
 */
int vm_send_disk(struct vm *vm, const int fds[2], const uint64_t bytes[2], struct err *err);

/*
 * Tells a machine to end by itself and waits for it. 0 when it ended well; -ETIMEDOUT;
 * -EREMOTEIO. vm_finish is due in any case.
 */
int vm_quit(struct vm *vm, uint64_t deadline_ns, struct err *err);
/* User and system time of a process that is not reaped yet, guest included; 0 without one. */
uint64_t vm_cpu_us(const struct vm *vm);
/* Kills the process, without waiting for its end. Safe when there is none. */
void vm_kill(struct vm *vm);
/*
 * Kills and reaps the process and closes everything. The first 4 KiB of what it wrote to its
 * standard error become up to 16 lines of the log, marked as its own, and fewer where other
 * processes had much to say; the rest it could not write. Safe when there is none.
 */
void vm_finish(struct vm *vm);

/* How a finished process ended, and the names of that: "killed", "exit_1", "sigsys". */
enum vm_death vm_death(const struct vm *vm);
extern const char *const vm_death_names[VM_DEATHS];
/* How a finished process ended, for a log line: "exit 1", "signal 9". */
void vm_describe_end(const struct vm *vm, char *text, size_t size);
/* Where memory ended a finished process, puts that before what is known in *err. */
void vm_explain_end(const struct vm *vm, struct err *err);

/* Runs the program with one argument and gives the first line it prints. 0 or -errno. */
int vm_query(const char *program, const char *argument, char *ret_line, size_t size,
             struct err *err);

#endif
