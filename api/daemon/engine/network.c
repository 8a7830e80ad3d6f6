/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/network.h"

#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WARNINGS_MAX 4u
/* Of a row of the audit: a host, why it was refused, and what is said of every one. */
#define DETAIL_SIZE (HOST_NAME_SIZE + EGRESS_REFUSED_SIZE + 96u)

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

/* Of a host that was refused: what happened before and behind the reason where that is told,
 * and what to change. Reached ones have none. */
struct remedy {
    const char *before;
    const char *behind; /* NULL: before says it all */
};

static struct remedy remedy_of(enum egress_refusal refusal)
{
    static const struct remedy remedies[] = {
        [EGRESS_UNDECLARED] = {"is not among the hosts that it declares: add it to network: in "
                               "SKILL.md, or to the request's network for code",
                               NULL},
        [EGRESS_NOT_IN_POLICY] = {"is not permitted by the tenant's policy: the operator "
                                  "changes its limit network, or the setting network.policy",
                                  NULL},
        [EGRESS_NOT_ASKED] = {"is declared, but the request's network leaves it out", NULL},
        [EGRESS_NO_SUCH_NAME] = {"was not found: ", ": correct the name where it is asked for"},
        [EGRESS_BAD_ADDRESS] = {"was refused: ", ": only public addresses are reached, or what "
                                                 "the operator's network.allow_private names"},
        [EGRESS_OVER_LIMIT] = {"was refused: ", ""},
        [EGRESS_FAILED] = {"was not reached from the daemon's machine: ",
                           ": if it is there, try again later"},
    };

    return remedies[refusal];
}

/* Nobody here refused it. */
static bool is_fault(enum egress_refusal refusal)
{
    return refusal == EGRESS_NO_SUCH_NAME || refusal == EGRESS_FAILED;
}

static void warn_of(struct execution *e, const struct egress_records *log, bool faults,
                    unsigned *said)
{
    for (size_t i = 0; i < log->n && *said < WARNINGS_MAX; i++) {
        const struct egress_record *row = &log->rows[i];
        const struct remedy remedy = remedy_of(row->refusal);

        if (!remedy.before || is_fault(row->refusal) != faults)
            continue;
        (void)skill_strings_add(&e->warnings, "network: %s %s%s%s", row->host, remedy.before,
                                remedy.behind ? row->refused : "",
                                remedy.behind ? remedy.behind : "");
        (*said)++;
    }
}

/* First what somebody can permit. */
static void warn(struct execution *e, const struct egress_records *log)
{
    unsigned said = 0;

    warn_of(e, log, false, &said);
    warn_of(e, log, true, &said);
    if (log->others.connections > 0)
        (void)skill_strings_add(&e->warnings,
                                "network: %llu more connections and refusals are not listed",
                                (unsigned long long)log->others.connections);
}

/* Of the audit: what a row of the log came to. */
static void describe(const struct egress_record *row, char detail[DETAIL_SIZE])
{
    char port[8] = "";

    if (row->port)
        (void)snprintf(port, sizeof(port), ":%u", row->port);
    if (row->refusal != EGRESS_REACHED)
        (void)snprintf(detail, DETAIL_SIZE, "%s%s refused %llu times: %s", row->host, port,
                       (unsigned long long)row->connections, row->refused);
    else
        (void)snprintf(
            detail, DETAIL_SIZE, "%s%s %llu connections, %llu bytes sent, %llu received",
            row->host, port, (unsigned long long)row->connections,
            (unsigned long long)row->bytes_sent, (unsigned long long)row->bytes_received);
}

/* What has no row of its own in the log has one together. */
static void describe_others(const struct egress_record *others, char detail[DETAIL_SIZE])
{
    (void)snprintf(detail, DETAIL_SIZE,
                   "%llu more connections and refusals, %llu bytes sent, %llu received",
                   (unsigned long long)others->connections,
                   (unsigned long long)others->bytes_sent,
                   (unsigned long long)others->bytes_received);
}

/* Everything in one commit: a skill cannot make the disk work by reaching for many hosts. */
static void audit(struct registry *registry, const struct execution *e,
                  const struct egress_records *log)
{
    struct registry_audit rows[EGRESS_RECORDS_MAX + 1];
    char details[EGRESS_RECORDS_MAX + 1][DETAIL_SIZE];
    size_t n = log->n + (log->others.connections > 0);
    struct err err = {0};

    for (size_t i = 0; i < log->n; i++)
        describe(&log->rows[i], details[i]);
    if (n > log->n)
        describe_others(&log->others, details[log->n]);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct registry_audit){.at_ns = clock_realtime_ns(),
                                          .tenant = e->tenant,
                                          .actor = e->id,
                                          .action = "network",
                                          .target = e->skill_name,
                                          .detail = details[i]};
    if (registry_audit_append_all(registry, rows, n, LIMIT_AUDIT_TENANT_ROWS, &err) < 0)
        log_error("audit", "execution=%s action=network lost=\"%s\"", e->id, err.message);
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
