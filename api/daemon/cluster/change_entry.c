/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/change_entry.h"

#include "api/daemon/cluster/entry_values.h"
#include "api/daemon/terms/ids.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a key begins with, and what the id behind it does. */
static const struct {
    const char *part, *id;
} kinds[CHANGE_KINDS] = {
    [CHANGE_TENANT] = {"tenant.", ID_TENANT},    [CHANGE_KEY] = {"key.", ID_KEY},
    [CHANGE_SKILL] = {"skill.", ID_SKILL},       [CHANGE_FILE] = {"file.", ID_FILE_ROW},
    [CHANGE_SESSION] = {"session.", ID_SESSION},
};

void change_entry_key(enum change_kind kind, const char *id, char ret[CHANGE_KEY_SIZE])
{
    (void)snprintf(ret, CHANGE_KEY_SIZE, "%s%.36s", kinds[kind].part, id);
}

int change_entry_parse_key(const char *key, struct change *ret)
{
    for (int kind = 0; kind < CHANGE_KINDS; kind++) {
        size_t len = strlen(kinds[kind].part);

        if (strncmp(key, kinds[kind].part, len) != 0)
            continue;
        ret->kind = (enum change_kind)kind;
        key += len;
        if (!(kind == CHANGE_TENANT ? tenant_id_valid(key) : ids_valid(kinds[kind].id, key)))
            return -EINVAL;
        (void)snprintf(ret->id, sizeof(ret->id), "%s", key);
        return 0;
    }
    return -EINVAL;
}

static int take_limits(struct json_slice limits, struct tenant_limits *ret)
{
    char reuse[16], network[TENANT_NETWORK_SIZE];
    int r = 0;

#define LIMIT(name, unset, max) r |= entry_take_number(limits, #name, max, &ret->name);
    TENANT_LIMITS_EACH(LIMIT)
#undef LIMIT
    if (r != 0 || ret->weight == 0 ||
        entry_take_text(limits, "reuse", reuse, sizeof(reuse)) < 0 ||
        tenant_reuse_parse(reuse, strlen(reuse), &ret->reuse) < 0 ||
        entry_take_text(limits, "images", ret->images, sizeof(ret->images)) < 0 ||
        !text_is_plain(ret->images) ||
        entry_take_text(limits, "network", network, sizeof(network)) < 0)
        return -EINVAL;
    return tenant_network_clean(network, strlen(network), ret->network, NULL) < 0 ? -EINVAL : 0;
}

static int take_tenant(struct json_slice object, const char *id, struct change_tenant *ret)
{
    struct json_slice limits;

    if (entry_take_text(object, "name", ret->name, sizeof(ret->name)) < 0 || !ret->name[0] ||
        !text_is_plain(ret->name) || strncmp(ret->name, ID_TENANT, strlen(ID_TENANT)) == 0 ||
        entry_take_bool(object, "disabled", &ret->is_disabled) < 0 ||
        entry_take_number(object, "created_ns", INT64_MAX, &ret->created_ns) < 0 ||
        !json_find(object, "limits", &limits) || take_limits(limits, &ret->limits) < 0)
        return -EINVAL;
    /* The operator's own is there with its name, whatever anybody says. */
    if ((strcmp(id, TENANT_DEFAULT) == 0) != (strcmp(ret->name, TENANT_DEFAULT) == 0) ||
        (strcmp(id, TENANT_DEFAULT) == 0 && ret->is_disabled))
        return -EINVAL;
    return 0;
}

static int take_key(struct json_slice object, struct change_key *ret)
{
    if (entry_take_text(object, "tenant", ret->tenant, sizeof(ret->tenant)) < 0 ||
        !tenant_id_valid(ret->tenant) ||
        entry_take_text(object, "digest", ret->digest, sizeof(ret->digest)) < 0 ||
        !entry_is_digest(ret->digest) ||
        entry_take_text(object, "name", ret->name, sizeof(ret->name)) < 0 ||
        !text_is_plain(ret->name) ||
        entry_take_bool(object, "operator", &ret->is_operator) < 0 ||
        entry_take_number(object, "created_ns", INT64_MAX, &ret->created_ns) < 0 ||
        entry_take_number(object, "revoked_ns", INT64_MAX, &ret->revoked_ns) < 0)
        return -EINVAL;
    return ret->is_operator && strcmp(ret->tenant, TENANT_DEFAULT) != 0 ? -EINVAL : 0;
}

/* As a request may name it. */
static bool is_name(const char *text)
{
    return text[0] && text[0] != '.' && text_is_plain(text) && !strpbrk(text, "/\\@\"");
}

/* The packages of a skill, which may have none. */
static int take_packages(struct json_slice object, struct change_skill *ret)
{
    struct json_slice list;

    if (json_find(object, "packages", &list)) {
        if (!json_is_array(list) || list.len >= sizeof(ret->packages))
            return -EINVAL;
        memcpy(ret->packages, list.data, list.len);
        ret->packages[list.len] = '\0';
    }
    if (entry_take_text(object, "packages_digest", ret->packages_digest,
                        sizeof(ret->packages_digest)) < 0 ||
        entry_take_number(object, "packages_python", UINT8_MAX, &ret->packages_python) < 0)
        return -EINVAL;
    return !ret->packages_digest[0] ||
                   (ret->packages[0] && entry_is_digest(ret->packages_digest))
               ? 0
               : -EINVAL;
}

