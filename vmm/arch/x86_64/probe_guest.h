/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What probe.c and its guest, probe_guest.S, agree on. Read by the assembler: only macros.
 */
#ifndef SKILLVM_VMM_ARCH_X86_64_PROBE_GUEST_H
#define SKILLVM_VMM_ARCH_X86_64_PROBE_GUEST_H

#define PORT_RESULT 0x10
#define PORT_FAULT  0x11
#define PORT_COUNT  0x12

#define RESULT_OK    0
#define RESULT_WRONG 1
#define RESULT_RING  2 /* it did not get to the ring it should */

/* Selectors, in the order that SYSCALL and SYSRET want. */
#define KERNEL_CODE  0x08
#define KERNEL_DATA  0x10
#define USER_CODE32  0x18
#define USER_DATA    0x20
#define USER_CODE    0x28
#define TSS_SELECTOR 0x30

/* Guest physical addresses, all below 64 KiB and mapped one to one for both rings. */
#define PROBE_PML4   0x1000
#define PROBE_PDPT   0x2000
#define PROBE_PD     0x3000
#define PROBE_GDT    0x4000
#define PROBE_TSS    0x4800
#define PROBE_IDT    0x5000
#define SCRATCH      0x6000
#define KERNEL_STACK 0x9000
#define USER_STACK   0xa000
#define PROBE_CODE   0x10000

#define PROBE_STUB_SIZE 8

#endif
