/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of x86_64 that code above vmm/arch needs by a neutral name, and the sections this
 * architecture adds to a state file.
 */
#ifndef SKILLVM_VMM_ARCH_X86_64_PARAMS_H
#define SKILLVM_VMM_ARCH_X86_64_PARAMS_H

#include "vmm/state.h"

/* Devicetree: the I/O APIC is everybody's interrupt parent; its second cell 3 is edge rising.
 */
#define ARCH_DT_INTERRUPT_PARENT 1u
#define ARCH_DT_IRQ_EDGE         3u

/* Marks a state file as this architecture's. */
#define ARCH_STATE_MACHINE 62u

#define X86_TAG_CPUID     STATE_TAG('C', 'P', 'I', 'D')
#define X86_TAG_MP        STATE_TAG('M', 'P', 'S', 'T')
#define X86_TAG_REGS      STATE_TAG('R', 'E', 'G', 'S')
#define X86_TAG_SREGS     STATE_TAG('S', 'R', 'E', 'G')
#define X86_TAG_XSAVE     STATE_TAG('X', 'S', 'A', 'V')
#define X86_TAG_XCRS      STATE_TAG('X', 'C', 'R', 'S')
#define X86_TAG_DEBUGREGS STATE_TAG('D', 'R', 'E', 'G')
#define X86_TAG_LAPIC     STATE_TAG('L', 'A', 'P', 'C')
#define X86_TAG_TSC       STATE_TAG('T', 'S', 'C', ' ')
#define X86_TAG_MSRS      STATE_TAG('M', 'S', 'R', 'S')
#define X86_TAG_EVENTS    STATE_TAG('E', 'V', 'N', 'T')
#define X86_TAG_IRQCHIPS  STATE_TAG('I', 'R', 'Q', 'C')
#define X86_TAG_CLOCK     STATE_TAG('C', 'L', 'C', 'K')

#define ARCH_STATE_KINDS                                                                       \
    {X86_TAG_CPUID, 1, "cpuid"}, {X86_TAG_MP, 1, "mp-state"}, {X86_TAG_REGS, 1, "registers"},  \
        {X86_TAG_SREGS, 1, "special-registers"}, {X86_TAG_XSAVE, 1, "xsave"},                  \
        {X86_TAG_XCRS, 1, "xcrs"}, {X86_TAG_DEBUGREGS, 1, "debug-registers"},                  \
        {X86_TAG_LAPIC, 1, "local-apic"}, {X86_TAG_TSC, 1, "tsc"}, {X86_TAG_MSRS, 1, "msrs"},  \
        {X86_TAG_EVENTS, 1, "vcpu-events"}, {X86_TAG_IRQCHIPS, 1, "interrupt-chips"},          \
    {                                                                                          \
        X86_TAG_CLOCK, 1, "clock"                                                              \
    }

#endif
