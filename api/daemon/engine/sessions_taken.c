/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/sessions_taken.h"

#include "base/crc32.h"

#include <string.h>

/* Callers who choose names that meet in one bucket make it a list of what may wait. */
static struct session_takers *bucket(struct sessions_taken *taken, const char *tenant,
                                     const char *session)
{
    uint32_t sum = crc32_update(0, tenant, strlen(tenant));

    sum = crc32_update(sum, session, strlen(session));
    return &taken->buckets[sum % SESSIONS_TAKEN_BUCKETS];
}

struct execution *sessions_taken_by(struct sessions_taken *taken, const char *tenant,
                                    const char *session)
{
    struct execution *e;

    LIST_FOREACH(e, bucket(taken, tenant, session), of_session) {
        if (strcmp(e->session, session) == 0 && strcmp(e->tenant, tenant) == 0 &&
            execution_get_state(e) != EXECUTION_ENDED)
            return e;
    }
    return NULL;
}

void sessions_take(struct sessions_taken *taken, struct execution *e)
{
    if (e->session)
        LIST_INSERT_HEAD(bucket(taken, e->tenant, e->session), e, of_session);
}

void sessions_leave(struct execution *e)
{
    if (e->session)
        LIST_REMOVE(e, of_session);
}
