/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of a bucket as it comes. */
#include <nats/nats.h>

#include "api/daemon/nats/nats_link.h"

#include <errno.h>
#include <string.h>

/* So often a server says that a watch is alive; without two of them it is begun anew. */
#define HEARTBEAT_NS 1000000000ll

enum cluster_fault nats_watch(struct cluster_link *link, const struct nats_layout *layout,
                              const char *bucket, const char *key, jsDeliverPolicy policy,
                              uint64_t after, struct err *err)
{
    char stream[NATS_SUBJECT_SIZE], subject[NATS_SUBJECT_SIZE];
    jsSubOptions options;
    jsErrCode code = 0;
    natsStatus s;

    nats_name_stream(layout, bucket, stream);
    nats_name_subject(layout, bucket, key, subject);
    (void)jsSubOptions_Init(&options);
    options.Stream = stream;
    nats_begin_request(link);
    options.Ordered = true;
    options.Config.Heartbeat = HEARTBEAT_NS;
    options.Config.DeliverPolicy = policy;
    if (policy == js_DeliverByStartSequence)
        options.Config.OptStartSeq = after + 1;
    s = js_SubscribeSync(&link->watched, link->stream, subject, NULL, &options, &code);
    if (s == NATS_OK)
        s = natsSubscription_SetPendingLimits(link->watched, NATS_PENDING_MAX,
                                              NATS_PENDING_BYTES_MAX);
    link->prefix_len = strlen(layout->subject) + strlen(bucket) + 2;
    return s == NATS_OK ? CLUSTER_OK
                        : nats_failed(link, s, code, "cannot watch the bucket", err);
}

/* Whether something was thrown away before what was taken last. libnats says nothing of it
   where it had room again by the time that it was asked. */
static bool has_lost(const struct cluster_link *link)
{
    int64_t dropped = 0;

    return natsSubscription_GetDropped(link->watched, &dropped) != NATS_OK || dropped > 0;
}

enum cluster_fault nats_next(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                             struct cluster_entry *ret, struct err *err)
{
    natsMsg *message = NULL;
    jsMsgMetaData *place = NULL;
    natsStatus s = natsSubscription_NextMsg(&message, link->watched, wait_ms);

    if (has_lost(link)) {
        natsMsg_Destroy(message);
        (void)err_set(err, EIO, "entries were lost, for they came faster than they were taken");
        return CLUSTER_UNREACHABLE;
    }
    if (s == NATS_TIMEOUT || s == NATS_MISSED_HEARTBEAT) {
        *ret_some = false;
        return CLUSTER_OK;
    }
    if (s == NATS_OK)
        s = natsMsg_GetMetaData(&place, message);
    if (s != NATS_OK) {
        natsMsg_Destroy(message);
        return nats_failed(link, s, 0, "cannot watch the bucket", err);
    }
    nats_fill_entry(message, link->prefix_len, ret);
    ret->revision = place->Sequence.Stream;
    ret->stored_ns = (uint64_t)place->Timestamp;
    ret->pending = place->NumPending;
    jsMsgMetaData_Destroy(place);
    *ret_some = true;
    return CLUSTER_OK;
}
