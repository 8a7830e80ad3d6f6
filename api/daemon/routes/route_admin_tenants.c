/* SPDX-License-Identifier: Apache-2.0 */
/* The tenants, for the operator. */
#include "api/daemon/callers/audit.h"
#include "api/daemon/callers/auth.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/registry/registry_usage.h"
#include "api/daemon/routes/admin_request.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/page.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENANT_JSON_MAX (16u * 1024u)
#define LIST_JSON_MAX   (2 * LIMIT_MIB)

enum { QUERY_LIMIT, QUERY_CURSOR };

/* id is as the caller has it. What is in the way of a change is a conflict, and no load. */
static bool reply_failed(struct http_reply *reply, int result, const char *id, struct err *err)
{
    return failure_of(reply, result == -EBUSY ? -EEXIST : result, "tenant", id, err);
}

/* Finds the tenant of the path by id or name. False when *reply says why not. */
static bool find_tenant(struct daemon *d, const struct http_request *request,
                        struct registry_tenant *ret, struct http_reply *reply)
{
    struct err err = {0};
    int r = registry_tenant_find(d->registry, request->params[0], ret, &err);

    return r == 0 || reply_failed(reply, r, request->params[0], &err);
}

static void write_images(struct json_writer *w, const char *images)
{
    json_write_open(w, "images", '[');
    for (const char *at = images; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");

        json_write_text(w, NULL, at, len);
        at += len;
    }
    json_write_close(w, ']');
}

static void write_limits(struct json_writer *w, const struct tenant_limits *limits)
{
    json_write_open(w, "limits", '{');
#define LIMIT(name, unset, max) json_write_number(w, #name, limits->name);
    TENANT_LIMITS_EACH(LIMIT)
#undef LIMIT
    json_write_string(w, "reuse", tenant_reuse_name(limits->reuse));
    write_images(w, limits->images);
    json_write_string(w, "network", limits->network);
    json_write_close(w, '}');
}

static int write_tenant(struct daemon *d, struct json_writer *w,
                        const struct registry_tenant *tenant, struct err *err)
{
    uint64_t cpu_ms = 0;
    int r = registry_usage_get(d->registry, tenant->id, registry_usage_day(clock_realtime_ns()),
                               &cpu_ms, err);

    json_write_open(w, NULL, '{');
    json_write_string(w, "id", tenant->id);
    json_write_string(w, "name", tenant->name);
    json_write_bool(w, "disabled", tenant->is_disabled);
    json_write_time(w, "created_at", tenant->created_ns);
    write_limits(w, &tenant->limits);
    json_write_open(w, "usage", '{');
    json_write_number(w, "stored_bytes", tenant->stored_bytes);
    json_write_number(w, "cpu_ms_today", cpu_ms);
    json_write_close(w, '}');
    json_write_close(w, '}');
    return r;
}

static int read_tenant(struct daemon *d, const char *id, struct json_writer *w, struct err *err)
{
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};
    int r = registry_tenant_get(d->registry, id, &tenant, err);

    return r < 0 ? r : write_tenant(d, w, &tenant, err);
}

static void reply_tenant(struct daemon *d, struct http_reply *reply, unsigned status,
                         const char *id)
{
    struct json_writer w = json_writer_init(TENANT_JSON_MAX);
    struct err err = {0};
    int r = read_tenant(d, id, &w, &err);

    if (r == -ENOENT)
        (void)err_set(&err, ENOENT, "there is no tenant %.64s", id);
    if (!failure_or_json(reply, status, &w, r, &err))
        return;
    if (status == 201)
        (void)snprintf(reply->location, sizeof(reply->location), "/v1/admin/tenants/%s", id);
}

/* What a request wants of a tenant. */
struct wanted {
    struct daemon *daemon;
    const char *body;
    size_t len;
    char id[TENANT_ID_SIZE];
    char name[CHANGE_NAME_SIZE]; /* as it is then */
};

static int take_body(struct daemon *d, struct http_request *request, struct wanted *ret)
{
    ret->daemon = d;
    ret->len = (size_t)request->body.size;
    return spool_view(&request->body, &ret->body);
}

static void fill(struct change *change, const struct wanted *wanted)
{
    change->kind = CHANGE_TENANT;
    memcpy(change->id, wanted->id, sizeof(wanted->id));
}

static int plan_create(void *ctx, struct change *ret, struct err *err)
{
    _cleanup_admin_tenant_ struct admin_tenant said = {0};
    struct wanted *wanted = ctx;
    int r;

    ret->tenant.limits = tenant_limits_default();
    r = admin_tenant_parse(wanted->body, wanted->len, &said, &ret->tenant.limits, err);
    if (r < 0)
        return r;
    if (!said.name)
        return err_set(err, EINVAL, "\"name\" is missing");
    if (said.is_disabled)
        return err_set(err, EINVAL, "a new tenant is not disabled");
    fill(ret, wanted);
    (void)snprintf(wanted->name, sizeof(wanted->name), "%s", said.name);
    memcpy(ret->tenant.name, wanted->name, sizeof(wanted->name));
    ret->tenant.created_ns = clock_realtime_ns();
    return 0;
}

