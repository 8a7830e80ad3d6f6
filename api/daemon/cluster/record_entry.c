/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/record_entry.h"

#include "api/daemon/cluster/entry_values.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

static int take_acceptance(struct json_slice object, struct record *ret)
{
    if (entry_take_text(object, "tenant", ret->tenant, sizeof(ret->tenant)) < 0 ||
        entry_take_text(object, "node", ret->node, sizeof(ret->node)) < 0 ||
        entry_take_text(object, "instance", ret->instance, sizeof(ret->instance)) < 0 ||
        entry_take_text(object, "skill", ret->skill_name, sizeof(ret->skill_name)) < 0 ||
        entry_take_text(object, "version", ret->skill_version, sizeof(ret->skill_version)) <
            0 ||
        entry_take_text(object, "digest", ret->skill_digest, sizeof(ret->skill_digest)) < 0 ||
        entry_take_text(object, "key", ret->idempotency_key, sizeof(ret->idempotency_key)) <
            0 ||
        entry_take_text(object, "request", ret->request_digest, sizeof(ret->request_digest)) <
            0 ||
        entry_take_number(object, "accepted_ns", INT64_MAX, &ret->accepted_ns) < 0 ||
        entry_take_number(object, "seen", INT64_MAX, &ret->seen) < 0 ||
        entry_take_bool(object, "cancel", &ret->is_cancelled) < 0)
        return -EINVAL;
    return tenant_id_valid(ret->tenant) && fleet_node_valid(ret->node) &&
                   ids_valid("", ret->instance) && text_is_plain(ret->skill_name) &&
                   text_is_plain(ret->skill_version) &&
                   entry_is_digest_or_none(ret->skill_digest) &&
                   entry_is_digest_or_none(ret->request_digest) &&
                   (ret->idempotency_key[0] != '\0') == (ret->request_digest[0] != '\0')
               ? 0
               : -EINVAL;
}

static int take_retries(struct json_slice wish, struct record *ret)
{
    struct json_slice unused;
    uint64_t retries = 0;

    if (json_find(wish, "retries", &unused) &&
        entry_take_number(wish, "retries", LIMIT_RETRIES, &retries) < 0)
        return -EINVAL;
    ret->retries = (unsigned)retries;
    if (json_find(wish, "begun", &unused) &&
        (!ret->waits || entry_take_bool(wish, "begun", &ret->was_begun) < 0))
        return -EINVAL;
    /* What has begun nobody begins again, unless that is said. */
    return (ret->waits && !ret->was_begun) || ret->retries > 0 ? 0 : -EINVAL;
}

/* What others need to run it, while it waits, or again. */
static int take_wish(struct json_slice object, struct record *ret)
{
    struct json_slice wish, request, image;
    bool is_here;

    ret->waits = json_find(object, "waits", &wish);
    if (!ret->waits && !json_find(object, "again", &wish))
        return 0;
    if (!json_is_object(wish) || take_retries(wish, ret) < 0 ||
        entry_take_text(wish, "object", ret->request_object, sizeof(ret->request_object)) < 0)
        return -EINVAL;
    if (json_find(wish, "image", &image) &&
        (entry_take_text(wish, "image", ret->request_image, sizeof(ret->request_image)) < 0 ||
         !text_is_plain(ret->request_image)))
        return -EINVAL;
    is_here = json_find(wish, "request", &request);
    if (is_here && (!json_is_string(request) || request.len > RECORD_REQUEST_MAX))
        return -EINVAL;
    if (is_here) {
        ret->request = request.data;
        ret->request_bytes = request.len;
    }
    return entry_is_digest_or_none(ret->request_object) && is_here == !ret->request_object[0]
               ? 0
               : -EINVAL;
}

static bool is_status(const char *text)
{
    static const char *const all[] = {"success", "failed", "timeout", "cancelled"};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(text, all[i]) == 0)
            return true;
    }
    return false;
}

/* As every result is: events are made of it. */
static bool is_line(struct json_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < 0x20)
            return false;
    }
    return true;
}

/* The result is here, or is an object. */
static int take_result(struct json_slice object, struct record *ret)
{
    struct json_slice result;
    bool is_here = json_find(object, "result", &result);

    if (is_here) {
        if (!json_is_object(result) || result.len > RECORD_RESULT_MAX || !is_line(result))
            return -EINVAL;
        ret->result = result.data;
        ret->result_bytes = result.len;
    } else if (entry_take_number(object, "result_bytes", RECORD_RESULT_BYTES_MAX,
                                 &ret->result_bytes) < 0) {
        return -EINVAL;
    }
    if (entry_take_text(object, "result_digest", ret->result_digest,
                        sizeof(ret->result_digest)) < 0)
        return -EINVAL;
    return entry_is_digest_or_none(ret->result_digest) && is_here == !ret->result_digest[0]
               ? 0
               : -EINVAL;
}

