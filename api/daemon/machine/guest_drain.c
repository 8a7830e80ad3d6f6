/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/guest_drain.h"

#include "base/clock.h"
#include "guest-init/proto.h"

#include <poll.h>

#define MIN_NS (PROTO_NET_DRAIN_MIN_MS * NS_PER_MS)
#define MAX_NS (PROTO_NET_DRAIN_MAX_MS * NS_PER_MS)

void guest_drain_begin(struct egress *egress, uint64_t over_ns, bool was_ended)
{
    uint64_t now = clock_monotonic_ns(), deadline_ns = over_ns;

    if (deadline_ns < now + MIN_NS)
        deadline_ns = now + MIN_NS;
    if (deadline_ns > now + MAX_NS)
        deadline_ns = now + MAX_NS;
    egress_work(egress);
    egress_end(egress, was_ended ? now : deadline_ns);
}

void guest_drain_wait(struct egress *egress, int cancel_fd)
{
    while (egress_is_sending(egress)) {
        struct pollfd p[] = {{.fd = egress_fd(egress), .events = POLLIN},
                             {.fd = cancel_fd, .events = POLLIN}};

        (void)poll(p, 2, clock_timeout_ms(egress_deadline_ns(egress)));
        if (p[1].revents)
            return;
        egress_work(egress);
    }
}