static int create(struct daemon *d, struct http_request *request, struct wanted *wanted,
                  struct err *err)
{
    int r = take_body(d, request, wanted);

    if (r < 0)
        return r;
    r = ids_make(ID_TENANT, wanted->id, sizeof(wanted->id));
    return r < 0 ? r : changes_make(d->changes, NULL, plan_create, wanted, err);
}

void route_admin_tenant_create(void *ctx, struct http_request *request,
                               struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct wanted wanted;
    struct err err = {0};
    int r;

    if (!http_request_receive(request))
        return;
    r = create(d, request, &wanted, &err);
    if (r < 0) {
        failure_reply(reply, r, &err);
    } else {
        audit_note(d->audit, &request->caller, "tenant.create", wanted.id, "name %s",
                   wanted.name);
        reply_tenant(d, reply, 201, wanted.id);
    }
}

void route_admin_tenant_list(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(LIST_JSON_MAX);
    struct registry_tenant rows[PAGE_ROWS_MAX];
    struct page page;
    struct err err = {0};
    size_t n = 0;
    int r;

    if (!page_parse(request->query[QUERY_LIMIT], request->query[QUERY_CURSOR], &page, reply))
        return;
    r = registry_tenant_list(d->registry, page.after, page.has_place ? page.after_id : NULL,
                             page.max, rows, &n, &err);
    page_open(&w, "tenants");
    for (size_t i = 0; r == 0 && i < n; i++)
        r = write_tenant(d, &w, &rows[i], &err);
    for (size_t i = 0; i < n; i++) {
        page_count(&page, rows[i].created_ns, rows[i].id);
        registry_tenant_finish(&rows[i]);
    }
    page_reply(reply, &w, &page, r, &err);
}

void route_admin_tenant_get(void *ctx, struct http_request *request, struct http_reply *reply)
{
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};

    if (find_tenant(ctx, request, &tenant, reply))
        reply_tenant(ctx, reply, 200, tenant.id);
}

/* What cannot be done to the tenant that everything without a key belongs to. */
static int check_default(const struct change *there, const struct admin_tenant *said,
                         struct err *err)
{
    if (strcmp(there->id, TENANT_DEFAULT) != 0)
        return 0;
    if (said->is_disabled)
        return err_set(err, EBUSY, "the default tenant is the operator's and stays enabled");
    if (said->name && strcmp(said->name, there->tenant.name) != 0)
        return err_set(err, EBUSY, "the default tenant keeps its name");
    return 0;
}

/* What the body says of it in place of what there is. */
static int plan_update(void *ctx, struct change *ret, struct err *err)
{
    _cleanup_admin_tenant_ struct admin_tenant said = {0};
    const struct wanted *wanted = ctx;
    int r = registry_change_of(wanted->daemon->registry, CHANGE_TENANT, wanted->id, ret, err);

    if (r < 0)
        return r;
    r = admin_tenant_parse(wanted->body, wanted->len, &said, &ret->tenant.limits, err);
    if (r < 0)
        return r;
    r = check_default(ret, &said, err);
    if (r < 0)
        return r;
    if (said.name)
        (void)snprintf(ret->tenant.name, sizeof(ret->tenant.name), "%s", said.name);
    if (said.has_disabled)
        ret->tenant.is_disabled = said.is_disabled;
    return 0;
}

static int update(struct daemon *d, struct http_request *request, struct wanted *wanted,
                  struct err *err)
{
    int r = take_body(d, request, wanted);

    return r < 0 ? r : changes_make(d->changes, NULL, plan_update, wanted, err);
}

void route_admin_tenant_update(void *ctx, struct http_request *request,
                               struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};
    struct wanted wanted;
    struct err err = {0};
    int r;

    if (!http_request_receive(request) || !find_tenant(d, request, &tenant, reply))
        return;
    memcpy(wanted.id, tenant.id, sizeof(wanted.id));
    r = update(d, request, &wanted, &err);
    if (r < 0) {
        reply_failed(reply, r, request->params[0], &err);
    } else {
        audit_note(d->audit, &request->caller, "tenant.update", tenant.id, "%.*s",
                   (int)(wanted.len < 300 ? wanted.len : 300), wanted.body);
        reply_tenant(d, reply, 200, tenant.id);
    }
}

/* Whether it is there is seen where it is removed. */
static int plan_remove(void *ctx, struct change *ret, struct err *err)
{
    if (strcmp(((const struct wanted *)ctx)->id, TENANT_DEFAULT) == 0)
        return err_set(err, EBUSY, "the default tenant is the operator's and stays");
    fill(ret, ctx);
    ret->is_removed = true;
    return 0;
}

void route_admin_tenant_delete(void *ctx, struct http_request *request,
                               struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};
    struct wanted wanted;
    struct err err = {0};
    int r;

    if (!find_tenant(d, request, &tenant, reply))
        return;
    memcpy(wanted.id, tenant.id, sizeof(wanted.id));
    r = changes_make(d->changes, NULL, plan_remove, &wanted, &err);
    if (r < 0) {
        reply_failed(reply, r, request->params[0], &err);
    } else {
        audit_note(d->audit, &request->caller, "tenant.delete", tenant.id, "name %s",
                   tenant.name);
        http_reply_empty(reply, 204);
    }
}
