/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What KVM can tell of an x86 machine beside the sections of a state file: every MSR that can
 * be read at all, listed or not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/msr.h"

/* Of the local APIC's page: the timer's current count, which KVM computes from the clock. */
#define LAPIC_TMCCT     0x390u
#define LAPIC_TMCCT_END 0x394u

/* Hyper-V's, at 0x40000000, are no guest's here: some are clocks, which the host alone reads.
 */
static const struct {
    uint32_t first;
    uint32_t n;
} areas[] = {{0, 0x2000}, {MSR_KVM_FIRST, 0x10}, {0xc0000000, 0x2000}, {0xc0010000, 0x2000}};

#define READABLE_MAX 8192u

static struct {
    uint32_t n;
    struct {
        uint32_t index;
        uint64_t value;
    } msrs[READABLE_MAX];
} noted;

bool arch_verify_moves(uint32_t tag, size_t at)
{
    /* The MSRs are compared one by one, by their numbers. */
    return tag == X86_TAG_TSC || tag == X86_TAG_CLOCK || tag == X86_TAG_MSRS ||
           (tag == X86_TAG_LAPIC && at >= LAPIC_TMCCT && at < LAPIC_TMCCT_END);
}

int arch_verify_note(const struct kvm *kvm, struct err *err)
{
    noted.n = 0;
    for (size_t a = 0; a < sizeof(areas) / sizeof(areas[0]); a++) {
        for (uint32_t i = 0; i < areas[a].n; i++) {
            uint64_t value;
            int r = x86_msr_get(kvm, areas[a].first + i, &value, err);

            if (r < 0)
                return r;
            if (r == 0 || areas[a].first + i == MSR_TSC)
                continue;
            if (noted.n == READABLE_MAX)
                return err_set(err, E2BIG, "more MSRs than can be compared");
            noted.msrs[noted.n].index = areas[a].first + i;
            noted.msrs[noted.n++].value = value;
        }
    }
    return 0;
}

int arch_verify_compare(const struct kvm *kvm, struct err *err)
{
    for (uint32_t i = 0; i < noted.n; i++) {
        uint64_t value;
        int r = x86_msr_get(kvm, noted.msrs[i].index, &value, err);

        if (r < 0)
            return r;
        if (r == 0 || value != noted.msrs[i].value)
            return err_set(err, EILSEQ,
                           "MSR %08x is %#" PRIx64 " after the reset, %#" PRIx64
                           " after a restore",
                           noted.msrs[i].index, value, noted.msrs[i].value);
    }
    return 0;
}
