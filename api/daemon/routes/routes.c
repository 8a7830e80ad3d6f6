/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/retention.h"
#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_records.h"
#include "api/daemon/registry/registry_sessions.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"

#include <stdio.h>

const struct http_route daemon_routes[] = {
    {"GET", "/health", route_health, .access = HTTP_ACCESS_OPEN},
    {"GET", "/ready", route_ready, .access = HTTP_ACCESS_OPEN},
    {"GET", "/metrics", route_metrics, .access = HTTP_ACCESS_OPERATOR},
    {"POST", "/v1/skills", route_skill_push, .access = HTTP_ACCESS_TENANT,
     .body = HTTP_BODY_ARCHIVE, .max_bytes = HTTP_BYTES_ARCHIVE,
     /* SKILL.md says name and version; clients of other runners send them as well. */
     .parts = {{"file", HTTP_BYTES_ARCHIVE},
               {"name", LIMIT_NAME_BYTES},
               {"version", LIMIT_VERSION_BYTES}},
     .query = {"replace"}},
    {"GET", "/v1/skills", route_skill_list, .access = HTTP_ACCESS_TENANT},
    {"POST", "/v1/skills/validate", route_skill_validate, .access = HTTP_ACCESS_TENANT,
     .body = HTTP_BODY_ARCHIVE, .max_bytes = HTTP_BYTES_ARCHIVE,
     .parts = {{"file", HTTP_BYTES_ARCHIVE}}},
    {"GET", "/v1/skills/:/:", route_skill_get, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/skills/:/:/inspect", route_skill_inspect, .access = HTTP_ACCESS_TENANT},
    {"DELETE", "/v1/skills/:/:", route_skill_delete, .access = HTTP_ACCESS_TENANT},
    {"POST", "/v1/files", route_file_upload, .access = HTTP_ACCESS_TENANT,
     .body = HTTP_BODY_FILE, .max_bytes = LIMIT_INFILE_BYTES,
     .parts = {{"file", LIMIT_INFILE_BYTES}}, .query = {"name"}},
    {"GET", "/v1/files", route_file_list, .access = HTTP_ACCESS_TENANT,
     .query = {"limit", "offset", "session_id", "execution_id"}},
    {"GET", "/v1/files/:", route_file_get, .access = HTTP_ACCESS_TENANT},
    {"DELETE", "/v1/files/:", route_file_delete, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/files/:/download", route_file_download, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/sessions", route_session_list, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/sessions/:", route_session_get, .access = HTTP_ACCESS_TENANT},
    {"DELETE", "/v1/sessions/:", route_session_delete, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/sessions/:/files", route_session_files, .access = HTTP_ACCESS_TENANT,
     .query = {"limit", "offset"}},
    {"GET", "/v1/sessions/:/files/*", route_session_file, .access = HTTP_ACCESS_TENANT},
    {"DELETE", "/v1/sessions/:/files/*", route_session_file_delete,
     .access = HTTP_ACCESS_TENANT},
    {"POST", "/v1/executions", route_execution_create, .access = HTTP_ACCESS_TENANT,
     .body = HTTP_BODY_JSON, .max_bytes = LIMIT_REQUEST_BYTES,
     .parts = {{"request", LIMIT_REQUEST_BYTES}, {"skill_archive", HTTP_BYTES_ARCHIVE}}},
    {"GET", "/v1/executions", route_execution_list, .access = HTTP_ACCESS_TENANT,
     .query = {"limit", "cursor", "skill", "status"}},
    {"GET", "/v1/executions/:", route_execution_get, .access = HTTP_ACCESS_TENANT},
    {"DELETE", "/v1/executions/:", route_execution_cancel, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/executions/:/logs", route_execution_logs, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/executions/:/events", route_execution_events, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/executions/:/files", route_execution_files, .access = HTTP_ACCESS_TENANT},
    {"GET", "/v1/executions/:/files/*", route_execution_file, .access = HTTP_ACCESS_TENANT},
    {"POST", "/v1/admin/tenants", route_admin_tenant_create, .access = HTTP_ACCESS_OPERATOR,
     .body = HTTP_BODY_JSON, .max_bytes = LIMIT_ADMIN_BYTES},
    {"GET", "/v1/admin/tenants", route_admin_tenant_list, .access = HTTP_ACCESS_OPERATOR,
     .query = {"limit", "cursor"}},
    {"GET", "/v1/admin/tenants/:", route_admin_tenant_get, .access = HTTP_ACCESS_OPERATOR},
    {"PATCH", "/v1/admin/tenants/:", route_admin_tenant_update, .access = HTTP_ACCESS_OPERATOR,
     .body = HTTP_BODY_JSON, .max_bytes = LIMIT_ADMIN_BYTES},
    {"DELETE", "/v1/admin/tenants/:", route_admin_tenant_delete,
     .access = HTTP_ACCESS_OPERATOR},
    {"POST", "/v1/admin/keys", route_admin_key_create, .access = HTTP_ACCESS_OPERATOR,
     .body = HTTP_BODY_JSON, .max_bytes = LIMIT_ADMIN_BYTES},
    {"GET", "/v1/admin/keys", route_admin_key_list, .access = HTTP_ACCESS_OPERATOR,
     .query = {"limit", "cursor", "tenant"}},
    {"DELETE", "/v1/admin/keys/:", route_admin_key_revoke, .access = HTTP_ACCESS_OPERATOR},
    {"GET", "/v1/admin/audit", route_admin_audit, .access = HTTP_ACCESS_OPERATOR,
     .query = {"limit", "cursor", "tenant"}},
    {"POST", "/v1/admin/images/reload", route_admin_images_reload,
     .access = HTTP_ACCESS_OPERATOR},
    {"GET", "/v1/admin/cluster", route_admin_cluster_get, .access = HTTP_ACCESS_OPERATOR},
    {"POST", "/v1/admin/cluster", route_admin_cluster_init, .access = HTTP_ACCESS_OPERATOR},
    {"DELETE", "/v1/admin/cluster/nodes/:", route_admin_cluster_remove,
     .access = HTTP_ACCESS_OPERATOR},
    {"POST", "/v1/admin/cluster/nodes/:/drain", route_admin_cluster_drain,
     .access = HTTP_ACCESS_OPERATOR},
    {"GET", "/v1/admin/cluster/nodes/:/drain", route_admin_cluster_drained,
     .access = HTTP_ACCESS_OPERATOR},
    {"DELETE", "/v1/admin/cluster/nodes/:/drain", route_admin_cluster_undrain,
     .access = HTTP_ACCESS_OPERATOR},
    {"GET", DOWNLOAD_LINK_PATH ":", route_download, .access = HTTP_ACCESS_OPEN},
    {"GET", "/v1/tools", route_tool_list, .access = HTTP_ACCESS_TENANT, .query = {"format"}},
    {"POST", "/v1/tools/call", route_tool_call, .access = HTTP_ACCESS_TENANT,
     .body = HTTP_BODY_JSON, .max_bytes = LIMIT_REQUEST_BYTES},
    {.method = NULL},
};

static int write_metrics(struct daemon *d, struct buf *out, struct err *err)
{
    struct metrics_gauges gauges = {.sessions_expired =
                                        retention_expired_sessions(d->retention)};
    int r = registry_session_totals(d->registry, &gauges.sessions, &gauges.sessions_bytes, err);

    if (r < 0)
        return r;
    r = registry_records_untold(d->registry, &gauges.untold, err);
    if (r < 0)
        return r;
    r = registry_audit_count_untold(d->registry, &gauges.audit_untold, err);
    if (r < 0)
        return r;
    engine_measure(d->engine, &gauges);
    pool_measure(d->pool, &gauges.machines);
    snapshots_measure(d->snapshots, &gauges.snapshot);
    cluster_measure(d->cluster, &gauges.cluster);
    return metrics_write(d->metrics, &gauges, out);
}

void route_metrics(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct buf body = buf_init(METRICS_BYTES_MAX);
    struct err err = {0};
    int r = write_metrics(ctx, &body, &err);

    (void)request;
    if (r < 0) {
        buf_finish(&body);
        (void)failure_reply(reply, r, &err);
        return;
    }
    http_reply_empty(reply, 200);
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply->body = body;
}
