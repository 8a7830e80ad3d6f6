/* SPDX-License-Identifier: Apache-2.0 */
/* The keys and the audit, for the operator. */
#include "api/daemon/callers/audit.h"
#include "api/daemon/callers/auth.h"
#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_keys.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/routes/admin_request.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/page.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_JSON_MAX  (16u * 1024u)
#define LIST_JSON_MAX (2 * LIMIT_MIB)

enum { QUERY_LIMIT, QUERY_CURSOR, QUERY_TENANT };

/* The id of a tenant by id or name. 0; -EINVAL when there is none; -EIO. */
static int find_tenant(struct daemon *d, const char *wanted, char ret[TENANT_ID_SIZE],
                       struct err *err)
{
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};
    int r = registry_tenant_find(d->registry, wanted, &tenant, err);

    if (r == -ENOENT)
        return err_set(err, EINVAL, "there is no tenant %.64s", wanted);
    if (r < 0)
        return r;
    memcpy(ret, tenant.id, TENANT_ID_SIZE);
    return 0;
}

/* The members of a key; text only where it was made just now. */
static void write_key(struct json_writer *w, const struct registry_key *key, const char *text)
{
    json_write_open(w, NULL, '{');
    json_write_string(w, "id", key->id);
    if (text)
        json_write_string(w, "key", text);
    json_write_string(w, "tenant_id", key->tenant);
    json_write_string(w, "name", key->name);
    json_write_string(w, "role", key->is_operator ? "operator" : "tenant");
    json_write_time(w, "created_at", key->created_ns);
    json_write_time(w, "last_used_at", key->last_used_ns);
    json_write_time(w, "revoked_at", key->revoked_ns);
    json_write_close(w, '}');
}

/* A key to be stored. */
struct new_key {
    const struct registry_key *key;
    char digest[SHA256_HEX_SIZE];
};

static int plan_create(void *ctx, struct change *ret, struct err *err)
{
    const struct new_key *made = ctx;

    (void)err;
    *ret = (struct change){
        .kind = CHANGE_KEY,
        .key = {.is_operator = made->key->is_operator, .created_ns = made->key->created_ns}};
    memcpy(ret->id, made->key->id, sizeof(made->key->id));
    memcpy(ret->key.tenant, made->key->tenant, sizeof(made->key->tenant));
    memcpy(ret->key.digest, made->digest, sizeof(made->digest));
    (void)snprintf(ret->key.name, sizeof(ret->key.name), "%s", made->key->name);
    return 0;
}

/* Makes a key's text and its id and stores it. */
static int store_key(struct daemon *d, struct registry_key *key, char text[AUTH_KEY_SIZE],
                     struct err *err)
{
    struct new_key made = {.key = key};
    int r = auth_make_key(text, made.digest);

    if (r < 0)
        return r;
    r = ids_make(ID_KEY, key->id, sizeof(key->id));
    return r < 0 ? r : changes_make(d->changes, NULL, plan_create, &made, err);
}

/* Stores a key and answers with it: this once. */
static void create_key(struct daemon *d, const struct http_request *request,
                       struct registry_key *key, struct http_reply *reply)
{
    struct json_writer w = json_writer_init(KEY_JSON_MAX);
    char text[AUTH_KEY_SIZE];
    struct err err = {0};
    int r = store_key(d, key, text, &err);

    if (r == 0) {
        audit_note(d->audit, &request->caller, "key.create", key->id, "tenant %s role %s",
                   key->tenant, key->is_operator ? "operator" : "tenant");
        write_key(&w, key, text);
    }
    explicit_bzero(text, sizeof(text));
    if (r == -ENOENT)
        r = err_set(&err, EINVAL, "there is no tenant %s", key->tenant);
    if (failure_or_json(reply, 201, &w, r, &err))
        (void)snprintf(reply->location, sizeof(reply->location), "/v1/admin/keys/%s", key->id);
}

/* What the body says, in wanted and, with its tenant, in key. */
static int read_wanted(struct daemon *d, struct http_request *request, struct admin_key *wanted,
                       struct registry_key *key, struct err *err)
{
    const char *text;
    int r = spool_view(&request->body, &text);

    if (r < 0)
        return r;
    r = admin_key_parse(text, (size_t)request->body.size, wanted, err);
    if (r < 0)
        return r;
    r = find_tenant(d, wanted->tenant ? wanted->tenant : request->caller.tenant, key->tenant,
                    err);
    if (r < 0)
        return r;
    if (wanted->is_operator && strcmp(key->tenant, TENANT_DEFAULT) != 0)
        return err_set(err, EINVAL, "a key of the operator belongs to the default tenant");
    key->is_operator = wanted->is_operator;
    key->name = wanted->name ? steal_ptr(&wanted->name) : strdup("");
    return key->name ? 0 : err_no_memory(err);
}

