/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/network.h"

#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define WARNINGS_MAX 4u
#define ROW_MAX      400u /* of the audit's detail: as many hosts as fit are in one row */
#define HOST_MAX     (EGRESS_REFUSED_SIZE + HOST_NAME_SIZE + 16u)

int network_open(const struct egress_settings *settings, const struct job_network *network,
                 struct egress **ret, struct err *err)
{
    const struct egress_rules rules = {
        .declared = network->declared, .policy = network->policy, .asked = network->asked};

    *ret = NULL;
    if (!network->declared)
        return 0;
    *ret = egress_open(settings, &rules, err);
    return *ret ? 0 : -EIO;
}

/* What to change for a host that was refused; NULL where nothing could be. */
static const char *remedy_of(enum egress_refusal refusal)
{
    switch (refusal) {
    case EGRESS_UNDECLARED:
        return "is not among the hosts that it declares: add it to network: in SKILL.md, or to "
               "the request's network for code";
    case EGRESS_NOT_IN_POLICY:
        return "is not permitted by the tenant's policy: the operator changes its limit "
               "network, "
               "or the setting network.policy";
    case EGRESS_NOT_ASKED:
        return "is declared, but the request's network leaves it out";
    case EGRESS_BAD_ADDRESS:
    case EGRESS_OVER_LIMIT:
        return "was refused";
    default:
        return NULL;
    }
}

static void warn(struct execution *e, const struct egress_records *log)
{
    unsigned said = 0;

    for (size_t i = 0; i < log->n && said < WARNINGS_MAX; i++) {
        const struct egress_record *row = &log->rows[i];
        const char *remedy = remedy_of(row->refusal);
        bool has_reason =
            row->refusal == EGRESS_BAD_ADDRESS || row->refusal == EGRESS_OVER_LIMIT;

        if (!remedy)
            continue;
        (void)skill_strings_add(&e->warnings, "network: %s %s%s%s", row->host, remedy,
                                has_reason ? ": " : "", has_reason ? row->refused : "");
        said++;
    }
    if (log->others.connections > 0)
        (void)skill_strings_add(&e->warnings,
                                "network: %llu more connections and refusals are not listed",
                                (unsigned long long)log->others.connections);
}

static void append(struct registry *registry, const struct execution *e, struct buf *detail)
{
    struct registry_audit deed = {.at_ns = clock_realtime_ns(),
                                  .tenant = e->tenant,
                                  .actor = e->id,
                                  .action = "network",
                                  .target = e->skill_name};
    struct err err = {0};

    deed.detail = buf_cstr(detail);
    if (!deed.detail || registry_audit_append(registry, &deed, &err) < 0)
        log_error("audit", "execution=%s action=network lost=\"%s\"", e->id, err.message);
    buf_clear(detail);
}

static void write_row(struct buf *out, const struct egress_record *row)
{
    (void)buf_printf(out, "%s%s", out->len > 0 ? "; " : "",
                     row->host[0] ? row->host : "others");
    if (row->port)
        (void)buf_printf(out, ":%u", row->port);
    if (row->refusal != EGRESS_REACHED)
        (void)buf_printf(out, " refused %llu times: %s", (unsigned long long)row->connections,
                         row->refused);
    else
        (void)buf_printf(out, " %llu connections, %llu bytes sent, %llu received",
                         (unsigned long long)row->connections,
                         (unsigned long long)row->bytes_sent,
                         (unsigned long long)row->bytes_received);
}

static void audit(struct registry *registry, const struct execution *e,
                  const struct egress_records *log)
{
    _cleanup_buf_ struct buf detail = buf_init(ROW_MAX + HOST_MAX + 64u);
    struct err err = {0};

    for (size_t i = 0; i < log->n; i++) {
        write_row(&detail, &log->rows[i]);
        if (detail.len > ROW_MAX - HOST_MAX)
            append(registry, e, &detail);
    }
    if (log->others.connections > 0)
        write_row(&detail, &log->others);
    if (detail.len > 0)
        append(registry, e, &detail);
    if (registry_audit_prune_tenant(registry, e->tenant, LIMIT_AUDIT_TENANT_ROWS, &err) < 0)
        log_error("audit", "execution=%s prune=\"%s\"", e->id, err.message);
}

void network_tell(struct registry *registry, struct execution *e,
                  const struct egress_records *log)
{
    if (log->n == 0)
        return;
    warn(e, log);
    audit(registry, e, log);
}

void network_explain(struct execution *e)
{
    /* Of curl and git, of Python and other users of the C library, of Node. */
    static const char *const signs[] = {"Could not resolve host",
                                        "Temporary failure in name resolution",
                                        "getaddrinfo EAI_AGAIN"};
    bool found = false;

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && !found; i++)
        found = e->log.len > 0 && memmem(e->log.data, e->log.len, signs[i], strlen(signs[i]));
    for (size_t i = 0; i < e->warnings.len; i++)
        found &= strstr(e->warnings.items[i], "network") == NULL;
    if (found)
        (void)skill_strings_add(
            &e->warnings, "it looked for a host and has no network: list the hosts that it "
                          "needs as network: in SKILL.md, or in the request for code");
}
