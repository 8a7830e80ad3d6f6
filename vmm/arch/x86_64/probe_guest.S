/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest of `skillvm-vmm probe`: one entry per instruction class, entered in ring 0 of long
 * mode with the tables that probe.c makes. Position independent. A test answers with one byte
 * on a port and never returns:
 *
 *   PORT_RESULT  one of the RESULT_ values
 *   PORT_FAULT   the vector of an exception that the test did not want
 *   PORT_COUNT   one of many exits, for their speed
 */
#include "vmm/arch/x86_64/probe_guest.h"

    .section .rodata, "a"
    .balign 16
    .code64

    .globl probe_guest_start
probe_guest_start:

    .macro result value
    movb $\value, %al
    outb %al, $PORT_RESULT
1:  hlt
    jmp 1b
    .endm

/* Enters ring 3 at \target with a stack of its own. */
    .macro enter_user target
    pushq $(USER_DATA | 3)
    pushq $USER_STACK
    pushq $2
    pushq $(USER_CODE | 3)
    leaq \target(%rip), %rax
    pushq %rax
    iretq
    .endm

/* Arithmetic, the stack, control registers, MSRs and CPUID in ring 0. */
    .globl probe_ring0
probe_ring0:
    movl $0x12345678, %eax
    pushq %rax
    popq %rbx
    imull $3, %ebx, %ebx
    cmpl $0x369d0368, %ebx
    jne ring0_wrong
    movq %cr0, %rax
    testl $1, %eax
    jz ring0_wrong
    movl $0xc0000080, %ecx
    rdmsr
    testl $0x400, %eax
    jz ring0_wrong
    xorl %eax, %eax
    cpuid
    testl %eax, %eax
    jz ring0_wrong
    movq %cr3, %rax
    movq %rax, %cr3
    result RESULT_OK
ring0_wrong:
    result RESULT_WRONG

/* Into ring 3 by IRETQ and back by the fault of a privileged instruction. */
    .globl probe_ring3
probe_ring3:
    leaq ring3_back(%rip), %r15
    enter_user ring3_user
ring3_user:
    movl $0x1111, %ebx
    hlt
ring3_back:
    cmpl $0x1111, %ebx
    jne ring3_wrong
    movq 16(%rsp), %rax
    cmpq $(USER_CODE | 3), %rax
    jne ring3_wrong
    result RESULT_OK
ring3_wrong:
    result RESULT_WRONG

/* SYSCALL from ring 3 and SYSRET back to it. */
    .globl probe_syscall
probe_syscall:
    movl $0xc0000081, %ecx /* STAR */
    xorl %eax, %eax
    movl $((USER_CODE32 | 3) << 16 | KERNEL_CODE), %edx
    wrmsr
    movl $0xc0000082, %ecx /* LSTAR */
    leaq syscall_entry(%rip), %rax
    movq %rax, %rdx
    shrq $32, %rdx
    wrmsr
    movl $0xc0000084, %ecx /* SFMASK */
    movl $0x200, %eax
    xorl %edx, %edx
    wrmsr
    leaq syscall_back(%rip), %r15
    xorl %ebx, %ebx
    enter_user syscall_user
syscall_user:
    syscall
syscall_return:
    cmpl $0x2222, %ebx
    jne syscall_lost
    movl $0x3333, %ebx
syscall_lost:
    hlt
syscall_entry:
    leaq syscall_return(%rip), %rax
    cmpq %rax, %rcx
    jne syscall_wrong
    movl %cs, %eax
    cmpl $KERNEL_CODE, %eax
    jne syscall_ring
    movl $0x2222, %ebx
    sysretq
syscall_back:
    cmpl $0x3333, %ebx
    jne syscall_wrong
    movq 16(%rsp), %rax
    cmpq $(USER_CODE | 3), %rax
    jne syscall_wrong
    result RESULT_OK
syscall_wrong:
    result RESULT_WRONG
syscall_ring:
    result RESULT_RING

/* The locked 16-byte compare and exchange, once with and once without a match. */
    .globl probe_cmpxchg16b
probe_cmpxchg16b:
    movq $SCRATCH, %rdi
    movq $1, (%rdi)
    movq $2, 8(%rdi)
    movl $1, %eax
    movl $2, %edx
    movl $3, %ebx
    movl $4, %ecx
    lock cmpxchg16b (%rdi)
    jnz cmpxchg_wrong
    cmpq $3, (%rdi)
    jne cmpxchg_wrong
    cmpq $4, 8(%rdi)
    jne cmpxchg_wrong
    lock cmpxchg16b (%rdi)
    jz cmpxchg_wrong
    cmpq $3, %rax
    jne cmpxchg_wrong
    cmpq $4, %rdx
    jne cmpxchg_wrong
    result RESULT_OK
cmpxchg_wrong:
    result RESULT_WRONG

/* XSETBV, then a vector register through XSAVE and XRSTOR. */
    .globl probe_xsave
probe_xsave:
    xorl %ecx, %ecx
    movl $3, %eax
    xorl %edx, %edx
    xsetbv
    movq $SCRATCH, %rdi
    movl $0x5a5a5a5a, %eax
    movd %eax, %xmm3
    movl $3, %eax
    xorl %edx, %edx
    xsave (%rdi)
    pxor %xmm3, %xmm3
    movl $3, %eax
    xorl %edx, %edx
    xrstor (%rdi)
    movd %xmm3, %eax
    cmpl $0x5a5a5a5a, %eax
    jne xsave_wrong
    result RESULT_OK
xsave_wrong:
    result RESULT_WRONG

    .globl probe_popcnt
probe_popcnt:
    movl $0xf0f0, %eax
    popcntl %eax, %ebx
    cmpl $8, %ebx
    jne popcnt_wrong
    result RESULT_OK
popcnt_wrong:
    result RESULT_WRONG

/* A breakpoint in ring 3 is delivered to ring 0 and execution goes on after it. */
    .globl probe_int3
probe_int3:
    leaq int3_back(%rip), %r15
    xorl %ebx, %ebx
    enter_user int3_user
int3_user:
    int3
    addl $0x40, %ebx
    hlt
int3_back:
    cmpl $0x41, %ebx
    jne int3_wrong
    result RESULT_OK
int3_wrong:
    result RESULT_WRONG

/* RSI times two instructions. */
    .globl probe_speed
probe_speed:
    decq %rsi
    jnz probe_speed
    result RESULT_OK

/* RSI exits. */
    .globl probe_exits
probe_exits:
    outb %al, $PORT_COUNT
    decq %rsi
    jnz probe_exits
    result RESULT_OK

/*
 * General protection: HLT in ring 3 is how tests come back, to where R15 says, on the ring-0
 * stack with the error code at its top. Without R15 it is a fault as any other.
 */
    .globl probe_general_protection
probe_general_protection:
    testq %r15, %r15
    jz 1f
    jmp *%r15
1:  movb $13, %al
    outb %al, $PORT_FAULT
    hlt

/* INT3 counts in EBX. */
    .globl probe_breakpoint
probe_breakpoint:
    incl %ebx
    iretq

/* One stub of PROBE_STUB_SIZE bytes for every vector. */
    .balign PROBE_STUB_SIZE
    .globl probe_fault_stubs
probe_fault_stubs:
    .set vector, 0
    .rept 32
    .balign PROBE_STUB_SIZE
    movb $vector, %al
    outb %al, $PORT_FAULT
    hlt
    .set vector, vector + 1
    .endr

    .globl probe_guest_end
probe_guest_end:

    .section .note.GNU-stack, "", @progbits
