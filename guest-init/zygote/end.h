/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the zygote tells guest-init that its process is at its end, free of dependencies.
 *
 * Taking the memory of a process apart costs more than a short script. So the zygote, in place
 * of its last system call, writes its status into this page, which it shares with guest-init,
 * and stops itself with SIGSTOP. guest-init then either has the whole machine thrown away, or
 * lets it go on with SIGCONT, and the process ends as any other. Nothing that the page says is
 * worth more than the exit status of a process: the skill can write to it.
 */
#ifndef SKILLVM_GUEST_ZYGOTE_END_H
#define SKILLVM_GUEST_ZYGOTE_END_H

#include <stdint.h>

struct zygote_end {
    uint32_t is_over; /* 1 while it is stopped at its end */
    uint32_t status;  /* exit code, 0 to 255 */
};

#endif
