/* SPDX-License-Identifier: Apache-2.0 */
/* What one node asks of another: a message and its answer, which no stream keeps. */
#include <nats/nats.h>

#include "api/daemon/nats/nats_link.h"

#include <errno.h>
#include <string.h>

/* Asked and not looked at yet. */
#define PENDING_BYTES_MAX (32 * 1024 * 1024)

/*
 * Nothing new comes, and next_call gives what has come. libnats before 3.5.1 uses a
 * subscription that was freed where a message comes for it just then (nats.c#637): it is freed
 * when it has been drained, for then nothing comes for it any more.
 */
static enum cluster_fault leave(struct cluster_link *link, struct err *err)
{
    natsStatus s =
        link->calls ? natsSubscription_DrainTimeout(link->calls, NATS_REQUEST_MS) : NATS_OK;

    link->is_leaving = s == NATS_OK;
    return s == NATS_OK ? CLUSTER_OK : nats_failed(link, s, 0, "cannot stop taking calls", err);
}

enum cluster_fault nats_serve(struct cluster_link *link, const char *subject, const char *group,
                              unsigned pending, struct err *err)
{
    natsStatus s = NATS_OK;

    nats_begin_request(link);
    if (!subject)
        return leave(link, err);
    s = group
            ? natsConnection_QueueSubscribeSync(&link->calls, link->connection, subject, group)
            : natsConnection_SubscribeSync(&link->calls, link->connection, subject);
    if (s == NATS_OK)
        s = natsSubscription_SetPendingLimits(link->calls, (int)pending, PENDING_BYTES_MAX);
    /* Who is told that calls are taken here, and calls, finds that they are. Calls may come
       also where the server is late to say so. */
    if (s == NATS_OK)
        s = natsConnection_FlushTimeout(link->connection, NATS_REQUEST_MS);
    if (s == NATS_TIMEOUT)
        s = NATS_OK;
    return s == NATS_OK ? CLUSTER_OK : nats_failed(link, s, 0, "cannot take calls", err);
}

/* "" where it does not fit. */
static void name_key(const char *subject, char ret[CLUSTER_KEY_SIZE])
{
    const char *dot = subject ? strrchr(subject, '.') : NULL;

    if (dot && strlen(dot + 1) < CLUSTER_KEY_SIZE)
        memcpy(ret, dot + 1, strlen(dot + 1) + 1);
}

enum cluster_fault nats_next_call(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                                  struct cluster_entry *ret, struct err *err)
{
    natsMsg *message = NULL;
    natsStatus s = natsSubscription_NextMsg(&message, link->calls, wait_ms);

    *ret_some = s == NATS_OK;
    if (s == NATS_TIMEOUT || s == NATS_SLOW_CONSUMER)
        return CLUSTER_OK;
    if (s != NATS_OK && link->is_leaving &&
        natsSubscription_WaitForDrainCompletion(link->calls, 1) == NATS_OK) {
        s = natsSubscription_DrainCompletionStatus(link->calls);
        /* The server did not say that nothing comes any more: it goes with the connection. */
        if (s != NATS_OK)
            return nats_failed(link, s, 0, "cannot stop taking calls", err);
        natsSubscription_Destroy(link->calls);
        link->calls = NULL;
        link->is_leaving = false;
        return CLUSTER_NO_ENTRY;
    }
    if (s != NATS_OK)
        return nats_failed(link, s, 0, "cannot take calls", err);
    *ret = (struct cluster_entry){.data = natsMsg_GetData(message),
                                  .len = (size_t)natsMsg_GetDataLength(message),
                                  .held = message};
    name_key(natsMsg_GetSubject(message), ret->key);
    return CLUSTER_OK;
}

enum cluster_fault nats_tell(struct cluster_link *link, const char *subject, const char *data,
                             size_t len, struct err *err)
{
    natsStatus s;

    nats_begin_request(link);
    s = natsConnection_Publish(link->connection, subject, data, (int)len);
    return s == NATS_OK ? CLUSTER_OK : nats_failed(link, s, 0, "cannot tell others", err);
}

enum cluster_fault nats_answer(struct cluster_link *link, const struct cluster_entry *call,
                               const char *data, size_t len, struct err *err)
{
    const char *reply = natsMsg_GetReply(call->held);
    natsStatus s;

    /* Who wants no answer gets none. */
    if (!reply)
        return CLUSTER_OK;
    nats_begin_request(link);
    s = natsConnection_Publish(link->connection, reply, data, (int)len);
    return s == NATS_OK ? CLUSTER_OK : nats_failed(link, s, 0, "cannot answer a call", err);
}

enum cluster_fault nats_call(struct cluster_link *link, const char *subject, const char *data,
                             size_t len, unsigned wait_ms, struct cluster_entry *ret,
                             struct err *err)
{
    natsMsg *message = NULL;
    natsStatus s;

    nats_begin_request(link);
    s = natsConnection_Request(&message, link->connection, subject, data, (int)len, wait_ms);
    if (s == NATS_NO_RESPONDERS) {
        (void)err_set(err, ENOENT, "nobody takes it");
        return CLUSTER_NO_ENTRY;
    }
    if (s != NATS_OK)
        return nats_failed(link, s, 0, "cannot call another node", err);
    *ret = (struct cluster_entry){.data = natsMsg_GetData(message),
                                  .len = (size_t)natsMsg_GetDataLength(message),
                                  .held = message};
    return CLUSTER_OK;
}
