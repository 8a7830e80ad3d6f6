/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a skill is not let near: those that it has no use for, so that a
 * guest's kernel is attacked by fewer. Most of them the kernel would refuse as well, or does
 * not have. It must never refuse what docs/syscalls.md says works, and never end differently
 * from that page.
 */
#ifndef SKILLVM_GUEST_FILTER_H
#define SKILLVM_GUEST_FILTER_H

/*
 * Filters the calls of this process, and of all that it starts, for good; it must have given up
 * new privileges. For a child before it executes. 0 or -errno.
 */
int filter_install(void);

#endif
