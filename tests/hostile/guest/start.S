/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's entry, its traps, its quiet point, and the ways into every mode a CPU has. The
 * low code is copied to LOW_GPA before it runs, because real mode reaches no further.
 */
#include "tests/hostile/guest/guest.h"

/*
 * For ever. Bochs 2.7 holds interrupts back from its host as long as a guest runs that was
 * entered with interrupts off, until it exits: KVM has VMX exit at a PAUSE in a loop.
 */
    .macro spin_here
1:  pause
    jmp 1b
    .endm

    .section .text.start, "ax"
    .code64
    .globl guest_start
guest_start:
    cli
    leaq stack_top(%rip), %rsp
    xorl %ebp, %ebp
    call guest_main
1:  hlt
    jmp 1b

    .text
/* One stub of 16 bytes for every vector: a vector and an error code on the stack. */
    .balign 16
    .globl trap_stubs
trap_stubs:
    .set vector, 0
    .rept 256
    .balign 16
    .if vector != 8 && (vector < 10 || vector > 14) && vector != 17 && vector != 21 && \
        vector != 29 && vector != 30
    pushq $0
    .endif
    pushq $vector
    jmp trap_common
    .set vector, vector + 1
    .endr

trap_common:
    pushq %rax
    pushq %rbx
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rbp
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    cld
    movq %rsp, %rdi
    call trap
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rbp
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rbx
    popq %rax
    addq $16, %rsp
    iretq

/* The registers that a function leaves as it found them. */
.macro push_callee_saved
    .irp register, rbx, rbp, r12, r13, r14, r15
    pushq %\register
    .endr
.endm
.macro pop_callee_saved
    .irp register, r15, r14, r13, r12, rbp, rbx
    popq %\register
    .endr
.endm

/* unsigned try_call(void (*f)(void *), void *arg) */
    .globl try_call
try_call:
    push_callee_saved
    pushq try_stack(%rip)
    movq %rsp, try_stack(%rip)
    movq %rdi, %rax
    movq %rsi, %rdi
    call *%rax
    xorl %eax, %eax
/* trap() comes here with RSP at try_stack and the answer in RAX. */
    .globl try_return
try_return:
    popq try_stack(%rip)
    pop_callee_saved
    ret

/*
 * void idle_until_resumed(const volatile uint64_t *generation, uint64_t old,
 *                         uint64_t *ret_registers)
 * Every register holds a value of its own while it waits; what they hold afterwards goes to
 * ret_registers: RBX RCX RDX RSI RDI RBP R8 … R15.
 */
    .globl idle_until_resumed
idle_until_resumed:
    push_callee_saved
    pushq %rdx
    movq %rdi, %rax
    movq %rsi, %r15
    movabsq $0x1111111111111111, %rbx
    movabsq $0x2222222222222222, %rcx
    movabsq $0x3333333333333333, %rdx
    movabsq $0x4444444444444444, %rsi
    movabsq $0x5555555555555555, %rdi
    movabsq $0x6666666666666666, %rbp
    movabsq $0x8888888888888888, %r8
    movabsq $0x9999999999999999, %r9
    movabsq $0xaaaaaaaaaaaaaaaa, %r10
    movabsq $0xbbbbbbbbbbbbbbbb, %r11
    movabsq $0xcccccccccccccccc, %r12
    movabsq $0xdddddddddddddddd, %r13
    movabsq $0xeeeeeeeeeeeeeeee, %r14
1:  pause
    cmpq (%rax), %r15
    je 1b
    movq (%rsp), %rax
    movq %rbx, (%rax)
    movq %rcx, 8(%rax)
    movq %rdx, 16(%rax)
    movq %rsi, 24(%rax)
    movq %rdi, 32(%rax)
    movq %rbp, 40(%rax)
    movq %r8, 48(%rax)
    movq %r9, 56(%rax)
    movq %r10, 64(%rax)
    movq %r11, 72(%rax)
    movq %r12, 80(%rax)
    movq %r13, 88(%rax)
    movq %r14, 96(%rax)
    popq %rdx
    pop_callee_saved
    ret

/* _Noreturn void enter_ring(cs, ss, rflags, rip, rsp) */
    .globl enter_ring
enter_ring:
    pushq %rsi
    pushq %r8
    pushq %rdx
    pushq %rdi
    pushq %rcx
    iretq

/* What another ring runs. */
    .globl user_spin
user_spin:
    spin_here

