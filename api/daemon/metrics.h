/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon counts since its start, and how Prometheus reads it. Counting never fails and
 * never waits for anything but its own lock; nothing of a stranger's becomes a label.
 */
#ifndef SKILLVM_API_DAEMON_METRICS_H
#define SKILLVM_API_DAEMON_METRICS_H

#include "api/daemon/result.h"
#include "base/buf.h"

#include <stdbool.h>

struct metrics;

/* What is so now, for metrics_write. */
struct metrics_gauges {
    unsigned running;
    unsigned queued;
    bool snapshot_ready;
};

/* NULL without memory. */
struct metrics *metrics_create(void);
/* NULL is fine. */
void metrics_destroy(struct metrics *m);

/* Counts an execution that ended, with its phases. */
void metrics_count_execution(struct metrics *m, const struct result *result);
/* Counts a machine that did not do its work; reason is the negative errno of its session. */
void metrics_count_fault(struct metrics *m, int reason);

/* Appends everything in the Prometheus text format 0.0.4. 0, -E2BIG or -ENOMEM. */
int metrics_write(struct metrics *m, const struct metrics_gauges *gauges, struct buf *out);

#endif
