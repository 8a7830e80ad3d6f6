/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/pauses.h"

#include "base/clock.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DOUBLINGS_MAX 6u /* of a second: 64 s */

/* Its place; PAUSES_MAX: it has none. */
static size_t find(const struct pauses *pauses, const char *id)
{
    size_t at = 0;

    while (at < PAUSES_MAX && strcmp(pauses->list[at].id, id) != 0)
        at++;
    return at;
}

bool pauses_hold(const struct pauses *pauses, const char *id, uint64_t now_ns)
{
    size_t at = find(pauses, id);

    return at < PAUSES_MAX && now_ns < pauses->list[at].until_ns;
}

/* A place for one that has none. Those that are free have no moment, so they come first. */
static size_t make_place(struct pauses *pauses, const char *id)
{
    size_t first = 0;

    for (size_t i = 1; i < PAUSES_MAX; i++) {
        if (pauses->list[i].until_ns < pauses->list[first].until_ns)
            first = i;
    }
    pauses->list[first] = (struct pauses_entry){0};
    (void)snprintf(pauses->list[first].id, RECORD_ID_SIZE, "%s", id);
    return first;
}

unsigned pauses_note(struct pauses *pauses, const char *id, bool failed, uint64_t now_ns)
{
    size_t at = find(pauses, id);
    struct pauses_entry *entry;

    if (at == PAUSES_MAX)
        at = make_place(pauses, id);
    entry = &pauses->list[at];
    entry->until_ns = now_ns + (NS_PER_SECOND << entry->tries);
    entry->tries += entry->tries < DOUBLINGS_MAX;
    entry->failures += failed;
    return entry->failures;
}

void pauses_forget(struct pauses *pauses, const char *id)
{
    size_t at = find(pauses, id);

    if (at < PAUSES_MAX)
        pauses->list[at] = (struct pauses_entry){0};
}
