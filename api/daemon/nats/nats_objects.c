/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of objects, for which libnats before 3.12 has no functions. They are what NATS's
 * ADR-20 says: a stream OBJ_NAME of the subjects $O.NAME.M.…, each of which keeps the last
 * message, and $O.NAME.C.…
 */
#include <nats/nats.h>

#include "api/daemon/nats/nats_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct nats_layout layout = {"OBJ_", "$O"};

enum cluster_fault nats_objects_look(struct cluster_link *link, const char *name,
                                     struct cluster_bucket *ret, struct err *err)
{
    return nats_look(link, &layout, name, ret, err);
}

enum cluster_fault nats_objects_make(struct cluster_link *link,
                                     const struct cluster_bucket *bucket, struct err *err)
{
    char metas[NATS_SUBJECT_SIZE], chunks[NATS_SUBJECT_SIZE];
    const char *subjects[] = {chunks, metas};
    jsStreamConfig config;

    (void)snprintf(metas, sizeof(metas), "$O.%s." CLUSTER_OBJECT_META ">", bucket->name);
    (void)snprintf(chunks, sizeof(chunks), "$O.%s." CLUSTER_OBJECT_CHUNK ">", bucket->name);
    (void)jsStreamConfig_Init(&config);
    config.Subjects = subjects;
    config.SubjectsLen = 2;
    config.AllowDirect = true;
    return nats_make(link, &layout, bucket, &config, err);
}

enum cluster_fault nats_object_get(struct cluster_link *link, const char *bucket,
                                   const char *key, struct cluster_entry *ret, struct err *err)
{
    return nats_get(link, &layout, bucket, key, ret, err);
}

enum cluster_fault nats_object_put(struct cluster_link *link, const char *bucket,
                                   const char *key, const char *data, size_t len,
                                   uint64_t last_revision, uint64_t *ret_revision,
                                   struct err *err)
{
    static const char *rollup[] = {"Nats-Rollup", "sub"};
    jsPubOptions options;

    (void)jsPubOptions_Init(&options);
    options.ExpectLastSubjectSeq = last_revision;
    options.ExpectNoMessage = last_revision == 0;
    return nats_publish(link, &layout, bucket, key, data, len, rollup, &options, ret_revision,
                        err);
}

/* One subscription for as long as the link is: it is freed after the connection was closed. */
static natsStatus begin_confirmations(struct cluster_link *link)
{
    natsStatus s = link->inbox ? NATS_OK : natsInbox_Create(&link->inbox);

    return s == NATS_OK && !link->confirmations
               ? natsConnection_SubscribeSync(&link->confirmations, link->connection,
                                              link->inbox)
               : s;
}

enum cluster_fault nats_chunk_send(struct cluster_link *link, const char *bucket,
                                   const char *key, const void *data, size_t len,
                                   struct err *err)
{
    char subject[NATS_SUBJECT_SIZE];
    natsStatus s = begin_confirmations(link);

    if (link->unconfirmed == 0)
        nats_begin_request(link);
    (void)snprintf(subject, sizeof(subject), "$O.%s.%s", bucket, key);
    if (s == NATS_OK)
        s = natsConnection_PublishRequest(link->connection, subject, link->inbox, data,
                                          (int)len);
    if (s != NATS_OK)
        return nats_failed(link, s, 0, "cannot send an object", err);
    link->unconfirmed++;
    return CLUSTER_OK;
}

/* What a server answers to a message: {"stream":…,"seq":…}, or {"error":{…"err_code":N…}…}. */
static enum cluster_fault read_confirmation(natsMsg *message, struct err *err)
{
    char text[256], *code;

    (void)snprintf(text, sizeof(text), "%.*s", natsMsg_GetDataLength(message),
                   natsMsg_GetData(message) ? natsMsg_GetData(message) : "");
    if (!strstr(text, "\"error\""))
        return CLUSTER_OK;
    (void)err_set(err, EIO, "an object is not kept: %.200s", text);
    code = strstr(text, "\"err_code\":");
    return code ? nats_fault_of_code(
                      (jsErrCode)strtoul(code + strlen("\"err_code\":"), NULL, 10))
                : CLUSTER_OTHER;
}

enum cluster_fault nats_chunk_confirm(struct cluster_link *link, unsigned *ret_left,
                                      struct err *err)
{
    int64_t wait_ms = NATS_REQUEST_MS;

    while (link->unconfirmed > 0) {
        natsMsg *message = NULL;
        natsStatus s = natsSubscription_NextMsg(&message, link->confirmations, wait_ms);
        enum cluster_fault fault;

        if (s == NATS_TIMEOUT && wait_ms == 0)
            break;
        if (s == NATS_NO_RESPONDERS) {
            (void)err_set(err, ENOENT, "nobody takes objects");
            return CLUSTER_NO_BUCKET;
        }
        if (s != NATS_OK)
            return nats_failed(link, s, 0, "an object is not confirmed", err);
        fault = read_confirmation(message, err);
        natsMsg_Destroy(message);
        if (fault != CLUSTER_OK)
            return fault;
        link->unconfirmed--;
        wait_ms = 0;
    }
    *ret_left = link->unconfirmed;
    return CLUSTER_OK;
}

enum cluster_fault nats_objects_watch(struct cluster_link *link, const char *bucket,
                                      const char *key, struct err *err)
{
    return nats_watch(link, &layout, bucket, key, js_DeliverAll, 0, err);
}

enum cluster_fault nats_objects_purge(struct cluster_link *link, const char *bucket,
                                      const char *key, uint64_t up_to, struct err *err)
{
    char stream[NATS_SUBJECT_SIZE], subject[NATS_SUBJECT_SIZE];
    jsOptions options;
    jsErrCode code = 0;
    natsStatus s;

    (void)snprintf(stream, sizeof(stream), "OBJ_%s", bucket);
    (void)snprintf(subject, sizeof(subject), "$O.%s.%s", bucket, key);
    (void)jsOptions_Init(&options);
    options.Wait = NATS_REQUEST_MS;
    options.Stream.Purge.Subject = subject;
    options.Stream.Purge.Sequence = up_to > 0 ? up_to + 1 : 0;
    nats_begin_request(link);
    s = js_PurgeStream(link->stream, stream, &options, &code);
    return s == NATS_OK ? CLUSTER_OK
                        : nats_failed(link, s, code, "an object cannot be removed", err);
}
