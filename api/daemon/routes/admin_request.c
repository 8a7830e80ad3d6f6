/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/admin_request.h"

#include "api/daemon/routes/request.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_walk.h"
#include "api/skill/image_manifest.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 16u

static int refuse_member(const struct json_member *m, const char *why, struct err *err)
{
    return err_set(err, EINVAL, "\"%.*s\" %s", (int)(m->key.len < 64 ? m->key.len : 64),
                   m->key.data, why);
}

/* A string of up to max bytes, "" where it may be empty. */
static int take_text(const struct json_member *m, size_t max, char **ret, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(max + 1);
    int r = -EINVAL;

    if (!json_text_has_nul(m->value.data, m->value.len))
        r = json_append_decoded(&text, m->value);
    if (r == 0 && text.len > max)
        r = -E2BIG;
    if (r == 0) {
        free(*ret);
        *ret = strndup(text.data ? (const char *)text.data : "", text.len);
        r = *ret ? 0 : -ENOMEM;
    }
    if (r == -EINVAL)
        return refuse_member(m, "must be a string", err);
    if (r == -E2BIG)
        return refuse_member(m, "is too long", err);
    return r < 0 ? err_no_memory(err) : 0;
}

static int take_bool(const struct json_member *m, bool *ret, struct err *err)
{
    return json_take_bool(m->value, ret) < 0 ? refuse_member(m, "must be true or false", err)
                                             : 0;
}

/* A whole number from 0 on, written without a point or an exponent; null is 0. */
static int take_number(const struct json_member *m, uint64_t max, uint64_t *ret,
                       struct err *err)
{
    int r;

    if (json_slice_is(m->value, "null")) {
        *ret = 0;
        return 0;
    }
    r = json_take_whole(m->value, max, ret);
    if (r == -ERANGE)
        return refuse_member(m, "is too large", err);
    return r < 0 ? refuse_member(m, "must be a whole number from 0 on", err) : 0;
}

/* One of the words for whose executions a machine may run; null is "". */
static int take_reuse(const struct json_member *m, enum tenant_reuse *ret, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int r;

    if (json_slice_is(m->value, "null")) {
        *ret = TENANT_REUSE_UNSET;
        return 0;
    }
    r = take_text(m, LIMIT_TENANT_NAME_BYTES, &text, err);
    if (r < 0)
        return r;
    if (tenant_reuse_parse(text, strlen(text), ret) < 0)
        return refuse_member(m, "must be \"skill\", \"tenant\" or \"never\"", err);
    return 0;
}

/* A name that an image can have, behind those before it. Told twice it is there once. */
static int take_image(struct json_slice item, char images[TENANT_IMAGES_SIZE])
{
    _cleanup_free_ char *name = json_strdup(item, IMAGE_NAME_SIZE - 1);
    size_t len = strlen(images);

    if (!name || !name[0] || name[image_name_length(name)])
        return -EINVAL;
    if (tenant_images_have(images, name))
        return 0;
    if (len + 1 + strlen(name) >= TENANT_IMAGES_SIZE)
        return -E2BIG;
    (void)snprintf(images + len, TENANT_IMAGES_SIZE - len, "%s%s", len > 0 ? " " : "", name);
    return 0;
}

/* The images that it may use; null and [] are all of them. */
static int take_images(const struct json_member *m, char ret[TENANT_IMAGES_SIZE],
                       struct err *err)
{
    struct json_items items = {.array = m->value};
    char images[TENANT_IMAGES_SIZE] = "";
    struct json_slice item;
    int r = json_is_array(m->value) || json_slice_is(m->value, "null") ? 0 : -EINVAL;

    while (r == 0 && json_items_next(&items, &item))
        r = take_image(item, images);
    if (r == -E2BIG)
        return refuse_member(m, "names too many images", err);
    if (r < 0)
        return refuse_member(m, "must be an array of names of images", err);
    memcpy(ret, images, sizeof(images));
    return 0;
}

/* "off", "declared" or hosts with spaces between; null is "". */
static int take_network(const struct json_member *m, struct tenant_limits *limits,
                        struct err *err)
{
    _cleanup_free_ char *text = NULL;
    struct err why = {0};
    int r;

