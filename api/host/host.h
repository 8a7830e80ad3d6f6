/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software host: where KVM cannot run guests, a Debian host emulated by QEMU (TCG with
 * AMD-V) runs the very same programs, and a supervisor outside owns the public unix socket and
 * relays every connection to the daemon inside. Nothing but speed differs.
 *
 * Files, all below <data directory>/softhost/: lock (held while a supervisor lives), disk.img
 * (sparse ext4, what must survive), token (0600, new at each start), status, log, log.old.
 *
 * It must never share its disk with a second supervisor, never listen beyond 127.0.0.1 but for
 * an address that it was told, and never relay a connection that did not show the token.
 */
#ifndef SKILLVM_API_HOST_HOST_H
#define SKILLVM_API_HOST_HOST_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_REASON_MAX 256u
/* What a client is told while the host stands still. */
#define HOST_FULL_TEXT                                                                         \
    "the disk of this machine is full, and the software host stands still until there is "     \
    "room on it; skillvm status names the folder"

struct host_options {
    const char *data_dir;    /* made when missing (0700) */
    const char *socket_path; /* the public socket, made 0660 */
    const char *share_dir;   /* holds softhost/{vmlinux,initrd.img,root.erofs,payload.erofs} */
    const char
        *images_dir;    /* images besides those of the installation; NULL, or not there: none */
    const char *listen; /* an IPv4 address and port that lead to the daemon's; NULL: none */
    const char *config; /* the absolute path of the daemon's settings; NULL: none */
    uint32_t memory_mib; /* of the emulated host; 0: half of this machine's, 1 to 4 GiB */
    uint32_t silence_ms; /* without an answer of the daemon that end a host; 0: 60 s */
    bool counting;       /* clock counts instructions: for measuring, not for use */
};

/* The value of counting that the environment asks for (SKILLVM_SOFT_COUNTING=1). */
bool host_counting_from_env(void);

/* Finds QEMU on the PATH; its own path goes to out (PATH_MAX bytes). */
bool host_find_qemu(char *out);
/* What it needs below the share directory; ends with NULL. */
extern const char *const host_images[];
/* The first of these names that cannot be read below dir, with errno, or NULL. */
const char *host_missing_file(const char *dir, const char *const *names);

/* Who waits for a start. */
struct host_wait {
    void (*progress)(void *ctx, const char *text); /* such as "software host: booting, 3 s" */
    bool (*should_stop)(void *ctx);                /* asked after each signal and each text */
    void *ctx;
};

/*
 * Starts the supervisor in the background (this executable, subcommand host-soft) and waits
 * until the daemon inside answers GET /health, at most 200 s. 0; -EALREADY when one already
 * runs (err says so); -ENOENT when QEMU or an image is missing (err names the package or file);
 * -EINTR when the caller should stop. On failure nothing is left running.
 */
int host_start(const struct host_options *options, const struct host_wait *wait,
               struct err *err);

/*
 * Runs the supervisor in this process until a signal ends it, with its log on standard error.
 * ready_fd is told how it goes (supervisor.h); -1: nobody is. Returns the exit status.
 */
int host_run(const struct host_options *options, int ready_fd);

/*
 * Asks a running supervisor to end: the inner host syncs, powers off and only then the
 * supervisor exits. Waits at most 60 s, then kills. 0; -ESRCH when none runs.
 */
int host_stop(const char *data_dir, struct err *err);

enum host_state { HOST_STOPPED, HOST_BOOTING, HOST_READY, HOST_STOPPING };

struct host_status {
    enum host_state state; /* HOST_STOPPED: no supervisor holds the lock */
    pid_t supervisor_pid;
    pid_t qemu_pid; /* 0 between two boots */
    uint32_t restarts;
    uint64_t boot_ms;    /* start of QEMU to the first answer; 0 while booting */
    uint32_t memory_mib; /* as given to QEMU */
    bool is_full;        /* it stands still, or will, as its disk has no room to grow */
    char last_reason[HOST_REASON_MAX]; /* why it was restarted last; "" when never */
    char log_path[4096];               /* console and supervisor lines */
};

/*
 * What the supervisor of data_dir wrote last. 0 and HOST_STOPPED when none runs; -errno when
 * its files cannot be read.
 */
int host_status_read(const char *data_dir, struct host_status *ret_status, struct err *err);

/* "stopped", "booting", "ready" or "stopping". */
const char *host_state_name(enum host_state state);

/*
 * Entry points of hidden subcommands of skillvm; argv[0] is the subcommand's name. They log to
 * standard error and return the exit status.
 *
 *   skillvm host-soft --data DIR --socket PATH --share DIR [--images DIR]
 *                     [--listen ADDRESS] [--config FILE] [--memory-mib N]
 *                     [--silence-ms N] [--counting]
 *   skillvm relay --port N --socket PATH --token-file FILE    (in the software host)
 */
int host_soft_main(int argc, char **argv);
int host_relay_main(int argc, char **argv);

#endif
