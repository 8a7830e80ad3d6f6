/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/audit_share.h"

#include "api/daemon/cluster/deed_entry.h"
#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"
#include "base/log.h"

static int look(void *ctx, struct change_place *ret, struct err *err)
{
    return registry_place_get(ctx, REGISTRY_PLACE_OF_AUDIT, ret, err);
}

static int deed_at(const void *ctx, size_t at, struct deed *ret)
{
    const struct staged *staged = ctx;
    const struct staged_entry *e = &staged->list[at];
    enum node_refusal unused;

    return deed_entry_parse(e->key, e->data, e->len, ret, &unused);
}

static int apply(void *ctx, const struct staged *deeds, const struct change_place *place,
                 struct err *err)
{
    return registry_audit_take(ctx, deeds->n, deed_at, deeds, LIMIT_AUDIT_TENANT_ROWS, place,
                               err);
}

static int untold(void *ctx, uint64_t after_id, struct deed *ret, struct err *err)
{
    return registry_audit_untold(ctx, after_id, ret, err);
}

static int told(void *ctx, uint64_t up_to_id, struct err *err)
{
    return registry_audit_told(ctx, up_to_id, clock_realtime_ns(), err);
}

static void tell_anew(void *ctx, uint64_t since_ns)
{
    struct err err = {0};

    if (registry_audit_untell(ctx, since_ns, &err) < 0)
        log_warn("audit", "rows=\"not told anew\" reason=\"%s\"", err.message);
}

int audit_share_start(struct registry *registry, struct cluster *cluster, struct err *err)
{
    const struct cluster_auditor auditor = {.ctx = registry,
                                            .look = look,
                                            .apply = apply,
                                            .untold = untold,
                                            .told = told,
                                            .tell_anew = tell_anew};

    return cluster_follow_audit(cluster, &auditor, err);
}
