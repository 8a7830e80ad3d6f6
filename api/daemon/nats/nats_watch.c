/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything of a bucket as it comes: a consumer of the server's that delivers to an inbox of
 * the link's. It is not one that libnats repairs by itself: that works in threads of its own,
 * and frees subscriptions while the connection reads (nats.c#637). What does not come in turn,
 * or not at all, ends the link.
 */
#include <nats/nats.h>

#include "api/daemon/nats/nats_link.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* So often a server says that a watch is alive, and so long it may say nothing. */
#define HEARTBEAT_NS 1000000000ll
#define SILENCE_NS   (3 * HEARTBEAT_NS)
/* The header that says whom to answer where the server waits for that. */
#define STALLED "Nats-Consumer-Stalled"
/* What such an answer's subject begins with, by which the server knows it. */
#define FLOW_CONTROL "$JS.FC."

static int64_t now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * HEARTBEAT_NS + ts.tv_nsec;
}

static natsStatus subscribe(struct cluster_link *link)
{
    natsStatus s = natsInbox_Create(&link->watch_inbox);

    if (s == NATS_OK)
        s = natsConnection_SubscribeSync(&link->watched, link->connection, link->watch_inbox);
    if (s == NATS_OK)
        s = natsSubscription_SetPendingLimits(link->watched, NATS_PENDING_MAX,
                                              NATS_PENDING_BYTES_MAX);
    return s;
}

/* Whether a server that has not answered in time watches all the same. What it sends first may
   come before its answer, and over a slow line that takes longer than an answer may. */
static bool has_begun(const struct cluster_link *link)
{
    int pending = 0;

    return natsSubscription_GetPending(link->watched, &pending, NULL) == NATS_OK && pending > 0;
}

enum cluster_fault nats_watch(struct cluster_link *link, const struct nats_layout *layout,
                              const char *bucket, const char *key, jsDeliverPolicy policy,
                              uint64_t after, struct err *err)
{
    char stream[NATS_SUBJECT_SIZE], subject[NATS_SUBJECT_SIZE];
    jsConsumerConfig config;
    jsErrCode code = 0;
    natsStatus s;

    nats_name_stream(layout, bucket, stream);
    nats_name_subject(layout, bucket, key, subject);
    nats_begin_request(link);
    (void)jsConsumerConfig_Init(&config);
    s = subscribe(link);
    config.DeliverSubject = link->watch_inbox;
    config.FilterSubject = subject;
    config.DeliverPolicy = policy;
    config.AckPolicy = js_AckNone;
    config.MaxDeliver = 1;
    config.Heartbeat = HEARTBEAT_NS;
    config.FlowControl = true;
    if (policy == js_DeliverByStartSequence)
        config.OptStartSeq = after + 1;
    if (s == NATS_OK)
        s = js_AddConsumer(NULL, link->stream, stream, &config, NULL, &code);
    if (s == NATS_TIMEOUT && has_begun(link))
        s = NATS_OK;
    link->prefix_len = strlen(layout->subject) + strlen(bucket) + 2;
    link->delivered = 0;
    link->heard_ns = now_ns();
    return s == NATS_OK ? CLUSTER_OK
                        : nats_failed(link, s, code, "cannot watch the bucket", err);
}

/* Whether something was thrown away. libnats says nothing of it where it had room again by the
   time that it was asked. */
static bool has_lost(const struct cluster_link *link)
{
    int64_t dropped = 0;

    return natsSubscription_GetDropped(link->watched, &dropped) != NATS_OK || dropped > 0;
}

/* That the server is alive, or that it asks for an answer before it sends more. What is of the
   bucket has a key's subject, whatever its headers say. */
static bool is_status(const struct cluster_link *link, natsMsg *message)
{
    return strcmp(natsMsg_GetSubject(message), link->watch_inbox) == 0;
}

/*
 * Says that what the server sent before this was taken. Without that it sends all that there is
 * at once, and ends a connection for which it holds more than it may. To the server only: any
 * node may send to an inbox, and shall not have another one write what it may not itself.
 */
static void answer(const struct cluster_link *link, natsMsg *status)
{
    const char *subject = natsMsg_GetReply(status);

    if (!subject && natsMsgHeader_Get(status, STALLED, &subject) != NATS_OK)
        return;
    if (strncmp(subject, FLOW_CONTROL, strlen(FLOW_CONTROL)) == 0)
        (void)natsConnection_Publish(link->connection, subject, NULL, 0);
}

/* Nothing came, or what came was thrown away; what is behind that does not come in turn. */
static enum cluster_fault wait_more(const struct cluster_link *link, struct err *err)
{
    if (has_lost(link)) {
        (void)err_set(err, EIO, "entries were lost, for they came faster than they were taken");
        return CLUSTER_UNREACHABLE;
    }
    if (now_ns() - link->heard_ns < SILENCE_NS)
        return CLUSTER_OK;
    (void)err_set(err, EIO, "the server has stopped watching the bucket");
    return CLUSTER_UNREACHABLE;
}

/* Takes the message over. */
static enum cluster_fault take(struct cluster_link *link, natsMsg *message,
                               struct cluster_entry *ret, struct err *err)
{
    jsMsgMetaData *place = NULL;
    natsStatus s = natsMsg_GetMetaData(&place, message);

    if (s != NATS_OK) {
        natsMsg_Destroy(message);
        return nats_failed(link, s, 0, "cannot watch the bucket", err);
    }
    nats_fill_entry(message, link->prefix_len, ret);
    ret->revision = place->Sequence.Stream;
    ret->stored_ns = (uint64_t)place->Timestamp;
    ret->pending = place->NumPending;
    link->delivered++;
    if (place->Sequence.Consumer == link->delivered) {
        jsMsgMetaData_Destroy(place);
        return CLUSTER_OK;
    }
    jsMsgMetaData_Destroy(place);
    natsMsg_Destroy(message);
    *ret = (struct cluster_entry){0};
    (void)err_set(err, EIO, "an entry was lost on its way");
    return CLUSTER_UNREACHABLE;
}

enum cluster_fault nats_next(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                             struct cluster_entry *ret, struct err *err)
{
    natsMsg *message = NULL;
    natsStatus s = natsSubscription_NextMsg(&message, link->watched, wait_ms);
    enum cluster_fault fault;

    *ret_some = false;
    if (s == NATS_TIMEOUT)
        return wait_more(link, err);
    /* What came before is still to be taken: who begins anew gets on by that. */
    if (s == NATS_SLOW_CONSUMER)
        return CLUSTER_OK;
    if (s != NATS_OK)
        return nats_failed(link, s, 0, "cannot watch the bucket", err);
    link->heard_ns = now_ns();
    if (is_status(link, message)) {
        answer(link, message);
        natsMsg_Destroy(message);
        return CLUSTER_OK;
    }
    fault = take(link, message, ret, err);
    *ret_some = fault == CLUSTER_OK;
    return fault;
}