static int take_ending(struct json_slice object, struct record *ret)
{
    struct json_slice status;

    if (!json_find(object, "status", &status))
        return take_wish(object, ret);
    if (entry_take_text(object, "status", ret->status, sizeof(ret->status)) < 0 ||
        !is_status(ret->status) ||
        entry_take_number(object, "finished_ns", INT64_MAX, &ret->finished_ns) < 0 ||
        ret->finished_ns == 0 ||
        entry_take_number(object, "cpu_ms", RECORD_CPU_MS_MAX, &ret->cpu_ms) < 0 ||
        entry_take_text(object, "artifact_digest", ret->artifact_digest,
                        sizeof(ret->artifact_digest)) < 0 ||
        !entry_is_digest_or_none(ret->artifact_digest) ||
        entry_take_number(object, "artifact_bytes", RECORD_ARTIFACT_BYTES_MAX,
                          &ret->artifact_bytes) < 0)
        return -EINVAL;
    return take_result(object, ret);
}

int record_entry_parse(const char *key, const char *data, size_t len, struct record *ret,
                       enum node_refusal *ret_why)
{
    struct record record = {0};
    struct json_slice object;

    *ret_why = NODE_WRONG_NAME;
    if (!ids_valid(ID_EXECUTION, key))
        return -EINVAL;
    if (entry_take_object(data, len, RECORD_ENTRY_BYTES_MAX, RECORD_ENTRY_SCHEMA, &object,
                          ret_why) < 0)
        return -EINVAL;
    *ret_why = NODE_MALFORMED;
    if (take_acceptance(object, &record) < 0 || take_ending(object, &record) < 0)
        return -EINVAL;
    memcpy(record.id, key, strlen(key) + 1);
    *ret = record;
    return 0;
}

static bool has_wish(const struct record *record)
{
    return !record->status[0] && (record->waits || record->retries > 0);
}

static void write_wish(struct json_writer *w, const struct record *record)
{
    json_write_open(w, record->waits ? "waits" : "again", '{');
    json_write_string(w, "object", record->request_object);
    if (record->retries > 0)
        json_write_number(w, "retries", record->retries);
    if (record->was_begun)
        json_write_bool(w, "begun", true);
    json_write_string(w, "image", record->request_image);
    if (!record->request_object[0])
        json_write_value(
            w, "request",
            (struct json_slice){.data = record->request, .len = record->request_bytes});
    json_write_close(w, '}');
}

static void write_ending(struct json_writer *w, const struct record *record)
{
    json_write_string(w, "status", record->status);
    json_write_number(w, "finished_ns", record->finished_ns);
    json_write_number(w, "cpu_ms", record->cpu_ms);
    json_write_string(w, "artifact_digest", record->artifact_digest);
    json_write_number(w, "artifact_bytes", record->artifact_bytes);
    json_write_string(w, "result_digest", record->result_digest);
    if (record->result_digest[0])
        json_write_number(w, "result_bytes", record->result_bytes);
    else
        json_write_value(
            w, "result",
            (struct json_slice){.data = record->result, .len = (size_t)record->result_bytes});
}

int record_entry_write(const struct record *record, struct buf *ret)
{
    struct json_writer w;

    /* Nobody could run that. */
    if (has_wish(record) && !record->request_object[0] && record->request_bytes == 0)
        return -EINVAL;
    w = entry_begin(RECORD_ENTRY_BYTES_MAX, RECORD_ENTRY_SCHEMA);
    json_write_string(&w, "tenant", record->tenant);
    json_write_string(&w, "node", record->node);
    json_write_string(&w, "instance", record->instance);
    json_write_string(&w, "skill", record->skill_name);
    json_write_string(&w, "version", record->skill_version);
    json_write_string(&w, "digest", record->skill_digest);
    json_write_string(&w, "key", record->idempotency_key);
    json_write_string(&w, "request", record->request_digest);
    json_write_number(&w, "accepted_ns", record->accepted_ns);
    json_write_number(&w, "seen", record->seen);
    json_write_bool(&w, "cancel", record->is_cancelled);
    if (record->status[0])
        write_ending(&w, record);
    else if (has_wish(record))
        write_wish(&w, record);
    return entry_end(&w, ret);
}
