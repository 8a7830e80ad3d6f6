/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/machine.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

/* Restoring and connecting may take this many graces, as a reset does. */
#define READY_GRACES 6u
#define RESET_GRACES 2u
/* Besides it: that the guest runs, and that it has connected. */
#define EVENTS_WITH_READY 2

struct machine *machine_start(struct pool *pool, struct jail *jail, struct snapshot *snapshot,
                              uint64_t grace_ms, bool reusable, struct err *err)
{
    const struct vm_restore how = {.jail = jail,
                                   .image_fd = snapshot->image_fd,
                                   .files = snapshot->files,
                                   .record_fd = -1,
                                   .reusable = reusable};
    struct machine *m = calloc(1, sizeof(*m));
    int r;

    if (!m) {
        snapshot_unref(snapshot);
        (void)err_no_memory(err);
        return NULL;
    }
    *m = (struct machine){
        .pool = pool, .vm = vm_init(), .snapshot = snapshot, .reusable = reusable};
    m->guest = guest_open(&m->vm, clock_monotonic_ns(), grace_ms);
    r = m->guest ? vm_start_restore(&how, &m->vm, err) : err_no_memory(err);
    if (r < 0) {
        machine_end(m);
        free(m);
        return NULL;
    }
    return m;
}

/* Drops what is known to have come with READY. False where there is anything else. */
static bool settle(struct machine *m)
{
    struct vmm_event event;
    struct err err = {0};
    int r = 0;

    for (int i = 0; i <= EVENTS_WITH_READY && r == 0; i++) {
        r = vm_next_event(&m->vm, &event, &err);
        if (r == 0 && event.type != VMM_EVENT_RESUMED && event.type != VMM_EVENT_CONNECTED)
            return false;
    }
    return r == -EAGAIN && machine_is_quiet(m);
}

/* READY came, and nothing else did. */
static int wait_only_ready(struct machine *m, uint64_t deadline_ns, struct err *err)
{
    int r = guest_wait_ready(m->guest, deadline_ns, err);

    return r < 0 || settle(m) ? r : err_set(err, EPROTO, "the microVM said more than READY");
}

int machine_wait_ready(struct machine *m, uint64_t grace_ms, struct err *err)
{
    return wait_only_ready(m, clock_monotonic_ns() + READY_GRACES * grace_ms * NS_PER_MS, err);
}

int machine_reset(struct machine *m, uint64_t grace_ms, struct err *err)
{
    uint64_t now = clock_monotonic_ns(),
             deadline_ns = now + RESET_GRACES * grace_ms * NS_PER_MS;
    int r;

    /* With the connection goes all that was known of the one before. */
    guest_close(m->guest);
    m->guest = guest_open(&m->vm, now, grace_ms);
    if (!m->guest)
        return err_no_memory(err);
    r = vm_reset(&m->vm, deadline_ns, err);
    return r < 0 ? r : wait_only_ready(m, deadline_ns, err);
}

bool machine_is_quiet(const struct machine *m)
{
    struct pollfd p[2] = {{.fd = m->vm.control_fd, .events = POLLIN},
                          {.fd = m->vm.vsock_fd, .events = POLLIN}};

    return poll(p, 2, 0) == 0;
}

void machine_end(struct machine *m)
{
    guest_close(m->guest);
    m->guest = NULL;
    vm_finish(&m->vm);
    snapshot_unref(m->snapshot);
    m->snapshot = NULL;
}
