/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/live.h"

#include "api/daemon/routes/forward.h"
#include "api/daemon/routes/lookup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CHUNK      8192u
#define LOOKS      3u            /* of one that moves from node to node */
#define ARRIVES_NS NS_PER_SECOND /* until what a node says has ended has an end here */

_Static_assert(LIVE_IMAGE_SIZE >= IMAGE_NAME_SIZE && LIVE_REASON_SIZE >= IMAGE_WHY_SIZE,
               "what is said of an image fits");

/* Adds what of the log fits, and says how it is once it was read up to there. 0 or -ENOMEM. */
static int add_pieces(struct execution *e, struct execution_cursor *cursor,
                      enum live_state *ret_state, struct buf *pieces)
{
    uint8_t data[CHUNK];
    enum guest_stream stream = GUEST_STDOUT;
    size_t len;

    while (live_piece_fits(pieces->len, sizeof(data))) {
        switch (execution_next(e, cursor, 0, &stream, data, sizeof(data), &len)) {
        case EXECUTION_LOG:
            if (live_piece_write(stream == GUEST_STDERR, data, len, pieces) < 0)
                return -ENOMEM;
            continue;
        case EXECUTION_STATE:
            *ret_state = LIVE_RUNS;
            continue;
        case EXECUTION_NOTHING:
            return 0;
        /* What is left of the log is given first. */
        case EXECUTION_RESULT:
        case EXECUTION_GONE:
            if (pieces->len == 0)
                *ret_state = LIVE_NONE;
            return 0;
        }
    }
    return 0;
}

static void describe(const struct execution *e, struct live_answer *ret)
{
    if (!execution_image(e))
        return;
    (void)snprintf(ret->image, sizeof(ret->image), "%s", execution_image(e));
    (void)snprintf(ret->image_reason, sizeof(ret->image_reason), "%s", e->image.why);
}

/* Appends an answer where it says something new. False: there is nothing. */
static bool tell(struct execution *e, const struct live_ask *ask, bool is_last,
                 struct buf *answer)
{
    _cleanup_buf_ struct buf pieces = buf_init(LIVE_LOG_MAX);
    struct execution_cursor cursor = {.told_ran = ask->is_begun};
    const enum live_state known = ask->is_begun ? LIVE_RUNS : LIVE_WAITS;
    struct live_answer head = {.state = known};

    execution_seek(e, ask->log_at, &cursor);
    if (add_pieces(e, &cursor, &head.state, &pieces) < 0)
        return true;
    if (!is_last && pieces.len == 0 && head.state == known)
        return false;
    describe(e, &head);
    (void)live_answer_write(&head, answer);
    (void)buf_append(answer, pieces.data, pieces.len);
    return true;
}

/* What one that was accepted has, and one that is about to be has not. */
static void tell_row(struct daemon *d, const struct live_ask *ask, struct buf *answer)
{
    const struct live_answer head = {
        .state = ledger_knows(d->ledger, ask->tenant, ask->id) ? LIVE_KNOWN : LIVE_NONE};

    (void)live_answer_write(&head, answer);
}

bool live_look(void *place, const struct live_ask *ask, bool is_last, struct buf *answer)
{
    const struct forward_place *p = place;
    static const struct live_answer none = {.state = LIVE_NONE};
    struct execution *e;
    bool is_told = true;

    if (ask->is_of_row) {
        tell_row(p->daemon, ask, answer);
        return true;
    }
    e = engine_find(p->daemon->engine, ask->tenant, ask->id);
    if (e)
        is_told = tell(e, ask, is_last, answer);
    else
        (void)live_answer_write(&none, answer);
    execution_unref(e);
    return is_told;
}

void live_finish(struct live *live)
{
    execution_unref(live->e);
    registry_execution_finish(&live->row);
    live_copy_finish(&live->copy);
    *live = (struct live){0};
}

int live_ask_owner(struct daemon *d, const struct registry_execution *row, struct live_ask *ask,
                   struct live_copy *ret, struct err *err)
{
    (void)snprintf(ask->tenant, sizeof(ask->tenant), "%s", row->tenant);
    (void)snprintf(ask->id, sizeof(ask->id), "%s", row->id);
    return cluster_ask_live(d->cluster, row->node, ask, ret, err);
}

/* As it is now. False where that is not known. */
static bool ask_now(struct daemon *d, const struct registry_execution *row, size_t log_at,
                    struct live_copy *ret)
{
    struct live_ask ask = {.log_at = (uint32_t)log_at};
    struct err ignored = {0};

    return live_ask_owner(d, row, &ask, ret, &ignored) == 0;
}

/* Until its end is here, or for a moment: it is on its way, or another node has it. */
static bool await_end(struct daemon *d, const char *tenant, const char *id)
{
    _cleanup_registry_execution_ struct registry_execution row = {0};
    struct err ignored = {0};

    return ledger_wait(d->ledger, tenant, id, clock_monotonic_ns() + ARRIVES_NS, &row,
                       &ignored) == 0;
}

bool live_lookup(struct daemon *d, const char *tenant, const char *id, uint32_t log_at,
                 struct live *ret, struct http_reply *reply)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        live_finish(ret);
        if (!lookup_execution(d, tenant, id, &ret->e, &ret->row, reply))
            return false;
        if (ret->e || !lookup_is_elsewhere(&ret->row) ||
            !ask_now(d, &ret->row, log_at, &ret->copy) || ret->copy.answer.state != LIVE_NONE)
            return true;
        if (!await_end(d, tenant, id))
            break;
    }
    return true;
}

static int add_log(const struct live_answer *answer, struct buf *out)
{
    struct live_piece piece;
    size_t at = 0;

    while (live_next_piece(answer, &at, &piece))
        (void)buf_append(out, piece.data, piece.len);
    return out->error;
}

int live_copy_log(struct daemon *d, struct http_request *http, struct live *live,
                  struct buf *out)
{
    int r = add_log(&live->copy.answer, out);

    /* An answer with room left is the last. */
    while (r == 0 && !live_piece_fits(live->copy.answer.pieces_len, CHUNK)) {
        struct live_copy next = {0};

        if (!http_request_hold_answer(http, out->len + CHUNK))
            return -EDQUOT;
        /* What was said so far is the log as it was a moment ago. */
        if (!ask_now(d, &live->row, out->len, &next))
            return 0;
        live_copy_finish(&live->copy);
        live->copy = next;
        r = add_log(&live->copy.answer, out);
    }
    return r;
}
