/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a machine shall run, whoever wants it run: one value, and the one writer of a RUN frame
 * (guest-init/proto.h). It knows nothing of who asked.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_JOB_H
#define SKILLVM_API_DAEMON_MACHINE_JOB_H

#include "api/daemon/machine/input_files.h"
#include "base/buf.h"
#include "guest-init/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_DIGEST_SIZE 65u

/* Bytes on their way to a guest: of a file, or in memory. Owned. */
struct job_bytes {
    char digest[JOB_DIGEST_SIZE]; /* of an object that stays; "": they are none */
    int fd;                       /* read by pread; -1: they are in memory */
    struct buf memory;
    uint64_t at; /* where they begin in either */
    uint64_t len;
};

/* The lists that say which hosts it may reach (egress.h). Owned. */
struct job_network {
    char *declared; /* NULL: it has no network */
    char *policy;   /* NULL: all that is declared */
    char *asked;    /* NULL: the same */
};

/* Everything is owned. */
struct job {
    struct buf run;            /* the RUN payload, once job_encode has written it */
    struct job_bytes packages; /* a tar for /sandbox/packages; empty: none */
    struct job_bytes skill;    /* the canonical tar */
    struct job_bytes disk;     /* a file: its head (api/skill/disk.h), to be read from there */
    struct job_bytes input;    /* JSON; without any the guest gets "{}" */
    struct input_files files;
    struct job_bytes session; /* a plain tar of what it finds there; none: an empty one */
    bool has_session;
    struct job_network network;
    uint64_t timeout_ms;
    uint64_t memory_bytes;
    uint32_t pids; /* processes and threads */
};

/* What the guest is told to run. Everything is borrowed. */
struct job_orders {
    const char *lang;
    enum proto_mode mode;
    const char *entry;
    const char *const *args;
    size_t n_args;
    const char *const *env; /* "NAME=value" */
    size_t n_env;
    const char *instructions; /* NULL: none */
    size_t instructions_len;
    const char *skill_name; /* NULL: none */
};

/* The empty job. */
struct job job_init(void);
/* Safe on an initialised or finished job. */
void job_finish(struct job *job);
#define _cleanup_job_ __attribute__((cleanup(job_finish)))

/*
 * Writes RUN from the orders, the job's own limits, and whether it has packages and a disk. 0,
 * -E2BIG or -ENOMEM.
 */
int job_encode(struct job *job, const struct job_orders *orders);

/* Its input, or the empty object that a skill without one finds. Borrowed. */
const struct job_bytes *job_input(const struct job *job);

/* Reads len bytes of them, from an offset in them on. 0 or -errno (-EIO past the end). */
int job_bytes_read(const struct job_bytes *bytes, uint64_t offset, void *data, size_t len);

#endif
