/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm-cluster.so: struct cluster_driver by libnats, whose types and threads stay in this
 * file. A bucket is what NATS's own tools call one: a stream KV_NAME of the subjects
 * $KV.NAME.KEY that keeps one message of each, and a mark in a header where a key was removed.
 *
 * A link is one connection to one server, and libnats shall not repair it: what a server that
 * comes back still knows of us is never certain, and whoever uses links has to be able to begin
 * anew in any case.
 */
#include <nats/nats.h>

#include "api/daemon/nats/nats_link.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAKE_MS 2500
/* The server hears of us so often, and a link that hears nothing of so many ends. */
#define PING_MS       2000
#define PINGS         2
#define SECOND_NS     1000000000ll
#define MARK_HEADER   "KV-Operation"
#define MARK_REMOVED  "DEL"
#define SPARE_MESSAGE "the server gave no reason"

/*
 * Whether a server said that something was not permitted, since a request of a link began.
 * Atomic, and in no link: libnats says it in a thread of its own, perhaps of a link that is
 * gone. Links take them in turn, and so many are never open at once.
 */
#define DENIED_SLOTS 256u
static bool denied[DENIED_SLOTS];
static unsigned next_denied;

void nats_begin_request(const struct cluster_link *link)
{
    __atomic_store_n(link->denied, false, __ATOMIC_RELAXED);
}

/* What libnats's codes are to us. */
static enum cluster_fault fault_of_status(natsStatus s)
{
    switch (s) {
    case NATS_CONNECTION_AUTH_FAILED:
        return CLUSTER_CREDENTIALS;
    case NATS_NOT_PERMITTED:
        return CLUSTER_DENIED;
    case NATS_SSL_ERROR:
    case NATS_SECURE_CONNECTION_REQUIRED:
    case NATS_SECURE_CONNECTION_WANTED:
        return CLUSTER_TLS;
    case NATS_NO_SERVER_SUPPORT:
        return CLUSTER_OLD_SERVER;
    case NATS_NO_RESPONDERS:
        return CLUSTER_NO_JETSTREAM;
    case NATS_TIMEOUT:
        return CLUSTER_NO_QUORUM;
    case NATS_IO_ERROR:
    case NATS_CONNECTION_CLOSED:
    case NATS_CONNECTION_DISCONNECTED:
    case NATS_NO_SERVER:
    case NATS_STALE_CONNECTION:
    case NATS_PROTOCOL_ERROR:
    case NATS_INVALID_SUBSCRIPTION:
        return CLUSTER_UNREACHABLE;
    default:
        return CLUSTER_OTHER;
    }
}

enum cluster_fault nats_fault_of_code(jsErrCode code)
{
    switch (code) {
    case JSNotEnabledErr:
    case JSNotEnabledForAccountErr:
        return CLUSTER_NO_JETSTREAM;
    case JSStreamNotFoundErr:
        return CLUSTER_NO_BUCKET;
    case JSNoMessageFoundErr:
        return CLUSTER_NO_ENTRY;
    case JSStreamWrongLastSequenceErr:
    case JSStreamNameExistErr:
        return CLUSTER_CONFLICT;
    case JSClusterNotAvailErr:
    case JSClusterNotLeaderErr:
    case JSClusterNotActiveErr:
    case JSClusterIncompleteErr:
    case JSStreamOfflineErr:
        return CLUSTER_NO_QUORUM;
    case JSClusterNoPeersErr:
    case JSStreamReplicasNotSupportedErr:
    case JSInsufficientResourcesErr:
    case JSStorageResourcesExceededErr:
    case JSMemoryResourcesExceededErr:
    case JSAccountResourcesExceededErr:
    case JSMaximumStreamsLimitErr:
    case JSStreamMaxStreamBytesExceededErr:
    case JSStreamStoreFailedErr:
    case JSNoLimitsErr:
        return CLUSTER_NO_ROOM;
    default:
        return CLUSTER_OTHER;
    }
}

static int errno_of(enum cluster_fault fault)
{
    return fault == CLUSTER_NO_BUCKET || fault == CLUSTER_NO_ENTRY ? ENOENT : EIO;
}

