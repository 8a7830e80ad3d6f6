/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPU the guest sees: what KVM supports here, less what cannot be restored elsewhere or
 * is of no use in one vCPU, and the check that a CPU has what a snapshot's guest was given.
 * It must never show the guest a feature whose state a snapshot would not hold.
 */
#ifndef SKILLVM_VMM_ARCH_X86_64_CPUID_H
#define SKILLVM_VMM_ARCH_X86_64_CPUID_H

#include <linux/kvm.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

#define X86_CPUID_MAX 128u

/* Laid out as struct kvm_cpuid2 with room for its entries. */
struct x86_cpuid {
    uint32_t n_entries;
    uint32_t padding;
    struct kvm_cpuid_entry2 entries[X86_CPUID_MAX];
};

/* What a guest made here sees. 0 or -errno. */
int x86_cpuid_host(int dev_fd, struct x86_cpuid *ret_cpuid, struct err *err);
/*
 * The policy alone: edits what KVM_GET_SUPPORTED_CPUID said. Applied to what a running guest
 * has, it takes away what depends on the moment.
 */
void x86_cpuid_filter(struct x86_cpuid *cpuid);
/* The XCR0 bits that the guest of cpuid can use; 0 without XSAVE. */
uint64_t x86_cpuid_xcr0(const struct x86_cpuid *cpuid);
/*
 * 0 when a CPU that offers have can go on with a guest that was given want; else -ENOTSUP and
 * a message that names the vendor or the first missing feature.
 */
int x86_cpuid_check(const struct x86_cpuid *want, const struct x86_cpuid *have,
                    struct err *err);
/* Writes "vendor=… family=… model=… stepping=… features=…" to out. 0 or -E2BIG. */
int x86_cpuid_describe(const struct x86_cpuid *cpuid, char *out, size_t cap, struct err *err);
/* Encodes and decodes the entries. decode: 0, or -EINVAL when r does not hold a whole list. */
void x86_cpuid_encode(const struct x86_cpuid *cpuid, struct bytes_writer *w);
int x86_cpuid_decode(struct bytes_reader *r, struct x86_cpuid *ret_cpuid);

#endif
