/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/turn.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/stat.h>

/* How long one waits. */
#define WAIT_NS (10 * NS_PER_SECOND)

static const struct {
    unsigned places; /* how many have one at once */
    const char *busy;
} kinds[TURN_KINDS] = {
    [TURN_PREPARE] = {8, "executions of large skills are being prepared"},
    [TURN_ARCHIVE] = {4, "archives are being looked at"},
    [TURN_LOOK] = {4, "files and results are being looked at"},
    [TURN_ROWS] = {4, "lists are being made"},
};

int turns_create(struct daemon *d)
{
    for (size_t i = 0; i < TURN_KINDS; i++) {
        d->turns[i] = fair_gate_create(kinds[i].places);
        if (!d->turns[i])
            return -ENOMEM;
    }
    return 0;
}

void turns_destroy(struct daemon *d)
{
    for (size_t i = 0; i < TURN_KINDS; i++)
        fair_gate_destroy(d->turns[i]);
}

int turn_take(struct turn *turn, struct daemon *d, enum daemon_turn kind, const char *tenant,
              struct err *err)
{
    const uint64_t wait_ns = turn->is_hasty ? 0 : WAIT_NS;
    struct fair_gate *gate = d->turns[kind];
    int r = fair_gate_enter(gate, tenant, &turn->entry, clock_monotonic_ns() + wait_ns, NULL);

    if (r == -EBUSY)
        return err_set(err, EBUSY, "too many %s already: try again in a moment",
                       kinds[kind].busy);
    if (r < 0)
        return err_no_memory(err);
    turn->gate = gate;
    return 0;
}

int turn_take_at(struct turn *turn, struct daemon *d, int fd, const char *tenant,
                 struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size <= TURN_SKILL_BYTES)
        return 0;
    return turn_take(turn, d, TURN_ARCHIVE, tenant, err);
}

void turn_end(struct turn *turn)
{
    if (turn->gate)
        fair_gate_leave(turn->gate, &turn->entry);
    turn->gate = NULL;
}
