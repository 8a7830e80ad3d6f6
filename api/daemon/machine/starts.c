/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/starts.h"

#include <errno.h>

void starts_note(struct starts *s, uint64_t now_ns, const struct err *why)
{
    (void)pthread_mutex_lock(&s->lock);
    s->failed = why ? s->failed + 1 : 0;
    if (why) {
        s->last_ns = now_ns;
        s->why = *why;
    }
    (void)pthread_mutex_unlock(&s->lock);
}

int starts_check(struct starts *s, uint64_t now_ns, struct err *err)
{
    int r = 0;

    (void)pthread_mutex_lock(&s->lock);
    if (s->failed >= STARTS_IN_A_ROW && now_ns - s->last_ns < STARTS_WHILE_NS)
        r = err_set(err, EIO, "the last %u machines did not start: %s", s->failed,
                    s->why.message);
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}