enum cluster_fault nats_failed(const struct cluster_link *link, natsStatus s, jsErrCode code,
                               const char *what, struct err *err)
{
    enum cluster_fault fault = code != 0 ? nats_fault_of_code(code) : fault_of_status(s);
    const char *why = nats_GetLastError(NULL);

    /* A server tells apart from the request that it was not permitted; that one gets none. */
    if (fault == CLUSTER_NO_QUORUM &&
        __atomic_exchange_n(link->denied, false, __ATOMIC_RELAXED))
        fault = CLUSTER_DENIED;
    if (!why || !*why)
        why = natsStatus_GetText(s);
    (void)err_set(err, errno_of(fault), "%s: %.200s", what, why ? why : SPARE_MESSAGE);
    return fault;
}

static void note_error(natsConnection *connection, natsSubscription *sub, natsStatus s,
                       void *closure)
{
    (void)connection;
    (void)sub;
    if (s == NATS_NOT_PERMITTED)
        __atomic_store_n((bool *)closure, true, __ATOMIC_RELAXED);
}

static natsStatus set_tls(natsOptions *options, const struct cluster_access *access)
{
    natsStatus s = NATS_OK;

    if (*access->tls_ca)
        s = natsOptions_LoadCATrustedCertificates(options, access->tls_ca);
    if (s == NATS_OK && *access->tls_cert)
        s = natsOptions_LoadCertificatesChain(options, access->tls_cert, access->tls_key);
    return s == NATS_OK ? natsOptions_SetSecure(options, true) : s;
}

static natsStatus set_options(natsOptions *options, const struct cluster_access *access,
                              const char *server, bool is_to_watch,
                              const struct cluster_link *link)
{
    bool is_tls = strncmp(server, "tls://", 6) == 0 || *access->tls_ca || *access->tls_cert;
    natsStatus s = natsOptions_SetURL(options, server);

    if (s == NATS_OK)
        s = natsOptions_SetTimeout(options, NATS_REQUEST_MS);
    if (s == NATS_OK)
        s = natsOptions_SetName(options, access->name);
    if (s == NATS_OK)
        s = natsOptions_SetAllowReconnect(options, false);
    if (s == NATS_OK)
        s = natsOptions_SetIgnoreDiscoveredServers(options, true);
    if (s == NATS_OK)
        s = natsOptions_SetPingInterval(options, PING_MS);
    if (s == NATS_OK)
        s = natsOptions_SetMaxPingsOut(options, is_to_watch ? INT_MAX : PINGS);
    if (s == NATS_OK)
        s = natsOptions_SetMaxPendingMsgs(options, NATS_PENDING_MAX);
    if (s == NATS_OK)
        s = natsOptions_SetWriteDeadline(options, NATS_REQUEST_MS);
    if (s == NATS_OK)
        s = natsOptions_SetErrorHandler(options, note_error, link->denied);
    if (s == NATS_OK)
        s = natsOptions_SetClosedCB(options, nats_note_end, link->ending);
    if (s == NATS_OK && *access->credentials)
        s = natsOptions_SetUserCredentialsFromFiles(options, access->credentials, NULL);
    return s == NATS_OK && is_tls ? set_tls(options, access) : s;
}

static enum cluster_fault connect_link(struct cluster_link *link,
                                       const struct cluster_access *access, const char *server,
                                       bool is_to_watch, struct err *err)
{
    natsOptions *options = NULL;
    natsStatus s = natsOptions_Create(&options);
    enum cluster_fault fault;

    if (s == NATS_OK)
        s = set_options(options, access, server, is_to_watch, link);
    if (s == NATS_OK)
        s = natsConnection_Connect(&link->connection, options);
    natsOptions_Destroy(options);
    if (s == NATS_OK)
        return CLUSTER_OK;
    fault = nats_failed(link, s, 0, "cannot connect", err);
    /* What is not understood here is the file, which is read when the server asks. */
    return fault == CLUSTER_OTHER && *access->credentials ? CLUSTER_CREDENTIALS : fault;
}

/* That the server has what is needed: headers, key-value buckets, JetStream for this account.
 */
static enum cluster_fault check_server(struct cluster_link *link, struct err *err)
{
    jsOptions options;
    jsAccountInfo *info = NULL;
    jsErrCode code = 0;
    natsStatus s;

    (void)jsOptions_Init(&options);
    options.Wait = NATS_REQUEST_MS;
    nats_begin_request(link);
    s = natsConnection_HasHeaderSupport(link->connection);
    if (s == NATS_OK)
        s = natsConnection_JetStream(&link->stream, link->connection, &options);
    if (s == NATS_OK)
        s = js_GetAccountInfo(&info, link->stream, NULL, &code);
    jsAccountInfo_Destroy(info);
    if (s == NATS_OK)
        return CLUSTER_OK;
    if (s == NATS_NO_RESPONDERS) {
        (void)err_set(err, ENOSYS, "the server has no JetStream");
        return CLUSTER_NO_JETSTREAM;
    }
    return nats_failed(link, s, code, "cannot ask for JetStream", err);
}

