/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/renewal.h"

#include "base/clock.h"

#include <stddef.h>

void renewal_begin(struct renewal *r, uint64_t now_ns, uint64_t age_ns)
{
    *r = (struct renewal){.limits = r->limits, .begin_ns = now_ns, .age_ns = age_ns};
}

void renewal_fail(struct renewal *r, uint64_t now_ns, uint64_t first_ms)
{
    uint64_t wait_ms = first_ms;

    for (unsigned i = 0; i < r->failures && wait_ms < RENEWAL_BACKOFF_MS; i++)
        wait_ms *= 2;
    if (wait_ms > RENEWAL_BACKOFF_MS)
        wait_ms = RENEWAL_BACKOFF_MS;
    else
        r->failures++;
    r->after_ns = now_ns + wait_ms * NS_PER_MS;
}

uint64_t renewal_age_ns(const struct renewal *r, uint64_t now_ns)
{
    return now_ns - r->begin_ns + r->age_ns;
}

static bool is_used_up(const struct renewal *r)
{
    return r->limits.uses > 0 && r->uses >= r->limits.uses;
}

const char *renewal_reason(const struct renewal *r, uint64_t now_ns)
{
    if (now_ns < r->after_ns)
        return NULL;
    if (r->is_wanted)
        return "wanted";
    if (is_used_up(r))
        return "uses";
    if (r->limits.age_ms > 0 && renewal_age_ns(r, now_ns) >= r->limits.age_ms * NS_PER_MS)
        return "age";
    return NULL;
}

uint64_t renewal_next_ns(const struct renewal *r)
{
    uint64_t limit_ns = r->limits.age_ms * NS_PER_MS, due_ns = RENEWAL_NEVER;

    if (r->is_wanted || is_used_up(r))
        due_ns = 0;
    else if (limit_ns > 0)
        due_ns = r->begin_ns + (limit_ns > r->age_ns ? limit_ns - r->age_ns : 0);
    return due_ns > r->after_ns ? due_ns : r->after_ns;
}
