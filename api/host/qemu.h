/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The QEMU process that emulates the software host: its command line, start and end. The
 * settings are those that stayed up over thousands of restores: TCG, one emulated processor.
 */
#ifndef SKILLVM_API_HOST_QEMU_H
#define SKILLVM_API_HOST_QEMU_H

#include "api/host/host.h"
#include "api/host/monitor.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct qemu {
    pid_t pid;     /* 0: not running */
    int pidfd;     /* readable when it ended */
    int output_fd; /* console, and QEMU's own words; non-blocking */
    uint16_t port; /* on 127.0.0.1: leads to the relay inside */
    struct monitor monitor;
};

/* Not running, with nothing open. */
#define QEMU_NONE ((struct qemu){.pidfd = -1, .output_fd = -1, .monitor = {.fd = -1}})

/*
 * -ENOENT with a readable reason when QEMU or one of the images of options->share_dir is not
 * there; else 0.
 */
int qemu_check(const struct host_options *options, struct err *err);

/* RAM for the emulated host when the caller does not say: half of this machine's, 1 to 4 GiB.
 */
uint32_t qemu_default_memory_mib(void);

/*
 * Starts it on a free port, with disk, token and images in place. The process dies with the
 * calling thread. A port that somebody else takes in between shows as an early end of QEMU.
 */
int qemu_start(struct qemu *q, const struct host_options *options, struct err *err);

/*
 * True once QEMU itself listens on its port: then nobody else can until it ends. Before that,
 * the port may be another user's, who must get neither the token nor a request.
 */
bool qemu_owns_port(const struct qemu *q);

/* True while it runs: what was connected to its port before is connected to it. */
bool qemu_alive(const struct qemu *q);

/* Kills it if it runs, reaps it and closes everything. The wait status, or 0 if none ran. */
int qemu_finish(struct qemu *q);

#endif
