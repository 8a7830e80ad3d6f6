/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a call is JSON: whether it was accepted. */
#include "api/daemon/routes/forward.h"

#include "api/daemon/cluster/entry_values.h"
#include "api/daemon/engine/engine_lend.h"
#include "api/daemon/engine/handover.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/routes/drain.h"
#include "api/daemon/routes/forward_head.h"
#include "api/daemon/routes/inputs.h"
#include "api/daemon/routes/live.h"
#include "api/json/json_text.h"
#include "api/json/json_walk.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX 1024u
#define TRIES      3u
#define HOLDERS    2u /* of a snapshot that are asked before others are */
/* A call waits for 2 s, and each clock is 3 s off the servers' at most. */
#define OLD_NS (8 * NS_PER_SECOND)
/* A call, and until what it came to is here; how often a stop looks for that. */
#define FINISH_NS      (8 * NS_PER_SECOND)
#define FINISH_LOOK_US 5000u

/* With the node that did; "" of an earlier version. */
static bool is_accepted(const struct buf *answer, char ret_node[FLEET_NODE_SIZE])
{
    struct json_slice object, value;
    bool accepted = false;

    if (json_text_check((const char *)answer->data, answer->len, &object, NULL) < 0 ||
        !json_find(object, "accepted", &value) || json_take_bool(value, &accepted) < 0)
        return false;
    if (entry_take_text(object, "node", ret_node, FLEET_NODE_SIZE) < 0 ||
        !fleet_node_valid(ret_node))
        ret_node[0] = '\0';
    return accepted;
}

/* A line of the log and a count of what went from one node to another, or came. */
static void note(struct daemon *d, const char *id, enum metrics_passing what, const char *node)
{
    static const char *const words[METRICS_PASSINGS] = {"sent_to", "taken_from",
                                                        "taken_over_of", "begun_again_of"};

    metrics_count_passing(d->metrics, what);
    log_info("forward", "execution=%s %s=%s", id, words[what], node[0] ? node : "unknown");
}

const char *forward_image(const struct execution *e)
{
    const char *image = execution_image(e);

    return image ? image : IMAGE_USUAL;
}

/* A node where it begins from what it needs. */
static enum forward_result find_holder(struct daemon *d, const struct execution *e,
                                       struct buf *call, char ret_node[FLEET_NODE_SIZE])
{
    struct snapshot_name name;
    int r = 0;

    engine_name_snapshot(d->engine, e, &name);
    if (snapshot_name_is_common(&name))
        return FORWARD_NOBODY;
    for (unsigned tries = 0; tries < HOLDERS && r != -ENOENT; tries++) {
        _cleanup_buf_ struct buf answer = buf_init(ANSWER_MAX);
        struct err ignored = {0};

        r = cluster_call_holder(d->cluster, snapshot_name_hash(&name, IMAGE_USUAL),
                                buf_cstr(call), call->len, &answer, &ignored);
        if (r == -EAGAIN)
            return FORWARD_DOUBT;
        if (r == 0 && is_accepted(&answer, ret_node))
            return FORWARD_TAKEN;
    }
    return FORWARD_NOBODY;
}

/* Who was full just now says no: another one is asked. */
static enum forward_result find_room(struct daemon *d, const char *image, struct buf *call,
                                     char ret_node[FLEET_NODE_SIZE])
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        _cleanup_buf_ struct buf answer = buf_init(ANSWER_MAX);
        struct err ignored = {0};
        int r = cluster_call(d->cluster, image, buf_cstr(call), call->len, &answer, &ignored);

        if (r < 0)
            return r == -ENOENT ? FORWARD_NOBODY : FORWARD_DOUBT;
        if (is_accepted(&answer, ret_node))
            return FORWARD_TAKEN;
    }
    return FORWARD_NOBODY;
}

/* The one that has its snapshot is the better one. */
static enum forward_result find_taker(struct daemon *d, const struct execution *e,
                                      struct buf *call, char ret_node[FLEET_NODE_SIZE])
{
    enum forward_result result = find_holder(d, e, call, ret_node);

    return result == FORWARD_NOBODY ? find_room(d, forward_image(e), call, ret_node) : result;
}

bool forward_has_snapshot(struct daemon *d, const struct execution *e)
{
    struct snapshot_name name;

    engine_name_snapshot(d->engine, e, &name);
    return snapshot_name_is_common(&name) || snapshots_have(d->snapshots, &name);
}

static size_t list_snapshots(void *place, uint64_t *ret, size_t max)
{
    const struct forward_place *p = place;

    return snapshots_list(p->daemon->snapshots, IMAGE_USUAL, ret, max);
}

/* What the servers have of it is on its way. */
static bool is_seen(struct daemon *d, const struct execution *e, struct err *err)
{
    struct record_copy there = {0};
    int r = ledger_await(d->ledger, e->tenant, e->id, err);

    if (r == 0)
        return true;
    r = cluster_record_read(d->cluster, e->id, &there, err);
    record_copy_finish(&there);
    return r == 0 && ledger_await(d->ledger, e->tenant, e->id, err) == 0;
}

