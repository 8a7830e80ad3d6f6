/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every architecture gives the machine. Nothing above vmm/arch may assume which one it
 * is: registers, interrupt controllers, boot protocols and CPU features stay below this header.
 */
#ifndef SKILLVM_VMM_ARCH_H
#define SKILLVM_VMM_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "vmm/devicetree.h"
#include "vmm/kvm.h"
#include "vmm/memory.h"
#include "vmm/probe.h"
#include "vmm/state.h"

#if defined(__x86_64__)
#include "vmm/arch/x86_64/params.h"
#else
#error "no vmm/arch folder for this architecture"
#endif

/* One line: what kind of CPU a snapshot made here needs. */
#define ARCH_FINGERPRINT_MAX 1024u

/* Describes how a guest left KVM_RUN. */
enum arch_exit {
    ARCH_EXIT_CONTINUE, /* handled: enter the guest again */
    ARCH_EXIT_STOPPED,  /* the guest stopped the machine */
    ARCH_EXIT_UNKNOWN,  /* not this architecture's: the caller names and refuses it */
};

/* The ELF e_machine value a kernel must have. */
uint16_t arch_elf_machine(void);
/* The lowest address a kernel segment may be loaded at: boot data lies below. */
uint64_t arch_kernel_min_gpa(void);

/*
 * Draws how far a kernel of that many bytes, linked for virtual address va, is moved up in this
 * boot. 0 with *ret_move, or -errno: -ENOEXEC for one that the kernel's range does not hold.
 */
int arch_kernel_draw_move(uint64_t va, uint64_t bytes, uint64_t *ret_move, struct err *err);

/*
 * What the vm needs between KVM_CREATE_VM and its memory: the in-kernel interrupt chips, and
 * which registers its guest may change.
 */
int arch_vm_setup(const struct kvm *kvm, struct err *err);

/*
 * For a machine that was restored and is never reset: its guest, and whoever asks for its vCPU,
 * has no more of what KVM offers guests by itself than its features say. Where the kernel has
 * that; 0 or -errno.
 */
int arch_vcpu_limit(const struct kvm *kvm, struct err *err);

/*
 * Boot: makes the vCPU's features final and its registers those of the kernel's boot protocol;
 * writes boot data (command line, devicetree, a random seed) to low guest memory.
 */
int arch_boot(const struct kvm *kvm, struct memory *memory, gpa_t entry_gpa,
              const char *cmdline, const void *dtb, size_t dtb_bytes, struct err *err);

/* The devicetree nodes of the CPU and the interrupt controllers. */
void arch_devicetree_cpus(struct devicetree *t);
void arch_devicetree_interrupt_controllers(struct devicetree *t);

/* Handles an exit that only this architecture knows. Never fails on what a guest did. */
enum arch_exit arch_handle_exit(struct kvm_run *run, size_t run_bytes);

/*
 * Adds every section of the CPU, the interrupt chips and the clock. The vCPU is stopped and
 * KVM_RUN was completed with immediate_exit. Changes nothing in the guest.
 */
int arch_state_save(const struct kvm *kvm, struct state_writer *w, struct err *err);
/*
 * Loads them into a machine with memory and a fresh vCPU, in the one order that works (see
 * state.c there). -ENOTSUP with the reason when this CPU lacks a feature the snapshot uses.
 */
int arch_state_load(const struct kvm *kvm, const struct state *state, struct err *err);
/*
 * Loads them again into the paused vCPU of a machine that arch_state_load made and whose guest
 * has run: everything but the CPU's features, which a guest cannot change. Uses no call that
 * the filter of a reusable machine does not allow, and allocates nothing. 0 or -errno.
 */
int arch_state_reload(const struct kvm *kvm, const struct state *state, struct err *err);

/*
 * The flush of a vCPU's address translations. Page tables that a reset puts back change behind
 * the CPU's TLB, and loading equal control registers flushes nothing: KVM has to be told, and
 * its own count of flushes proves that it listened.
 */
struct arch_flush {
    bool due;         /* armed, and not yet proven */
    int stats_fd;     /* owned: KVM's statistics of the vCPU */
    uint64_t offset;  /* of the counter in it */
    uint64_t flushes; /* the counter when it was armed */
};

/* The empty value: nothing open. */
struct arch_flush arch_flush_init(void);
/* Opens the counter. 0, or -ENOTSUP where this KVM has none (Linux 5.14). */
int arch_flush_open(const struct kvm *kvm, struct arch_flush *flush, struct err *err);
/*
 * The last call to KVM before the paused vCPU runs again: makes KVM flush the translations when
 * it next enters the guest. Borrows a few bytes of the generation ID's page, in which KVM
 * writes from then on. 0 or -errno.
 */
int arch_flush_arm(const struct kvm *kvm, const struct memory *memory, struct arch_flush *flush,
                   struct err *err);
/*
 * The first call to KVM of a reset: it writes there no more, so that the memory can be put
 * back. Without a flush that was armed nothing. 0 or -errno.
 */
int arch_flush_disarm(const struct kvm *kvm, struct err *err);
/*
 * After the first exit: 0 when KVM has flushed, -EIO when the guest ran without. Called by the
 * vCPU's thread, and only reads.
 */
int arch_flush_check(struct arch_flush *flush, struct err *err);
void arch_flush_finish(struct arch_flush *flush);

/*
 * For vmm/verify.c: notes and compares what KVM tells beside the sections of a state file, and
 * says which bytes of a section change by themselves (clocks). 0; -EILSEQ with the difference;
 * -errno.
 */
int arch_verify_note(const struct kvm *kvm, struct err *err);
int arch_verify_compare(const struct kvm *kvm, struct err *err);
bool arch_verify_moves(uint32_t tag, size_t at);

/*
 * Runs the tests of vmm/probe.h with at most test_ms for each, noting in *report which one
 * runs. May never return where KVM is broken.
 */
void arch_probe(struct probe_report *report, unsigned test_ms);
/* The CPU's own name for itself. */
void arch_cpu_model(char *out, size_t cap);

/* Writes the CPU fingerprint of this host, one line without its end. 0 or -errno. */
int arch_fingerprint(char *out, size_t cap, struct err *err);

#endif
