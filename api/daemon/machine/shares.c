/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/shares.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"

void shares_init(struct shares *shares)
{
    (void)pthread_mutex_init(&shares->lock, NULL);
    LIST_INIT(&shares->at_work);
}

void shares_close(struct shares *shares)
{
    (void)pthread_mutex_destroy(&shares->lock);
}

static void set_weight(struct share *share, unsigned weight)
{
    char text[16];
    int n;

    if (share->weight == weight)
        return;
    share->weight = weight;
    n = snprintf(text, sizeof(text), "%u", weight);
    if (share->weight_fd >= 0 && write(share->weight_fd, text, (size_t)n) != n)
        log_warn("machines", "event=weight reason=\"%s\"", strerror(errno));
}

/* What each of so many gets: a step is a power of two, so that one more seldom changes it. */
static unsigned part_of(unsigned machines)
{
    unsigned step = 1;

    _Static_assert(SHARE_WEIGHT >= JAIL_CELLS, "there is some for each");
    while (step < machines)
        step *= 2;
    return SHARE_WEIGHT / step;
}

/* Under the lock. */
static void share_out(struct shares *shares, const char *party)
{
    struct share *share;
    unsigned machines = 0;

    LIST_FOREACH(share, &shares->at_work, link)
        machines += strcmp(share->party, party) == 0;
    LIST_FOREACH(share, &shares->at_work, link)
        if (strcmp(share->party, party) == 0)
            set_weight(share, part_of(machines));
}

/* Under the lock. */
static void leave(struct shares *shares, struct share *share)
{
    LIST_REMOVE(share, link);
    share_out(shares, share->party);
    share->party[0] = '\0';
}

void shares_enter(struct shares *shares, struct share *share, const char *party, int weight_fd)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&shares->lock);

    if (strcmp(share->party, party) == 0)
        return;
    if (share->party[0])
        leave(shares, share);
    else
        share->weight = SHARE_WEIGHT;
    (void)snprintf(share->party, sizeof(share->party), "%s", party);
    share->weight_fd = weight_fd;
    if (!share->party[0])
        return;
    LIST_INSERT_HEAD(&shares->at_work, share, link);
    share_out(shares, share->party);
}

void shares_leave(struct shares *shares, struct share *share)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&shares->lock);

    if (!share->party[0])
        return;
    leave(shares, share);
    set_weight(share, SHARE_WEIGHT);
}