static enum forward_result send(struct daemon *d, const struct forward_wish *wish)
{
    _cleanup_buf_ struct buf call = buf_init(CLUSTER_CALL_MAX);
    const struct execution *e = wish->e;
    struct record record = {0};
    char node[FLEET_NODE_SIZE];
    struct forward_head head;
    enum forward_result result;
    struct err err = {0};

    cluster_sign_record(d->cluster, &record);
    head = (struct forward_head){.seen = record.seen, .sent_ns = clock_realtime_ns()};
    memcpy(head.from, record.node, sizeof(head.from));
    memcpy(head.tenant, e->tenant, sizeof(head.tenant));
    memcpy(head.id, e->id, sizeof(head.id));
    (void)snprintf(head.digest, sizeof(head.digest), "%s", wish->digest);
    /* What is too large for a call waits here. */
    if (forward_head_write(&head, &call) < 0 || buf_append(&call, wish->text, wish->len) < 0)
        return FORWARD_NOBODY;
    result = wish->is_kept ? find_holder(d, e, &call, node) : find_taker(d, e, &call, node);
    if (result == FORWARD_TAKEN)
        note(d, e->id, METRICS_SENT, node);
    if (result != FORWARD_TAKEN || is_seen(d, e, &err))
        return result;
    log_warn("forward", "execution=%s reason=\"%s\"", e->id, err.message);
    return FORWARD_UNSEEN;
}

enum forward_result forward_send(struct daemon *d, const struct forward_wish *wish)
{
    enum forward_result result;

    (void)__atomic_add_fetch(&d->n_forwarding, 1, __ATOMIC_SEQ_CST);
    result = send(d, wish);
    (void)__atomic_sub_fetch(&d->n_forwarding, 1, __ATOMIC_SEQ_CST);
    return result;
}

void forward_finish(const struct daemon *d)
{
    const uint64_t until_ns = clock_monotonic_ns() + FINISH_NS;

    while (__atomic_load_n(&d->n_forwarding, __ATOMIC_SEQ_CST) > 0 &&
           clock_monotonic_ns() < until_ns)
        (void)usleep(FINISH_LOOK_US);
}

/* Where it waits: who takes it reads its request at the servers. */
static bool give(struct daemon *d, const struct execution *e, char ret_node[FLEET_NODE_SIZE])
{
    _cleanup_buf_ struct buf call = buf_init(CLUSTER_CALL_MAX);
    struct record record = {0};
    struct forward_head head;

    cluster_sign_record(d->cluster, &record);
    head = (struct forward_head){.seen = record.seen, .sent_ns = clock_realtime_ns()};
    memcpy(head.tenant, e->tenant, sizeof(head.tenant));
    memcpy(head.id, e->id, sizeof(head.id));
    memcpy(head.node, record.node, sizeof(head.node));
    memcpy(head.instance, record.instance, sizeof(head.instance));
    return forward_head_write(&head, &call) == 0 &&
           find_taker(d, e, &call, ret_node) == FORWARD_TAKEN;
}

/* Gives one that waits here to a node that has room. False: there is none. */
static bool lend(void *place)
{
    const struct forward_place *p = place;
    struct daemon *d = p->daemon;
    char node[FLEET_NODE_SIZE];
    struct lending lending;
    bool is_given;

    if (!engine_lend(d->engine, &lending))
        return false;
    lending.e->is_bound = !inputs_are_shared(d, lending.e);
    is_given = !lending.e->is_bound && give(d, lending.e, node) &&
               handover_is_gone(d->ledger, lending.e);
    if (is_given)
        note(d, lending.e->id, METRICS_SENT, node);
    engine_lend_end(d->engine, &lending, is_given);
    return is_given;
}

/* What another process had. */
struct call {
    struct forward_place *place;
    struct execution_given given;
    bool is_accepted;
    int refusal;               /* where it is not: as of waiting_resume_fn */
    char why[ERR_MESSAGE_MAX]; /* the same */
};

static bool may_begin(const struct daemon *d, const char *tenant)
{
    _cleanup_registry_tenant_ struct registry_tenant row = {0};

    return registry_tenant_get(d->registry, tenant, &row, NULL) == 0 && !row.is_disabled;
}

/* What a refusal means for one that another process had. */
static int judge(unsigned status, const char *word)
{
    if (status == 429 || strcmp(word, "overloaded") == 0 || strcmp(word, "draining") == 0 ||
        strcmp(word, "stopping") == 0)
        return -EBUSY;
    return status < 500 || strcmp(word, "object_unavailable") == 0 ? -EREMOTEIO : -EAGAIN;
}

