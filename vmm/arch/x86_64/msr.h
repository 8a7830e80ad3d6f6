/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MSRs that KVM keeps for a guest: which there are, what they hold, and which of them a
 * guest may write.
 */
#ifndef SKILLVM_VMM_ARCH_X86_64_MSR_H
#define SKILLVM_VMM_ARCH_X86_64_MSR_H

#include <stdint.h>

#include "base/err.h"
#include "vmm/kvm.h"

#define X86_MSRS_MAX  1024u
#define MSR_TSC       0x10u
#define MSR_KVM_FIRST 0x4b564d00u

/* Laid out as struct kvm_msr_list with room for its entries. */
struct x86_msr_index {
    uint32_t n;
    uint32_t indices[X86_MSRS_MAX];
};

/* KVM_GET_MSR_INDEX_LIST: what a snapshot holds. 0 or -errno. */
int x86_msr_list(const struct kvm *kvm, struct x86_msr_index *ret_index, struct err *err);

/* Reads one as the host. 1; 0 when KVM has none of that number; -errno. */
int x86_msr_get(const struct kvm *kvm, uint32_t index, uint64_t *ret_value, struct err *err);
/* Writes one as the host. 1; 0 when KVM refuses it; -errno. */
int x86_msr_set(const struct kvm *kvm, uint32_t index, uint64_t value, struct err *err);

/* Tells a machine without a vCPU which MSRs its guest may write. 0 or -errno. */
int x86_msr_filter(const struct kvm *kvm, struct err *err);

#endif