static int take_skill(struct json_slice object, struct change_skill *ret)
{
    if (entry_take_text(object, "tenant", ret->tenant, sizeof(ret->tenant)) < 0 ||
        !tenant_id_valid(ret->tenant) ||
        entry_take_text(object, "name", ret->name, sizeof(ret->name)) < 0 ||
        !is_name(ret->name) ||
        entry_take_text(object, "version", ret->version, sizeof(ret->version)) < 0 ||
        !is_name(ret->version) ||
        entry_take_text(object, "digest", ret->digest, sizeof(ret->digest)) < 0 ||
        !entry_is_digest(ret->digest) ||
        entry_take_text(object, "description", ret->description, sizeof(ret->description)) <
            0 ||
        entry_take_number(object, "created_ns", INT64_MAX, &ret->created_ns) < 0 ||
        entry_take_number(object, "bytes", INT64_MAX, &ret->bytes) < 0 ||
        entry_take_number(object, "place", CHANGE_PLACE_MAX, &ret->place) < 0 ||
        entry_take_bool(object, "floating", &ret->is_floating) < 0)
        return -EINVAL;
    return take_packages(object, ret);
}

/* As an upload may name it: a skill finds it below its folder of inputs. */
static bool is_file_name(const char *text)
{
    return text[0] && strcmp(text, ".") != 0 && strcmp(text, "..") != 0 &&
           text_is_plain(text) && !strpbrk(text, "/\\");
}

static int take_file(struct json_slice object, struct change_file *ret)
{
    if (entry_take_text(object, "tenant", ret->tenant, sizeof(ret->tenant)) < 0 ||
        !tenant_id_valid(ret->tenant) ||
        entry_take_text(object, "id", ret->id, sizeof(ret->id)) < 0 ||
        !ids_valid(ID_FILE, ret->id) ||
        entry_take_text(object, "name", ret->name, sizeof(ret->name)) < 0 ||
        !is_file_name(ret->name) ||
        entry_take_text(object, "content_type", ret->content_type, sizeof(ret->content_type)) <
            0 ||
        !ret->content_type[0] || !text_is_plain(ret->content_type) ||
        entry_take_text(object, "digest", ret->digest, sizeof(ret->digest)) < 0 ||
        !entry_is_digest(ret->digest) ||
        entry_take_number(object, "bytes", LIMIT_INFILE_BYTES, &ret->bytes) < 0 ||
        entry_take_number(object, "created_ns", INT64_MAX, &ret->created_ns) < 0 ||
        entry_take_number(object, "expires_ns", INT64_MAX, &ret->expires_ns) < 0)
        return -EINVAL;
    return 0;
}

static int take_session(struct json_slice object, struct change_session *ret)
{
    if (entry_take_text(object, "tenant", ret->tenant, sizeof(ret->tenant)) < 0 ||
        !tenant_id_valid(ret->tenant) ||
        entry_take_text(object, "name", ret->name, sizeof(ret->name)) < 0 ||
        !ids_session_valid(ret->name) ||
        entry_take_text(object, "digest", ret->digest, sizeof(ret->digest)) < 0 ||
        !entry_is_digest(ret->digest) ||
        entry_take_number(object, "bytes", LIMIT_SESSION_STREAM, &ret->bytes) < 0 ||
        entry_take_number(object, "files", LIMIT_SESSION_FILES, &ret->files) < 0 ||
        entry_take_number(object, "content_bytes", LIMIT_SESSION_BYTES, &ret->content_bytes) <
            0 ||
        entry_take_number(object, "created_ns", INT64_MAX, &ret->created_ns) < 0 ||
        entry_take_number(object, "changed_ns", INT64_MAX, &ret->changed_ns) < 0 ||
        entry_take_number(object, "used_ns", INT64_MAX, &ret->used_ns) < 0)
        return -EINVAL;
    return 0;
}

static int take(struct json_slice object, struct change *change)
{
    switch (change->kind) {
    case CHANGE_TENANT:
        return take_tenant(object, change->id, &change->tenant);
    case CHANGE_KEY:
        return take_key(object, &change->key);
    case CHANGE_SKILL:
        return take_skill(object, &change->skill);
    case CHANGE_FILE:
        return take_file(object, &change->file);
    case CHANGE_SESSION:
        return take_session(object, &change->session);
    default:
        return -EINVAL;
    }
}

int change_entry_parse(const char *key, const char *data, size_t len, bool is_removed,
                       struct change *ret, enum node_refusal *ret_why)
{
    struct change change = {.is_removed = is_removed};
    struct json_slice object;

    *ret_why = NODE_WRONG_NAME;
    if (change_entry_parse_key(key, &change) < 0)
        return -EINVAL;
    if (!is_removed && entry_take_object(data, len, CHANGE_ENTRY_BYTES_MAX, CHANGE_ENTRY_SCHEMA,
                                         &object, ret_why) < 0)
        return -EINVAL;
    *ret_why = NODE_MALFORMED;
    if (is_removed ? strcmp(change.id, TENANT_DEFAULT) == 0 : take(object, &change) < 0)
        return -EINVAL;
    *ret = change;
    return 0;
}