/* "end" and a line feed in the mode that follows; the operand reaches the serial port. */
    .macro say_end
    movb $'e', SERIAL_GPA
    movb $'n', SERIAL_GPA
    movb $'d', SERIAL_GPA
    movb $'\n', SERIAL_GPA
    .endm

/*
 * _Noreturn void enter_mode(unsigned mode)
 * Out of long mode step by step, as far as asked; the last step says "end" and spins or halts.
 */
    .globl enter_mode
enter_mode:
    cli
    movl %edi, %r12d
    movl %edi, %ebx
    leaq mode_stack_top(%rip), %rsp
    pushq $SEL_CODE32
    leaq compat(%rip), %rax
    pushq %rax
    lretq

    .code32
compat:
    movl $SEL_DATA, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    cmpl $MODE_COMPAT, %ebx
    jne 2f
    say_end
    spin_here

2:  movl %cr0, %eax
    andl $0x7fffffff, %eax
    movl %eax, %cr0
    movl $0xc0000080, %ecx
    rdmsr
    andl $~0x100, %eax
    wrmsr
    cmpl $MODE_PROTECTED, %ebx
    jne 3f
    say_end
    hlt
    spin_here

3:  cmpl $MODE_PAE, %ebx
    jne 4f
    movl $pae_pointers, %eax
    movl %eax, %cr3
    movl %cr0, %eax
    orl $0x80000000, %eax
    movl %eax, %cr0
    say_end
    spin_here

4:  cmpl $MODE_PSE, %ebx
    jne 5f
    movl $0x10, %eax
    movl %eax, %cr4
    movl $pse_directory, %eax
    movl %eax, %cr3
    movl %cr0, %eax
    orl $0x80000000, %eax
    movl %eax, %cr0
    say_end
    spin_here

5:  cmpl $MODE_V86, %ebx
    jne 6f
    xorl %eax, %eax
    movl %eax, %cr4
    pushl $0x5555 /* GS FS DS ES SS ESP EFLAGS CS EIP */
    pushl $0x4444
    pushl $0x3333
    pushl $0x2222
    pushl $0x1000
    pushl $0xff0
    pushl $0x23002
    pushl $(LOW_GPA >> 4)
    pushl $(low_v86 - low_code)
    say_end
    iretl

6:  ljmp $SEL_CODE16, $(low_protected16 - low_code)

/* Runs at LOW_GPA with DS still flat. */
    .globl low_code, low_code_end
low_code:
    .code16
low_protected16:
    movl $SERIAL_GPA, %edi
    cmpl $MODE_PROTECTED16, %ebx
    jne 7f
    movw $SEL_DATA16, %ax
    movw %ax, %ss
    call low_say_end
    spin_here
7:  movl %cr0, %eax
    andl $~1, %eax
    movl %eax, %cr0
    ljmp $(LOW_GPA >> 4), $(low_real - low_code)
low_real:
    movw $0x123, %ax
    movw %ax, %fs
    xorw %ax, %ax
    movw %ax, %ss
    movw $LOW_GPA, %sp
    call low_say_end
    hlt
    spin_here
low_say_end:
    movb $'e', %al
    movb %al, (%edi)
    movb $'n', %al
    movb %al, (%edi)
    movb $'d', %al
    movb %al, (%edi)
    movb $'\n', %al
    movb %al, (%edi)
    ret
/* At privilege level 3 no PAUSE exits, but this does. */
low_v86:
    cpuid
    jmp low_v86
low_code_end:

/*
 * Position independent: fills the guest's own image, with the rest of memory already gone, and
 * says so. RDI start, RCX words, RAX what with, RDX the next piece's start or 0, RSI its words,
 * R8 the serial port. Its page tables and it lie outside both.
 */
    .code64
    .globl wipe_code, wipe_code_end
wipe_code:
    rep stosq
    testq %rdx, %rdx
    jz 1f
    movq %rdx, %rdi
    movq %rsi, %rcx
    rep stosq
1:  movb $'e', (%r8)
    movb $'n', (%r8)
    movb $'d', (%r8)
    movb $'\n', (%r8)
    spin_here
wipe_code_end:

    .data
    .balign 8
    .globl try_stack
try_stack:
    .quad 0

    .bss
    .balign 4096
    .skip 65536
stack_top:
    .skip 4096
    .globl mode_stack_top
mode_stack_top:

    .section .note.GNU-stack, "", @progbits
