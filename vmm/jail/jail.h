/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm-jail: the process that starts every machine of a daemon, and how the daemon asks it
 * to. It makes once what each machine is put into: namespaces in which there is nothing, a root
 * folder that is empty and cannot be written, and user ids that nobody else has. A machine then
 * costs a fork and an execve. It is the daemon's child all the same (CLONE_PARENT).
 *
 *   skillvm-jail probe          what of that this host allows: "LAYER=ok", "LAYER=why not"
 *   skillvm-jail leave          removes the cgroups that it has made for its parent, the daemon
 *   skillvm-jail --socket-fd N --program-fd N [--layers MASK]
 *
 * socket is one end of a SOCK_SEQPACKET pair: a struct jail_hello comes first; then each struct
 * jail_request has its struct jail_reply. program is what becomes a machine, a statically
 * linked one, since there is nothing to load from. MASK, for tests, leaves layers out; without
 * `landlock` nobody looks whether there is one. The
 * process ends when the socket does, or when no machine can be started any more, and with it
 * the machines that are in its PID namespace; those in its cgroup end when the next one starts,
 * or when the daemon leaves.
 *
 * What the process was not allowed to make is missing, and the hello says why: whether that
 * will do is the daemon's to decide.
 *
 * Sources: namespaces(7), user_namespaces(7), pid_namespaces(7), pivot_root(2), clone(2).
 */
#ifndef SKILLVM_VMM_JAIL_JAIL_H
#define SKILLVM_VMM_JAIL_JAIL_H

#include <stdint.h>

#define JAIL_VERSION 5u
/* The descriptors of a machine: what it is given by the jail, then 5, 6, … by the request. */
#define JAIL_FD_KVM   3 /* /dev/kvm, open for reading and writing */
#define JAIL_FD_PROC  4 /* the daemon's /proc, as O_PATH, until the guest runs */
#define JAIL_FD_FIRST 5
#define JAIL_FDS_MAX  8u
/* All arguments, each ended by a NUL; and how many there may be. */
#define JAIL_TEXT_MAX 1024u
#define JAIL_ARGS_MAX 32u
/* Threads of a machine, whatever its size. It has one for its vCPU and one for its devices, and
   KVM may add one. */
#define JAIL_THREADS 16
/* The cpu.weight of a machine alone in its tenant's share; the kernel's are from 1 to 10,000.
 */
#define JAIL_WEIGHT 6400
/* Machines at the same time, each with a user id of its own. */
#define JAIL_CELLS 1024u
/* The first one's, where root starts them, or who has CAP_SETUID and CAP_SETGID: of a range
   that systemd's UIDS-GIDS.md calls unused. Another user has those of subuid(5). */
#define JAIL_FIRST_USER 1879048192u

enum jail_layer {
    JAIL_NAMESPACES, /* user, mount, PID, network, IPC, UTS and cgroup */
    JAIL_ROOT,       /* an empty root folder */
    JAIL_USERS,      /* a user id for each machine */
    JAIL_LIMITS,     /* a cgroup for each machine */
    JAIL_LANDLOCK,   /* no file by a name: the machine gives that up itself, see vmm/harden.h */
};
#define JAIL_LAYERS (JAIL_LANDLOCK + 1)
static const char *const jail_layer_names[JAIL_LAYERS] __attribute__((unused)) = {
    [JAIL_NAMESPACES] = "namespaces", [JAIL_ROOT] = "root",         [JAIL_USERS] = "users",
    [JAIL_LIMITS] = "limits",         [JAIL_LANDLOCK] = "landlock",
};
#define JAIL_ALL ((1u << JAIL_LAYERS) - 1)

#define JAIL_WHY_MAX 96u

struct jail_hello {
    uint32_t version;
    uint32_t layers;                         /* a bit for each that is there */
    char missing[JAIL_LAYERS][JAIL_WHY_MAX]; /* of each that is not: why */
};

enum jail_wish {
    /* With 1 to JAIL_FDS_MAX descriptors: standard error, then those from JAIL_FD_FIRST on. */
    JAIL_START,
    JAIL_LOOK, /* at the cell of a machine that was reaped, once: whether memory ended it */
};

struct jail_request {
    uint32_t version;
    uint32_t wish;       /* an enum jail_wish; all below but the cell is of JAIL_START */
    uint32_t cell;       /* of 0 to JAIL_CELLS - 1, one in which no machine is */
    uint32_t unused;     /* 0 */
    uint64_t memory_max; /* bytes of the host's, of whatever kind: memory.max */
    char text[JAIL_TEXT_MAX];
};

/* Whether the kernel ended the last machine of a cell for memory, as far as that is known. */
enum jail_memory {
    JAIL_MEMORY_ENOUGH,
    JAIL_MEMORY_OVER,  /* it wanted more than its memory_max */
    JAIL_MEMORY_SHORT, /* the host had no more, or a cgroup above */
};

/* With a descriptor of the cgroup's cpu.weight, for writing, where there is one: it says
   JAIL_WEIGHT. */
struct jail_reply {
    int32_t pid;     /* the daemon's child, or 0 */
    int32_t error;   /* an errno: it is no machine, and is only to be reaped; 0: none */
    uint32_t memory; /* an enum jail_memory: the answer to JAIL_LOOK */
};

#endif
