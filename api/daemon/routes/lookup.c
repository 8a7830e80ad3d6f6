/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/lookup.h"

#include "api/daemon/routes/failure.h"
#include "api/daemon/terms/ids.h"
#include "api/skill/sha256.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What cannot be an id is no different from one that nobody has. */
static int find_row(struct daemon *d, const char *tenant, const char *id,
                    struct registry_execution *ret, struct err *err)
{
    return ids_valid(ID_EXECUTION, id)
               ? registry_execution_get(d->registry, tenant, id, ret, err)
               : -ENOENT;
}

bool lookup_row(struct daemon *d, const char *tenant, const char *id,
                struct registry_execution *ret, struct http_reply *reply)
{
    struct err err = {0};
    int r = find_row(d, tenant, id, ret, &err);

    return r == 0 || failure_of(reply, r, "execution", id, &err);
}

/* A turn at a large one, which is here by then: nobody has a turn while he waits for servers.
 */
static int take_turn(struct daemon *d, const struct registry_execution *row, struct turn *turn,
                     struct err *err)
{
    _cleanup_fd_ int fd = -1;

    if (row->result_bytes <= TURN_LOOK_BYTES)
        return 0;
    if (row->node[0] && row->result_digest) {
        fd = objects_get(d->objects, row->result_digest, err);
        if (fd < 0)
            return fd;
    }
    return turn_take(turn, d, TURN_LOOK, row->tenant, err);
}

bool lookup_result(struct daemon *d, struct http_request *http, struct registry_execution *row,
                   struct turn *turn, struct http_reply *reply)
{
    struct err err = {0};
    int r;

    if (!http_request_hold_answer(http, row->result_bytes))
        return false;
    r = take_turn(d, row, turn, &err);
    if (r < 0)
        return failure_reply(reply, r, &err);
    r = ledger_read_result(d->registry, d->objects, row, &err);
    if (r == -ENOENT && err.code == 0)
        return failure_of(reply, r, "execution", row->id, &err);
    return failure_or_true(reply, r, &err);
}

void lookup_reply_result(struct daemon *d, const struct http_request *http,
                         struct registry_execution *row, struct http_reply *reply)
{
    struct buf body = buf_init(SIZE_MAX / 2);

    /* The text moves, it is not copied: it may be large. */
    body.len = strlen(row->result);
    body.cap = body.len + 1;
    body.data = (uint8_t *)row->result;
    row->result = NULL;
    daemon_reply_result(d, http, reply, &body);
}

bool lookup_is_elsewhere(const struct registry_execution *row)
{
    return row->node[0] && row->finished_ns == 0;
}

/* The descriptor; -ENOENT with a digest where that is not here. */
static int open_here(struct daemon *d, const char *tenant, const char *id,
                     char ret_digest[SHA256_HEX_SIZE], struct err *err)
{
    /* Retention may be about to remove it. */
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    _cleanup_registry_execution_ struct registry_execution row = {0};
    int r = find_row(d, tenant, id, &row, err);

    ret_digest[0] = '\0';
    if (r == -ENOENT)
        return err_set(err, ENOENT, "there is no execution %.64s", id);
    if (r < 0)
        return r;
    if (row.artifact_digest) {
        (void)snprintf(ret_digest, SHA256_HEX_SIZE, "%s", row.artifact_digest);
        return store_get(store, row.artifact_digest, err);
    }
    return err_set(err, ENOENT,
                   row.finished_ns > 0 ? "execution %s left no files"
                                       : "execution %s has not ended yet",
                   id);
}

int lookup_files(struct daemon *d, const char *tenant, const char *id, struct err *err)
{
    char digest[SHA256_HEX_SIZE];
    int fd = open_here(d, tenant, id, digest, err);

    if (fd >= 0 || !digest[0])
        return fd;
    if (fd == -ENOENT && d->ledger) {
        *err = (struct err){0};
        fd = objects_get(d->objects, digest, err);
    }
    return fd == -ENOENT ? -EIO : fd;
}

bool lookup_execution(struct daemon *d, const char *tenant, const char *id,
                      struct execution **ret_e, struct registry_execution *ret_row,
                      struct http_reply *reply)
{
    unsigned tries = 0;

    for (;;) {
        *ret_e = engine_find(d->engine, tenant, id);
        if (*ret_e)
            return true;
        if (!lookup_row(d, tenant, id, ret_row, reply))
            return false;
        /* Between its row and its place in the queue an execution is for microseconds. */
        if (ret_row->finished_ns > 0 || lookup_is_elsewhere(ret_row) ||
            !clock_try_again(&tries))
            return true;
        registry_execution_finish(ret_row);
    }
}
