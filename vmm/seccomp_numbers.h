/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in the filters of seccomp_rules.c for numbers that only a process knows.
 * harden_thread() puts those in.
 */
#ifndef SKILLVM_VMM_SECCOMP_NUMBERS_H
#define SKILLVM_VMM_SECCOMP_NUMBERS_H

#define SECCOMP_SELF  0x7f5e1f00u         /* the process */
#define SECCOMP_FD(i) (0x7f5e2000u + (i)) /* a descriptor of enum harden_fd */

#endif
