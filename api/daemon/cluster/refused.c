/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/refused.h"

#include "base/clock.h"

#include <stdio.h>

#define LINES_BURST 8u

void refused_note(struct refused *refused, const char *where, const char *key, unsigned why,
                  unsigned n)
{
    const char *word = why == REFUSED_CONFLICT ? "conflict" : node_refusal_names[why];
    uint64_t unsaid = 0;

    refused->n[why] += n;
    (void)snprintf(refused->last, sizeof(refused->last), "%s at \"%s\"", word, key);
    refused->lines.per_second = 1;
    refused->lines.burst = LINES_BURST;
    if (log_limit_allow(&refused->lines, clock_monotonic_ns(), &unsaid))
        log_warn("cluster", "entry=\"left out\" of=%s key=\"%s\" reason=%s n=%u unsaid=%llu",
                 where, key, word, n, (unsigned long long)unsaid);
}