void route_admin_key_create(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_registry_key_ struct registry_key key = {.created_ns = clock_realtime_ns()};
    _cleanup_admin_key_ struct admin_key wanted = {0};
    struct err err = {0};
    int r;

    if (!http_request_receive(request))
        return;
    r = read_wanted(d, request, &wanted, &key, &err);
    if (r < 0)
        failure_reply(reply, r, &err);
    else
        create_key(d, request, &key, reply);
}

/* The page and the tenant of a list. False when *reply says what is wrong. */
static bool parse_query(struct daemon *d, const struct http_request *request,
                        struct page *ret_page, char ret_tenant[TENANT_ID_SIZE],
                        struct http_reply *reply)
{
    const char *tenant = request->query[QUERY_TENANT];
    struct err err = {0};
    int r;

    ret_tenant[0] = '\0';
    if (!page_parse(request->query[QUERY_LIMIT], request->query[QUERY_CURSOR], ret_page, reply))
        return false;
    r = tenant ? find_tenant(d, tenant, ret_tenant, &err) : 0;
    /* The audit of a tenant outlives it. */
    if (r == -EINVAL && tenant_id_valid(tenant)) {
        (void)snprintf(ret_tenant, TENANT_ID_SIZE, "%s", tenant);
        r = 0;
    }
    return failure_or_true(reply, r, &err);
}

void route_admin_key_list(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(LIST_JSON_MAX);
    struct registry_key rows[PAGE_ROWS_MAX];
    struct page page;
    struct err err = {0};
    char tenant[TENANT_ID_SIZE];
    size_t n = 0;
    int r;

    if (!parse_query(d, request, &page, tenant, reply))
        return;
    r = registry_key_list(d->registry, tenant[0] ? tenant : NULL, page.after,
                          page.has_place ? page.after_id : NULL, page.max, rows, &n, &err);
    page_open(&w, "keys");
    for (size_t i = 0; i < n; i++) {
        write_key(&w, &rows[i], NULL);
        page_count(&page, rows[i].created_ns, rows[i].id);
        registry_key_finish(&rows[i]);
    }
    page_reply(reply, &w, &page, r, &err);
}

/* A key and the daemon that has it. */
struct old_key {
    struct daemon *daemon;
    const char *id;
};

static int plan_revoke(void *ctx, struct change *ret, struct err *err)
{
    const struct old_key *old = ctx;
    int r = registry_change_of(old->daemon->registry, CHANGE_KEY, old->id, ret, err);

    if (r == 0 && !ret->key.revoked_ns)
        ret->key.revoked_ns = clock_realtime_ns();
    return r;
}

void route_admin_key_revoke(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *id = request->params[0];
    struct err err = {0};
    struct old_key old = {.daemon = d, .id = id};
    int r = changes_make(d->changes, NULL, plan_revoke, &old, &err);

    if (r < 0) {
        failure_of(reply, r, "key", id, &err);
    } else {
        audit_note(d->audit, &request->caller, "key.revoke", id, "%s", "");
        http_reply_empty(reply, 204);
    }
}

static void write_entry(struct json_writer *w, const struct registry_audit *row)
{
    char node[FLEET_NODE_SIZE];

    (void)snprintf(node, sizeof(node), "%.*s", (int)strcspn(row->entry, "."), row->entry);
    json_write_open(w, NULL, '{');
    json_write_number(w, "id", row->id);
    json_write_string(w, "node", node[0] ? node : NULL);
    json_write_time(w, "at", row->at_ns);
    json_write_string(w, "tenant_id", row->tenant[0] ? row->tenant : NULL);
    json_write_string(w, "actor", row->actor);
    json_write_string(w, "action", row->action);
    json_write_string(w, "target", row->target);
    json_write_string(w, "detail", row->detail);
    json_write_close(w, '}');
}

void route_admin_audit(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(LIST_JSON_MAX);
    struct registry_audit rows[PAGE_ROWS_MAX];
    struct page page;
    struct err err = {0};
    char tenant[TENANT_ID_SIZE];
    size_t n = 0;
    int r;

    if (!parse_query(d, request, &page, tenant, reply))
        return;
    r = registry_audit_list(d->registry, tenant[0] ? tenant : NULL,
                            page.has_place ? page.after : 0, page.after_id, page.max, rows, &n,
                            &err);
    page_open(&w, "entries");
    for (size_t i = 0; i < n; i++) {
        write_entry(&w, &rows[i]);
        page_count(&page, rows[i].place, rows[i].entry);
        registry_audit_finish(&rows[i]);
    }
    page_reply(reply, &w, &page, r, &err);
}
