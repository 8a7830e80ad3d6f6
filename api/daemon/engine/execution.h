/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One execution as the daemon holds it while anybody needs it: what to run, the log so far, how
 * it ended. Counted references; a worker writes, any number of readers follow, and a reader
 * that reads slowly or not at all never holds up the worker: the log is bounded and kept whole.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_EXECUTION_H
#define SKILLVM_API_DAEMON_ENGINE_EXECUTION_H

#include "api/daemon/engine/fair_queue.h"
#include "api/daemon/engine/waiting.h"
#include "api/daemon/machine/guest_decoder.h"
#include "api/daemon/machine/image_tables.h"
#include "api/daemon/machine/job.h"
#include "api/daemon/store/store.h"
#include "api/daemon/terms/tenant.h"
#include "api/skill/image_choice.h"
#include "api/skill/profile.h"
#include "api/skill/skill.h"
#include "base/buf.h"
#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define EXECUTION_ID_SIZE 38u

/* A run of bytes of one stream in the log. */
#define EXECUTION_SEGMENT_STDERR 0x80000000u
#define EXECUTION_SEGMENT_LENGTH 0x7fffffffu

/* COLLECTING: the skill has ended, what it left is still on its way. */
enum execution_state {
    EXECUTION_ACCEPTED,
    EXECUTION_RUNNING,
    EXECUTION_COLLECTING,
    EXECUTION_ENDED,
    EXECUTION_MOVED, /* another node has it, or says how it ended: its row tells */
};

struct execution {
    /* Fixed from its submission on; strings are owned. */
    char id[EXECUTION_ID_SIZE];
    char tenant[TENANT_ID_SIZE]; /* whose it is */
    struct tenant_limits limits; /* of the tenant, when engine_admit let it in */
    bool admitted;
    bool is_given; /* by another node, which admitted it too */
    char *skill_name;
    char *skill_version;
    char *skill_digest;
    char *packages;           /* that it gets, as wheels.h writes them; NULL: none */
    uint64_t packages_python; /* the minor version of Python 3 they are for; 0: unknown */
    char *idempotency_key;    /* NULL: none */
    char *session;            /* its id; NULL: none */
    char *request_digest;     /* with a key: of everything the request says */
    uint64_t accepted_ns;     /* realtime */
    uint64_t queued_ns;       /* monotonic */
    int cancel_fd;            /* eventfd: readable once it shall end */

    /* Where others may run it until it begins, what they need for that; empty once accepted. */
    bool waits;
    struct waiting_request request;
    unsigned retries; /* how often others may begin it again where this process is lost */
    bool is_left;     /* its run was ended for that, by __atomic alone, as the next two */
    bool is_gone;     /* another node has begun it again: what its run gives is nothing */
    bool is_wanted;   /* somebody wants it to end */
    bool is_bound;    /* what it was given is nowhere else any more */
    bool is_taken;    /* another process had it: the cluster knows that it is here, and waits */

    struct fair_tenant *turn;  /* a draft's place in the queue; NULL: none is kept yet */
    bool fresh;                /* its machine shall have run, and shall run, nothing else */
    struct image_choice image; /* why is "" where none was chosen */
    struct images *images;     /* of which it was; NULL: none was, or it has ended */
    char profile[PROFILE_NAME_SIZE]; /* of its skill's imports */

    /* Its worker's alone once it was submitted. */
    struct job job;
    struct skill_strings warnings;
    /* What counts as its tenant's as long as it has its job; NULL: nothing. */
    void *holding;
    void (*give_back)(void *holding);

    pthread_mutex_t lock;   /* for all below */
    pthread_cond_t changed; /* its state */
    pthread_cond_t logged;  /* that, or its log */
    unsigned references;
    enum execution_state state;
    bool ran; /* it was RUNNING once */
    bool log_clipped;
    struct buf log;      /* the bytes of both streams, in the order they came */
    struct buf segments; /* u32 each, covering log: see below */
    /* The result JSON, once ended: for readers that take their time, a large one is in a file.
     */
    struct buf result;
    int result_fd; /* nameless; -1: it is in memory */
    size_t result_len;
    char lost[ERR_MESSAGE_MAX]; /* why the result is not in the registry; "" when it is */