static void link_close(struct cluster_link *link)
{
    if (!link)
        return;
    /* libnats before 3.5.1 uses a subscription that was freed where a message comes for it just
       then (nats.c#637): nothing comes any more once the thread that reads has ended. */
    if (!nats_end_connection(link)) {
        free(link);
        return;
    }
    natsSubscription_Destroy(link->watched);
    natsSubscription_Destroy(link->calls);
    natsSubscription_Destroy(link->confirmations);
    natsInbox_Destroy(link->inbox);
    natsInbox_Destroy(link->watch_inbox);
    jsCtx_Destroy(link->stream);
    natsConnection_Destroy(link->connection);
    free(link);
}

static enum cluster_fault link_open(const struct cluster_access *access, const char *server,
                                    bool is_to_watch, struct cluster_link **ret,
                                    struct err *err)
{
    struct cluster_link *link = calloc(1, sizeof(*link));
    enum cluster_fault fault;

    if (!link) {
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    link->ending = nats_ending_create();
    if (!link->ending) {
        free(link);
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    link->denied =
        &denied[__atomic_fetch_add(&next_denied, 1, __ATOMIC_RELAXED) % DENIED_SLOTS];
    nats_begin_request(link);
    fault = connect_link(link, access, server, is_to_watch, err);
    if (fault == CLUSTER_OK)
        fault = check_server(link, err);
    if (fault == CLUSTER_OK)
        *ret = link;
    else
        link_close(link);
    return fault;
}

static const struct nats_layout layout_keys = {"KV_", "$KV"};

void nats_name_stream(const struct nats_layout *layout, const char *bucket,
                      char name[NATS_SUBJECT_SIZE])
{
    (void)snprintf(name, NATS_SUBJECT_SIZE, "%s%s", layout->stream, bucket);
}

void nats_name_subject(const struct nats_layout *layout, const char *bucket, const char *key,
                       char subject[NATS_SUBJECT_SIZE])
{
    (void)snprintf(subject, NATS_SUBJECT_SIZE, "%s.%s.%s", layout->subject, bucket, key);
}

enum cluster_fault nats_look(struct cluster_link *link, const struct nats_layout *layout,
                             const char *name, struct cluster_bucket *ret, struct err *err)
{
    char stream[NATS_SUBJECT_SIZE];
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;
    natsStatus s;

    nats_name_stream(layout, name, stream);
    nats_begin_request(link);
    s = js_GetStreamInfo(&info, link->stream, stream, NULL, &code);
    /* libnats says only this much where a stream is not there. */
    if (s == NATS_NOT_FOUND) {
        (void)err_set(err, ENOENT, "there is no bucket %.64s", name);
        return CLUSTER_NO_BUCKET;
    }
    if (s != NATS_OK)
        return nats_failed(link, s, code, "cannot look at the bucket", err);
    ret->replicas = (unsigned)info->Config->Replicas;
    ret->ttl_ms = (uint64_t)(info->Config->MaxAge / (SECOND_NS / 1000));
    ret->max_bytes = info->Config->MaxBytes < 0 ? 0 : (uint64_t)info->Config->MaxBytes;
    ret->max_value_bytes =
        info->Config->MaxMsgSize < 0 ? 0 : (uint32_t)info->Config->MaxMsgSize;
    ret->drops_old = info->Config->Discard == js_DiscardOld;
    ret->created_ns = (uint64_t)info->Created;
    ret->last_revision = info->State.LastSeq;
    ret->bytes = info->State.Bytes;
    (void)snprintf(ret->leader, sizeof(ret->leader), "%s",
                   info->Cluster && info->Cluster->Leader ? info->Cluster->Leader : "");
    jsStreamInfo_Destroy(info);
    return CLUSTER_OK;
}

static enum cluster_fault bucket_look(struct cluster_link *link, const char *name,
                                      struct cluster_bucket *ret, struct err *err)
{
    return nats_look(link, &layout_keys, name, ret, err);
}

enum cluster_fault nats_make(struct cluster_link *link, const struct nats_layout *layout,
                             const struct cluster_bucket *bucket, jsStreamConfig *config,
                             struct err *err)
{
    char stream[NATS_SUBJECT_SIZE];
    jsOptions options;
    jsErrCode code = 0;
    natsStatus s;

    nats_name_stream(layout, bucket->name, stream);
    (void)jsOptions_Init(&options);
    options.Wait = MAKE_MS;
    nats_begin_request(link);
    config->Name = stream;
    if (bucket->max_bytes > 0)
        config->MaxBytes = (int64_t)bucket->max_bytes;
    config->Replicas = bucket->replicas;
    config->Discard = bucket->drops_old ? js_DiscardOld : js_DiscardNew;
    config->AllowRollup = true;
    s = js_AddStream(NULL, link->stream, config, &options, &code);
    return s == NATS_OK ? CLUSTER_OK
                        : nats_failed(link, s, code, "the bucket cannot be made", err);
}

static enum cluster_fault bucket_make(struct cluster_link *link,
                                      const struct cluster_bucket *bucket, struct err *err)
{
    char subject[NATS_SUBJECT_SIZE];
    const char *subjects[] = {subject};
    jsStreamConfig config;

    nats_name_subject(&layout_keys, bucket->name, ">", subject);
    (void)jsStreamConfig_Init(&config);
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.MaxMsgsPerSubject = 1;
    config.MaxAge = (int64_t)bucket->ttl_ms * (SECOND_NS / 1000);
    /* May not be longer than entries live. */
    config.Duplicates = config.MaxAge;
    config.MaxMsgSize = (int32_t)bucket->max_value_bytes;
    if (bucket->max_entries > 0)
        config.MaxMsgs = (int64_t)bucket->max_entries;
    config.DenyDelete = true;
    return nats_make(link, &layout_keys, bucket, &config, err);
}

static bool is_mark(natsMsg *message)
{
    const char *operation = NULL;

    /* PURGE is the other one, and means the same to who has one message of a key. */
    return natsMsgHeader_Get(message, MARK_HEADER, &operation) == NATS_OK && operation &&
           (strcmp(operation, MARK_REMOVED) == 0 || strcmp(operation, "PURGE") == 0);
}

/* Takes the message over. */
void nats_fill_entry(natsMsg *message, size_t prefix_len, struct cluster_entry *ret)
{
    const char *subject = natsMsg_GetSubject(message);
    size_t len = subject ? strlen(subject) : 0;

    *ret = (struct cluster_entry){.data = natsMsg_GetData(message),
                                  .len = (size_t)natsMsg_GetDataLength(message),
                                  .is_removed = is_mark(message),
                                  .held = message};
    if (len > prefix_len && len - prefix_len < sizeof(ret->key))
        memcpy(ret->key, subject + prefix_len, len - prefix_len + 1);
}

static void release(struct cluster_entry *entry)
{
    natsMsg_Destroy(entry->held);
    *entry = (struct cluster_entry){0};
}

/* The last entry of a key; with a revision the entry of that, whatever its key. */
static enum cluster_fault get_stored(struct cluster_link *link,
                                     const struct nats_layout *layout, const char *bucket,
                                     const char *key, uint64_t revision,
                                     struct cluster_entry *ret, struct err *err)
{
    char stream[NATS_SUBJECT_SIZE], subject[NATS_SUBJECT_SIZE];
    natsMsg *message = NULL;
    jsErrCode code = 0;
    natsStatus s;

    nats_name_stream(layout, bucket, stream);
    nats_name_subject(layout, bucket, key, subject);
    nats_begin_request(link);
    s = revision > 0 ? js_GetMsg(&message, link->stream, stream, revision, NULL, &code)
                     : js_GetLastMsg(&message, link->stream, stream, subject, NULL, &code);
    if (s == NATS_NOT_FOUND && code != JSStreamNotFoundErr) {
        (void)err_set(err, ENOENT, "there is no entry %.64s",
                      revision > 0 ? "of that revision" : key);
        return CLUSTER_NO_ENTRY;
    }
    if (s != NATS_OK)
        return nats_failed(link, s, code, "cannot read the entry", err);
    nats_fill_entry(message, strlen(subject) - strlen(key), ret);
    ret->revision = natsMsg_GetSequence(message);
    ret->stored_ns = (uint64_t)natsMsg_GetTime(message);
    return CLUSTER_OK;
}

enum cluster_fault nats_get(struct cluster_link *link, const struct nats_layout *layout,
                            const char *bucket, const char *key, struct cluster_entry *ret,
                            struct err *err)
{
    return get_stored(link, layout, bucket, key, 0, ret, err);
}

static enum cluster_fault get(struct cluster_link *link, const char *bucket, const char *key,
                              struct cluster_entry *ret, struct err *err)
{
    return get_stored(link, &layout_keys, bucket, key, 0, ret, err);
}

static enum cluster_fault get_at(struct cluster_link *link, const char *bucket,
                                 uint64_t revision, struct cluster_entry *ret, struct err *err)
{
    return get_stored(link, &layout_keys, bucket, "", revision, ret, err);
}

enum cluster_fault nats_publish(struct cluster_link *link, const struct nats_layout *layout,
                                const char *bucket, const char *key, const char *data,
                                size_t len, const char *header[2], jsPubOptions *options,
                                uint64_t *ret_revision, struct err *err)
{
    char subject[NATS_SUBJECT_SIZE];
    natsMsg *message = NULL;
    jsPubAck *ack = NULL;
    jsErrCode code = 0;
    natsStatus s;

    nats_name_subject(layout, bucket, key, subject);
    nats_begin_request(link);
    options->MaxWait = NATS_REQUEST_MS;
    s = natsMsg_Create(&message, subject, NULL, data, (int)len);
    if (s == NATS_OK && header)
        s = natsMsgHeader_Set(message, header[0], header[1]);
    if (s == NATS_OK)
        s = js_PublishMsg(&ack, link->stream, message, options, &code);
    natsMsg_Destroy(message);
    if (s == NATS_NO_RESPONDERS) {
        (void)err_set(err, ENOENT, "nobody takes entries of the bucket %.64s", bucket);
        return CLUSTER_NO_BUCKET;
    }
    if (s != NATS_OK)
        return nats_failed(link, s, code, "cannot write the entry", err);
    if (ret_revision)
        *ret_revision = ack->Sequence;
    jsPubAck_Destroy(ack);
    return CLUSTER_OK;
}

static enum cluster_fault put_on(struct cluster_link *link, const char *bucket, const char *key,
                                 const char *data, size_t len, jsPubOptions *options,
                                 uint64_t *ret_revision, struct err *err)
{
    static const char *mark[] = {MARK_HEADER, MARK_REMOVED};

    return nats_publish(link, &layout_keys, bucket, key, data, len, data ? NULL : mark, options,
                        ret_revision, err);
}

static enum cluster_fault put(struct cluster_link *link, const char *bucket, const char *key,
                              const char *data, size_t len, uint64_t last_revision,
                              uint64_t *ret_revision, struct err *err)
{
    jsPubOptions options;

    (void)jsPubOptions_Init(&options);
    options.ExpectLastSubjectSeq = last_revision;
    options.ExpectNoMessage = last_revision == 0;
    return put_on(link, bucket, key, data, len, &options, ret_revision, err);
}

static enum cluster_fault put_next(struct cluster_link *link, const char *bucket,
                                   const char *key, const char *data, size_t len,
                                   uint64_t bucket_revision, uint64_t *ret_revision,
                                   struct err *err)
{
    jsPubOptions options;

    (void)jsPubOptions_Init(&options);
    options.ExpectLastSeq = bucket_revision;
    return put_on(link, bucket, key, data, len, &options, ret_revision, err);
}

static enum cluster_fault watch(struct cluster_link *link, const char *bucket, uint64_t after,
                                struct err *err)
{
    return nats_watch(link, &layout_keys, bucket, ">",
                      after > 0 ? js_DeliverByStartSequence : js_DeliverLastPerSubject, after,
                      err);
}

static const struct cluster_driver driver = {
    .version = CLUSTER_DRIVER_VERSION,
    .open = link_open,
    .close = link_close,
    .bucket_look = bucket_look,
    .bucket_make = bucket_make,
    .get = get,
    .get_at = get_at,
    .put = put,
    .put_next = put_next,
    .watch = watch,
    .next = nats_next,
    .release = release,
    .objects_look = nats_objects_look,
    .objects_make = nats_objects_make,
    .object_get = nats_object_get,
    .object_put = nats_object_put,
    .chunk_send = nats_chunk_send,
    .chunk_confirm = nats_chunk_confirm,
    .objects_watch = nats_objects_watch,
    .objects_purge = nats_objects_purge,
    .serve = nats_serve,
    .tell = nats_tell,
    .next_call = nats_next_call,
    .answer = nats_answer,
    .call = nats_call,
};

const struct cluster_driver *skillvm_cluster_driver(void);

__attribute__((visibility("default"))) const struct cluster_driver *skillvm_cluster_driver(void)
{
    return &driver;
}