static void note_refusal(struct call *call, const struct http_reply *reply)
{
    _cleanup_free_ char *word = NULL, *message = NULL;
    struct json_slice object;

    if (json_text_check((const char *)reply->body.data, reply->body.len, &object, NULL) == 0) {
        word = json_strdup_member(object, "error", SIZE_MAX / 2);
        message = json_strdup_member(object, "message", SIZE_MAX / 2);
    }
    call->refusal = judge(reply->status, word ? word : "");
    (void)snprintf(call->why, sizeof(call->why), "%s", message ? message : "it is refused");
}

static void begin(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct call *call = ctx;

    call->is_accepted = execution_take(call->place->daemon, request, &call->given, reply);
    if (!call->is_accepted)
        note_refusal(call, reply);
}

/* Who sent it has long given up where it is older. */
static bool is_new(const struct forward_head *head)
{
    uint64_t now_ns = clock_realtime_ns();
    uint64_t off_ns = now_ns > head->sent_ns ? now_ns - head->sent_ns : head->sent_ns - now_ns;

    return off_ns < OLD_NS;
}

static bool is_of(const struct forward_head *head, const char *node)
{
    return strcmp(head->from, node) == 0 || strcmp(head->node, node) == 0;
}

bool forward_can_start(void *daemon)
{
    const struct daemon *d = daemon;
    struct err ignored = {0};

    return snapshots_get_state(d->snapshots, NULL, 0) == SNAPSHOTS_READY &&
           pool_check_starts(d->pool, &ignored) == 0 &&
           watermarks_check(d->watermarks, &ignored) == 0;
}

static bool has_room(void *place)
{
    const struct forward_place *p = place;

    return !__atomic_load_n(&p->daemon->stopping, __ATOMIC_RELAXED) &&
           engine_has_room(p->daemon->engine);
}

static int grant(void *place, enum node_wish wish, struct node_drain *ret, struct err *err)
{
    const struct forward_place *p = place;

    return drain_wish(p->daemon, wish, ret, err);
}

static bool take_waiting(struct daemon *d, const struct forward_head *head)
{
    struct registry_process process;
    struct err ignored = {0};

    memcpy(process.node, head->node, sizeof(process.node));
    memcpy(process.instance, head->instance, sizeof(process.instance));
    return ledger_take_over(d->ledger, head->id, &process, false, &ignored) == 0;
}

static void take_new(const struct forward_head *head, const char *request, size_t len,
                     struct call *call)
{
    (void)http_call(call->place->http, head->tenant, request, len, begin, call);
    if (call->is_accepted)
        note(call->place->daemon, head->id, METRICS_TAKEN, head->from);
}

static void take(void *place, const char *data, size_t len, struct buf *answer)
{
    struct record self = {0};
    struct forward_head head;
    struct call call = {.place = place, .given = {.id = head.id, .digest = head.digest}};
    struct daemon *d = call.place->daemon;
    ssize_t at = len <= CLUSTER_CALL_MAX ? forward_head_parse(data, len, &head) : -EINVAL;

    cluster_sign_record(d->cluster, &self);
    /* Who asks itself begins it itself, once: there is room here by now. */
    if (at >= 0 && !is_of(&head, self.node) && is_new(&head) && has_room(place) &&
        cluster_has_seen(d->cluster, head.seen) && may_begin(d, head.tenant)) {
        if (head.node[0])
            call.is_accepted = take_waiting(d, &head);
        else
            take_new(&head, data + at, len - (size_t)at, &call);
    }
    (void)buf_printf(answer, "{\"schema\":%u,\"accepted\":%s,\"node\":\"%s\"}", FORWARD_SCHEMA,
                     call.is_accepted ? "true" : "false", self.node);
}

struct cluster_service forward_service(struct forward_place *place)
{
    return (struct cluster_service){.ctx = place,
                                    .has_room = has_room,
                                    .snapshots = list_snapshots,
                                    .lend = lend,
                                    .take = take,
                                    .wish = grant,
                                    .look = live_look};
}

static enum metrics_passing passing_of(const struct record *record, bool is_lost)
{
    if (!is_lost)
        return METRICS_TAKEN;
    return record->waits ? METRICS_TAKEN_OVER : METRICS_BEGUN_AGAIN;
}

int forward_resume(void *place, const struct record *record, bool is_lost, const char *request,
                   size_t len, struct err *err)
{
    struct call call = {.place = place,
                        .given = {.id = record->id,
                                  .digest = record->request_digest,
                                  .accepted_ns = record->accepted_ns,
                                  .retries = record_retries_left(record)}};

    if (!may_begin(call.place->daemon, record->tenant))
        return err_set(err, ENOENT, "its tenant is disabled, or gone");
    if (!http_call(call.place->http, record->tenant, request, len, begin, &call))
        return err_set(err, EAGAIN, "no memory for its request");
    if (!call.is_accepted)
        return err_set(err, -call.refusal, "%s", call.why);
    note(call.place->daemon, record->id, passing_of(record, is_lost), record->node);
    return 0;
}
