/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/progress.h"

#include "api/cli/show.h"
#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

#define QUIET_NS      (2 * NS_PER_SECOND)
#define LINE_EVERY_NS (5 * NS_PER_SECOND)
#define TTY_EVERY_NS  (NS_PER_SECOND / 5)

void progress_begin(struct progress *p)
{
    *p = (struct progress){
        .began_ns = clock_monotonic_ns(),
        .terminal = isatty(STDERR_FILENO) == 1,
    };
}

void progress_tick(struct progress *p, const char *text)
{
    uint64_t now = clock_monotonic_ns();

    if (now - p->began_ns < QUIET_NS ||
        (p->shown_ns && now - p->shown_ns < (p->terminal ? TTY_EVERY_NS : LINE_EVERY_NS)))
        return;
    p->shown_ns = now;
    fprintf(stderr, "%sskillvm: ", p->terminal ? "\r" : "");
    show_text(stderr, text);
    fprintf(stderr, ", %llu s%s", (unsigned long long)((now - p->began_ns) / NS_PER_SECOND),
            p->terminal ? "\033[K" : "\n");
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->terminal && p->shown_ns)
        fputs("\r\033[K", stderr);
    p->shown_ns = 0;
}