    if (json_slice_is(m->value, "null")) {
        limits->network[0] = '\0';
        return 0;
    }
    r = take_text(m, TENANT_NETWORK_SIZE, &text, err);
    if (r < 0)
        return r;
    if (tenant_network_clean(text, strlen(text), limits->network, &why) < 0)
        return err_set(err, EINVAL,
                       "\"network\" must be \"off\", \"declared\" or a list of hosts: %s",
                       why.message);
    return 0;
}

static int take_limit(const struct json_member *m, void *ctx, struct err *err)
{
    struct tenant_limits *limits = ctx;
    const struct {
        const char *name;
        uint64_t *value, unset, max;
    } known[] = {
#define LIMIT(name, unset, max) {#name, &limits->name, unset, max},
        TENANT_LIMITS_EACH(LIMIT)
#undef LIMIT
    };

    if (json_slice_is(m->key, "network"))
        return take_network(m, limits, err);
    if (json_slice_is(m->key, "reuse"))
        return take_reuse(m, &limits->reuse, err);
    if (json_slice_is(m->key, "images"))
        return take_images(m, limits->images, err);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint64_t value = 0;
        int r;

        if (!json_slice_is(m->key, known[i].name))
            continue;
        r = take_number(m, known[i].max, &value, err);
        if (r == 0)
            *known[i].value = value ? value : known[i].unset;
        return r;
    }
    return refuse_member(m, "is no limit", err);
}

/* Gives each member of an object to take, until one is refused. */
static int each_member(const char *text, size_t len,
                       int (*take)(const struct json_member *, void *, struct err *), void *ctx,
                       struct err *err)
{
    struct json_member members[MEMBERS_MAX];
    size_t n = 0;
    int r = json_text_members(text, len, members, MEMBERS_MAX, &n, err);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = take(&members[i], ctx, err);
    return r;
}

/* A name that no id can be mistaken for. */
static int take_tenant_name(const struct json_member *m, char **ret, struct err *err)
{
    int r = take_text(m, LIMIT_TENANT_NAME_BYTES, ret, err);

    if (r == 0 &&
        (!request_name_valid(*ret, LIMIT_TENANT_NAME_BYTES) || strncmp(*ret, "ten_", 4) == 0))
        return refuse_member(m, "is no valid name of a tenant", err);
    return r;
}

static int take_tenant(const struct json_member *m, void *ctx, struct err *err)
{
    struct admin_tenant *tenant = ctx;
    bool absent = json_slice_is(m->value, "null");

    if (json_slice_is(m->key, "name"))
        return absent ? 0 : take_tenant_name(m, &tenant->name, err);
    if (json_slice_is(m->key, "limits"))
        return absent
                   ? 0
                   : each_member(m->value.data, m->value.len, take_limit, tenant->limits, err);
    if (!json_slice_is(m->key, "disabled"))
        return refuse_member(m, "is unknown", err);
    tenant->has_disabled = !absent;
    return absent ? 0 : take_bool(m, &tenant->is_disabled, err);
}

int admin_tenant_parse(const char *body, size_t len, struct admin_tenant *ret,
                       struct tenant_limits *limits, struct err *err)
{
    *ret = (struct admin_tenant){.limits = limits};
    return each_member(body, len, take_tenant, ret, err);
}

void admin_tenant_finish(struct admin_tenant *tenant)
{
    free(tenant->name);
    *tenant = (struct admin_tenant){0};
}

static int take_key(const struct json_member *m, void *ctx, struct err *err)
{
    struct admin_key *key = ctx;
    bool absent = json_slice_is(m->value, "null");

    if (json_slice_is(m->key, "tenant"))
        return absent ? 0 : take_text(m, LIMIT_TENANT_NAME_BYTES, &key->tenant, err);
    if (json_slice_is(m->key, "name"))
        return absent ? 0 : take_text(m, LIMIT_TENANT_NAME_BYTES, &key->name, err);
    if (!json_slice_is(m->key, "role"))
        return refuse_member(m, "is unknown", err);
    key->is_operator = json_slice_is(m->value, "\"operator\"");
    if (!absent && !key->is_operator && !json_slice_is(m->value, "\"tenant\""))
        return refuse_member(m, "must be \"tenant\" or \"operator\"", err);
    return 0;
}

int admin_key_parse(const char *body, size_t len, struct admin_key *ret, struct err *err)
{
    *ret = (struct admin_key){0};
    return each_member(body, len, take_key, ret, err);
}

void admin_key_finish(struct admin_key *key)
{
    free(key->tenant);
    free(key->name);
    *key = (struct admin_key){0};
}