static void write_tenant(struct json_writer *w, const struct change_tenant *tenant)
{
    json_write_string(w, "name", tenant->name);
    json_write_bool(w, "disabled", tenant->is_disabled);
    json_write_number(w, "created_ns", tenant->created_ns);
    json_write_open(w, "limits", '{');
#define LIMIT(name, unset, max) json_write_number(w, #name, tenant->limits.name);
    TENANT_LIMITS_EACH(LIMIT)
#undef LIMIT
    json_write_string(w, "reuse", tenant_reuse_name(tenant->limits.reuse));
    json_write_string(w, "images", tenant->limits.images);
    json_write_string(w, "network", tenant->limits.network);
    json_write_close(w, '}');
}

static void write_key(struct json_writer *w, const struct change_key *key)
{
    json_write_string(w, "tenant", key->tenant);
    json_write_string(w, "digest", key->digest);
    json_write_string(w, "name", key->name);
    json_write_bool(w, "operator", key->is_operator);
    json_write_number(w, "created_ns", key->created_ns);
    json_write_number(w, "revoked_ns", key->revoked_ns);
}

static void write_skill(struct json_writer *w, const struct change_skill *skill)
{
    json_write_string(w, "tenant", skill->tenant);
    json_write_string(w, "name", skill->name);
    json_write_string(w, "version", skill->version);
    json_write_string(w, "digest", skill->digest);
    json_write_string(w, "description", skill->description);
    json_write_number(w, "created_ns", skill->created_ns);
    json_write_number(w, "bytes", skill->bytes);
    json_write_number(w, "place", skill->place);
    json_write_bool(w, "floating", skill->is_floating);
    if (skill->packages[0])
        json_write_value(
            w, "packages",
            (struct json_slice){.data = skill->packages, .len = strlen(skill->packages)});
    json_write_string(w, "packages_digest", skill->packages_digest);
    json_write_number(w, "packages_python", skill->packages_python);
}

static void write_file(struct json_writer *w, const struct change_file *file)
{
    json_write_string(w, "tenant", file->tenant);
    json_write_string(w, "id", file->id);
    json_write_string(w, "name", file->name);
    json_write_string(w, "content_type", file->content_type);
    json_write_string(w, "digest", file->digest);
    json_write_number(w, "bytes", file->bytes);
    json_write_number(w, "created_ns", file->created_ns);
    json_write_number(w, "expires_ns", file->expires_ns);
}

static void write_session(struct json_writer *w, const struct change_session *session)
{
    json_write_string(w, "tenant", session->tenant);
    json_write_string(w, "name", session->name);
    json_write_string(w, "digest", session->digest);
    json_write_number(w, "bytes", session->bytes);
    json_write_number(w, "files", session->files);
    json_write_number(w, "content_bytes", session->content_bytes);
    json_write_number(w, "created_ns", session->created_ns);
    json_write_number(w, "changed_ns", session->changed_ns);
    json_write_number(w, "used_ns", session->used_ns);
}

static void write_all(struct json_writer *w, const struct change *change)
{
    switch (change->kind) {
    case CHANGE_TENANT:
        write_tenant(w, &change->tenant);
        return;
    case CHANGE_KEY:
        write_key(w, &change->key);
        return;
    case CHANGE_SKILL:
        write_skill(w, &change->skill);
        return;
    case CHANGE_FILE:
        write_file(w, &change->file);
        return;
    default:
        write_session(w, &change->session);
    }
}

int change_entry_write(const struct change *change, struct buf *ret)
{
    struct json_writer w;

    /* A row may have more than a change has room for. */
    if (change->kind == CHANGE_SKILL && change->skill.packages[0] &&
        change->skill.packages[0] != '[')
        return -E2BIG;
    w = entry_begin(CHANGE_ENTRY_BYTES_MAX, CHANGE_ENTRY_SCHEMA);
    write_all(&w, change);
    return entry_end(&w, ret);
}

int change_entry_parse_begin(const char *data, size_t len, char ret_bucket[CHANGE_MARK_SIZE])
{
    char bucket[CHANGE_MARK_SIZE];
    struct json_slice object;
    enum node_refusal why;

    if (entry_take_object(data, len, CHANGE_ENTRY_BYTES_MAX, CHANGE_ENTRY_SCHEMA, &object,
                          &why) < 0 ||
        entry_take_text(object, "bucket", bucket, sizeof(bucket)) < 0 || !ids_valid("", bucket))
        return -EINVAL;
    memcpy(ret_bucket, bucket, sizeof(bucket));
    return 0;
}

int change_entry_write_begin(const char *bucket, struct buf *ret)
{
    struct json_writer w = entry_begin(CHANGE_ENTRY_BYTES_MAX, CHANGE_ENTRY_SCHEMA);

    json_write_string(&w, "bucket", bucket);
    return entry_end(&w, ret);
}