    /* The engine's, under its lock. */
    LIST_ENTRY(execution) live;
    LIST_ENTRY(execution) of_session;
    struct fair_entry place;
};

/* A draft with a fresh id and one reference, to be completed and submitted. NULL: no memory. */
struct execution *execution_create(const char *tenant, struct err *err);
/* Copies what the skill is called. 0 or -ENOMEM. Once. */
int execution_set_skill(struct execution *e, const char *name, const char *version,
                        const char *digest);
struct execution *execution_ref(struct execution *e);
/* What it was given is not needed any more, by whoever has its job alone. */
void execution_let_go(struct execution *e);
/* NULL is fine. */
void execution_unref(struct execution *e);

/* What its image is called; NULL: none was chosen. */
const char *execution_image(const struct execution *e);

/* Makes the cancel descriptor readable. */
void execution_cancel(struct execution *e);
/* Moves on to RUNNING or COLLECTING. */
void execution_set_state(struct execution *e, enum execution_state state);
/*
 * Adds to the log; past LIMIT_LOG_BYTES bytes are dropped and the log counts as clipped. So it
 * is where the streams take turns for the LIMIT_LOG_PARTS-th time.
 */
void execution_append_log(struct execution *e, enum guest_stream stream, const void *data,
                          size_t len);
/* What it keeps in memory of the log so far, in bytes. */
size_t execution_log_memory(struct execution *e);
/* Appends the log so far, both streams as they came, to out. 0, -E2BIG or -ENOMEM. */
int execution_copy_log(struct execution *e, struct buf *out);
/*
 * Sets the result (taken over) and wakes every reader. Once. lost says why it could not be
 * stored, NULL when it was. The store has a place for a large one.
 */
void execution_end(struct execution *e, const struct store *store, struct buf *result,
                   const char *lost);
/* Copies len bytes of the result of one that has ended. 0, or -errno (-EIO past its end). */
int execution_read_result(const struct execution *e, size_t at, void *data, size_t len);
enum execution_state execution_get_state(struct execution *e);
/*
 * Another process has it: wakes every reader. Once, in place of execution_end.
 */
void execution_move(struct execution *e);
/*
 * Waits for the end. True: the result is then constant and may be read without the lock. False:
 * it was moved.
 */
bool execution_wait(struct execution *e);

/* Where a reader of the log is. Zero-initialise. */
struct execution_cursor {
    size_t log_at;
    size_t segment_at;   /* bytes of segments */
    uint32_t in_segment; /* bytes of that segment already read */
    bool told_ran;
    uint64_t rests_ns; /* monotonic: until then it gets nothing of the log */
};

/* Until the next piece: the longer, the more there are who wait for it. Its end is never late.
 */
void execution_rest(struct execution *e, struct execution_cursor *cursor);

/* As where a reader is who has so many bytes of the log, or all of it where it has fewer. */
void execution_seek(struct execution *e, size_t log_at, struct execution_cursor *cursor);

enum execution_news {
    EXECUTION_NOTHING, /* the time is up */
    EXECUTION_STATE,   /* it runs, or has run; comes once, and before any of its log */
    EXECUTION_LOG,     /* bytes of a stream */
    EXECUTION_RESULT,  /* ended and all of the log was read */
    EXECUTION_GONE,    /* it was moved */
};

/*
 * Waits until there is news for this reader, at most until deadline_ns (monotonic). For
 * EXECUTION_LOG up to size bytes of one stream are copied to data.
 */
enum execution_news execution_next(struct execution *e, struct execution_cursor *cursor,
                                   uint64_t deadline_ns, enum guest_stream *ret_stream,
                                   void *data, size_t size, size_t *ret_len);

#endif
