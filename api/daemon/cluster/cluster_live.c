/* SPDX-License-Identifier: Apache-2.0 */
/* Asks other nodes of executions that they have. What they say is checked like a stranger's. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_MS 1000u               /* for an answer, beside the time for news */
#define SILENT_NS (3 * NS_PER_SECOND) /* that who gave none is not asked */

/* A question that is at work. */
struct asking {
    struct cluster_link *link;
    struct cluster_question *place; /* among those of tenants; NULL: it is of a row */
};

void live_copy_finish(struct live_copy *copy)
{
    buf_finish(&copy->text);
    copy->answer = (struct live_answer){0};
}

/* A place for one more of a tenant, which waits for news where it may; NULL: there is none. */
static struct cluster_question *take_place(struct cluster_live *live,
                                           const struct live_ask *ask)
{
    struct cluster_question *free_place = NULL;
    unsigned waiting = 0, own = 0, own_waiting = 0;

    for (size_t i = 0; i < CLUSTER_LIVE_ASKED; i++) {
        struct cluster_question *q = &live->questions[i];
        bool is_own = strcmp(q->tenant, ask->tenant) == 0;

        if (!q->tenant[0])
            free_place = q;
        waiting += q->waits;
        own += is_own;
        own_waiting += is_own && q->waits;
    }
    if (!free_place || own >= CLUSTER_LIVE_SHARE)
        return NULL;
    memcpy(free_place->tenant, ask->tenant, sizeof(ask->tenant));
    free_place->waits =
        ask->wait_ms > 0 && waiting < CLUSTER_LIVE_WAITING && own_waiting < CLUSTER_LIVE_TENANT;
    return free_place;
}

static bool is_silent(const struct cluster_live *live, const char *node)
{
    return strcmp(live->silent, node) == 0 && clock_monotonic_ns() < live->silent_until_ns;
}

static int begin(struct cluster *c, const char *node, const struct live_ask *ask,
                 struct asking *ret, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    struct cluster_live *live = &c->live;

    if (c->is_stopping || !live->link)
        return err_set(err, EAGAIN, "this node cannot ask others now");
    if (!ask->is_of_row && is_silent(live, node))
        return err_set(err, EAGAIN, "the node %s did not answer a moment ago", node);
    *ret = (struct asking){.link = live->link};
    if (!ask->is_of_row)
        ret->place = take_place(live, ask);
    if (ask->is_of_row ? live->of_rows == CLUSTER_LIVE_ASKED : !ret->place)
        return err_set(err, EAGAIN, "this node asks others too much already");
    live->of_rows += ask->is_of_row;
    live->asked++;
    return 0;
}

static void end(struct cluster *c, const struct asking *asking)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    if (asking->place)
        *asking->place = (struct cluster_question){0};
    else
        c->live.of_rows--;
    c->live.asked--;
    (void)pthread_cond_signal(&c->live.answered);
}

/* Who asks of a row tries again itself. */
static void note_silent(struct cluster *c, const char *node, const struct live_ask *ask)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    if (ask->is_of_row)
        return;
    (void)snprintf(c->live.silent, sizeof(c->live.silent), "%s", node);
    c->live.silent_until_ns = clock_monotonic_ns() + SILENT_NS;
}

static int take_answer(const struct live_ask *ask, const struct cluster_entry *entry,
                       struct live_copy *ret)
{
    struct live_copy copy = {.text = buf_init(LIVE_ANSWER_MAX)};

    if (buf_append(&copy.text, entry->data, entry->len) < 0 ||
        live_answer_parse((const char *)copy.text.data, copy.text.len, &copy.answer) < 0 ||
        copy.answer.log_len > LIMIT_LOG_BYTES - ask->log_at) {
        buf_finish(&copy.text);
        return -EINVAL;
    }
    *ret = copy;
    return 0;
}

static int ask_over(struct cluster *c, struct cluster_link *link, const char *node,
                    const struct live_ask *ask, struct live_copy *ret, struct err *err)
{
    _cleanup_buf_ struct buf text = {0};
    char subject[CLUSTER_SUBJECT_SIZE];
    struct cluster_entry answer = {0};
    enum cluster_fault fault;
    int r;

    if (live_ask_write(ask, &text) < 0)
        return err_no_memory(err);
    cluster_name_subject(CLUSTER_LIVE, node, subject);
    fault = c->driver->call(link, subject, buf_cstr(&text), text.len, ANSWER_MS + ask->wait_ms,
                            &answer, err);
    if (fault == CLUSTER_NO_QUORUM || fault == CLUSTER_DENIED)
        note_silent(c, node, ask);
    if (fault != CLUSTER_OK)
        return -EAGAIN;
    r = take_answer(ask, &answer, ret);
    c->driver->release(&answer);
    if (r == 0)
        return 0;
    note_silent(c, node, ask);
    return err_set(err, EAGAIN, "what the node %s answers cannot be read", node);
}

int cluster_ask_live(struct cluster *c, const char *node, const struct live_ask *ask,
                     struct live_copy *ret, struct err *err)
{
    struct asking asking = {0};
    struct live_ask asked = *ask;
    int r = begin(c, node, ask, &asking, err);

    if (r < 0)
        return r;
    /* Where there is no place to wait it is asked how it is now. */
    if (!asking.place || !asking.place->waits)
        asked.wait_ms = 0;
    r = ask_over(c, asking.link, node, &asked, ret, err);
    end(c, &asking);
    return r;
}
