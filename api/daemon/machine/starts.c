/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/starts.h"

#include "base/lock.h"

#include <errno.h>

void starts_note(struct starts *s, uint64_t now_ns, const struct err *why)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    s->failed = why ? s->failed + 1 : 0;
    if (why) {
        s->last_ns = now_ns;
        s->why = *why;
    }
}

int starts_check(struct starts *s, uint64_t now_ns, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    if (s->failed < STARTS_IN_A_ROW || now_ns - s->last_ns >= STARTS_WHILE_NS)
        return 0;
    return err_set(err, EIO, "the last %u machines did not start: %s", s->failed,
                   s->why.message);
}
