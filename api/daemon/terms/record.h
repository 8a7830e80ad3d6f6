/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution as the nodes of a cluster tell each other of it: the whole of what is known, so
 * that of several records of one only the last counts. Values alone.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_RECORD_H
#define SKILLVM_API_DAEMON_TERMS_RECORD_H

#include "api/daemon/terms/fleet_words.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/daemon/terms/tenant.h"

#include <stdint.h>

#define RECORD_ID_SIZE       (sizeof(ID_EXECUTION) + ID_DIGITS)
#define RECORD_DIGEST_SIZE   65u /* SHA-256, hexadecimal */
#define RECORD_INSTANCE_SIZE 33u
#define RECORD_STATUS_SIZE   16u
#define RECORD_IMAGE_SIZE    65u
/* A longer result is an object, as is a longer request: bytes of its JSON string. */
#define RECORD_RESULT_MAX  32768u
#define RECORD_REQUEST_MAX 32768u
/* What nobody says of one who is honest. */
#define RECORD_RESULT_BYTES_MAX   (64 * LIMIT_MIB)
#define RECORD_ARTIFACT_BYTES_MAX (2 * LIMIT_FILES_STREAM)
#define RECORD_CPU_MS_MAX         (7ull * 86400 * 1000)

/* Texts are "" where there is none. */
struct record {
    char id[RECORD_ID_SIZE];
    char tenant[TENANT_ID_SIZE];
    char node[FLEET_NODE_SIZE];          /* where it runs */
    char instance[RECORD_INSTANCE_SIZE]; /* of that node's process */
    char skill_name[LIMIT_NAME_BYTES + 1];
    char skill_version[LIMIT_VERSION_BYTES + 1];
    char skill_digest[RECORD_DIGEST_SIZE];
    char idempotency_key[LIMIT_KEY_BYTES + 1];
    char request_digest[RECORD_DIGEST_SIZE]; /* with a key */
    uint64_t accepted_ns;                    /* realtime, as all here */
    uint64_t seen;     /* up to which revision that node knew of changes: its tenant is there */
    bool is_cancelled; /* somebody wants it to end */

    /*
     * It has not begun: where its process is gone, or gives it away, another one runs what its
     * request says. So does one of what ran at a process that is gone, as often as it may.
     */
    bool waits;
    unsigned retries; /* how often it may be begun again; its request is there while it is > 0
                       */
    bool was_begun;   /* it waits, and ran at a process that is gone: to begin it takes one */
    char request_object[RECORD_DIGEST_SIZE]; /* of the object that the request is; or it is
                                                here: */
    const char *request;                     /* borrowed, one JSON string */
    size_t request_bytes;                    /* of that */
    char request_image[RECORD_IMAGE_SIZE];   /* that it runs in; "": not known */

    char status[RECORD_STATUS_SIZE]; /* how it ended; "": it has not */
    uint64_t finished_ns;
    uint64_t cpu_ms;
    char artifact_digest[RECORD_DIGEST_SIZE];
    uint64_t artifact_bytes;
    char result_digest[RECORD_DIGEST_SIZE]; /* of the object that its result is; or it is here:
                                             */
    const char *result;                     /* borrowed, one JSON object */
    uint64_t result_bytes;                  /* in both cases */
    uint64_t revision;                      /* of what the servers have; 0: it is not of them */
};

/* Whether both are one process's. */
bool record_is_of_same(const struct record *one, const struct record *other);
/* How often one that was claimed may be begun again once it has begun, by the record as it was.
 */
unsigned record_retries_left(const struct record *there);

#endif
