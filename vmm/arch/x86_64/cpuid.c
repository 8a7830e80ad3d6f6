/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/arch/x86_64/cpuid.h"

#include <asm/kvm_para.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "vmm/kvm.h"

_Static_assert(offsetof(struct x86_cpuid, entries) == offsetof(struct kvm_cpuid2, entries),
               "struct x86_cpuid must be laid out as struct kvm_cpuid2");

#define BIT(n) (1u << (n))

/* The state components a snapshot holds: x87, SSE, AVX, AVX-512 and protection keys. */
#define XCR0_KNOWN 0x2e7u

enum reg { EAX, EBX, ECX, EDX };

static uint32_t *entry_reg(struct kvm_cpuid_entry2 *e, enum reg reg)
{
    switch (reg) {
    case EAX:
        return &e->eax;
    case EBX:
        return &e->ebx;
    case ECX:
        return &e->ecx;
    default:
        return &e->edx;
    }
}

/*
 * Features taken away. Each bit by the name the manuals use; the reason by group.
 */
static const struct {
    uint32_t leaf;
    uint32_t subleaf;
    enum reg reg;
    uint32_t clear;
} hidden[] = {
    /* MONITOR, DTES64, DS_CPL, VMX, SMX, EIST, TM2, CNXT_ID, PDCM, DCA: belongs to the host. */
    {1, 0, ECX,
     BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8) | BIT(10) | BIT(15) |
         BIT(18)},
    /* OSXSAVE, OSPKE: mirrors of CR4 bits that KVM sets as the guest goes. */
    {1, 0, ECX, BIT(27)},
    {7, 0, ECX, BIT(4)},
    /* MCE, MCA, MTRR: more MSRs to keep and nothing behind them; DS, ACPI, HTT, TM, PBE. */
    {1, 0, EDX, BIT(7) | BIT(12) | BIT(14) | BIT(21) | BIT(22) | BIT(28) | BIT(29) | BIT(31)},
    /* TSC_ADJUST (the clock is restored by offset), SGX, HLE, RTM, MPX, processor trace. */
    {7, 0, EBX, BIT(1) | BIT(2) | BIT(4) | BIT(11) | BIT(14) | BIT(25)},
    /* WAITPKG, CET_SS, LA57, BUS_LOCK_DETECT, ENQCMD, SGX_LC. */
    {7, 0, ECX, BIT(5) | BIT(7) | BIT(16) | BIT(24) | BIT(29) | BIT(30)},
    /* ARCH_LBR, CET_IBT, AMX: state a snapshot does not hold. */
    {7, 0, EDX, BIT(19) | BIT(20) | BIT(22) | BIT(24) | BIT(25)},
    /* XFD is of use only with AMX. */
    {0xd, 1, EAX, BIT(4)},
    /* Supervisor components: none is known. */
    {0xd, 1, ECX, 0xffffffffu},
    /* SVM, SKINIT, WDT, LWP, NODEID, TOPOEXT, PERFCTR*, PERFTSC, PERFCTR_LLC, MONITORX, IBS. */
    {0x80000001, 0, ECX,
     BIT(2) | BIT(10) | BIT(12) | BIT(13) | BIT(15) | BIT(19) | BIT(22) | BIT(23) | BIT(24) |
         BIT(27) | BIT(28) | BIT(29)},
    /* Invariant TSC: the guest may go on at another frequency, so kvm-clock is its clock. */
    {0x80000007, 0, EDX, BIT(8)},
    /* The number of cores. */
    {0x80000008, 0, ECX, 0xffffffffu},
};

/* Leaves that would describe the host: topology, performance counters, SGX, SVM, IBS, SEV. */
static bool leaf_is_dropped(uint32_t leaf)
{
    switch (leaf) {
    case 0x5:
    case 0xa:
    case 0xb:
    case 0x12:
    case 0x14:
    case 0x15:
    case 0x16:
    case 0x19:
    case 0x1c:
    case 0x1d:
    case 0x1e:
    case 0x1f:
    case 0x8000000a:
    case 0x8000001b:
    case 0x8000001d:
    case 0x8000001e:
    case 0x8000001f:
    case 0x80000022:
        return true;
    default:
        return false;
    }
}

/* What the machine adds: there is one CPU, and the local APIC is KVM's. */
static void set_fixed(struct kvm_cpuid_entry2 *e)
{
    if (e->function == 1) {
        e->ebx = (e->ebx & 0xffff) | 1u << 16;
        e->ecx |= BIT(31) | BIT(24); /* HYPERVISOR, TSC_DEADLINE */
    } else if (e->function == 4) {
        e->eax &= 0x3fff; /* threads that share the cache, cores in the package */
    } else if (e->function == 0xd && e->index == 0) {
        e->eax &= XCR0_KNOWN;
        e->edx = 0;
    } else if (e->function == KVM_CPUID_FEATURES) {
        /* Features with pages that only cost private memory here are left out: asynchronous
           page faults, steal time, spinlock kicks, IPIs. */
        e->eax &= BIT(KVM_FEATURE_CLOCKSOURCE) | BIT(KVM_FEATURE_NOP_IO_DELAY) |
                  BIT(KVM_FEATURE_CLOCKSOURCE2) | BIT(KVM_FEATURE_PV_EOI) |
                  BIT(KVM_FEATURE_CLOCKSOURCE_STABLE_BIT);
        e->edx = 0;
    }
}

/* A component of XCR0 that the guest does not get. */
static bool is_hidden_component(const struct kvm_cpuid_entry2 *e)
{
    return e->function == 0xd && e->index >= 2 &&
           (e->index >= 32 || !(XCR0_KNOWN & BIT(e->index)));
}

void x86_cpuid_filter(struct x86_cpuid *cpuid)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cpuid->n_entries; i++) {
        struct kvm_cpuid_entry2 e = cpuid->entries[i];

        if (leaf_is_dropped(e.function) || is_hidden_component(&e))
            continue;
        for (size_t h = 0; h < sizeof(hidden) / sizeof(hidden[0]); h++) {
            if (e.function == hidden[h].leaf && e.index == hidden[h].subleaf)
                *entry_reg(&e, hidden[h].reg) &= ~hidden[h].clear;
        }
        set_fixed(&e);
        cpuid->entries[n++] = e;
    }
    cpuid->n_entries = n;
}

int x86_cpuid_host(int dev_fd, struct x86_cpuid *ret_cpuid, struct err *err)
{
    struct x86_cpuid cpuid = {.n_entries = X86_CPUID_MAX};
    int r = kvm_ioctl(dev_fd, KVM_GET_SUPPORTED_CPUID, &cpuid, "KVM_GET_SUPPORTED_CPUID", err);

    if (r < 0)
        return r;
    x86_cpuid_filter(&cpuid);
    *ret_cpuid = cpuid;
    return 0;
}

static uint32_t read_word(const struct x86_cpuid *cpuid, uint32_t leaf, uint32_t subleaf,
                          enum reg reg)
{
    for (uint32_t i = 0; i < cpuid->n_entries; i++) {
        struct kvm_cpuid_entry2 e = cpuid->entries[i];

        if (e.function == leaf && e.index == subleaf)
            return *entry_reg(&e, reg);
    }
    return 0;
}

uint64_t x86_cpuid_xcr0(const struct x86_cpuid *cpuid)
{
    if (!(read_word(cpuid, 1, 0, ECX) & BIT(26)))
        return 0;
    return read_word(cpuid, 0xd, 0, EAX);
}

/* The words whose bits are features, and the names of those a person may look for. */
static const struct feature_word {
    uint32_t leaf;
    uint32_t subleaf;
    enum reg reg;
    const char *name;
} words[] = {
    {1, 0, ECX, "1.ecx"},
    {1, 0, EDX, "1.edx"},
    {7, 0, EBX, "7.ebx"},
    {7, 0, ECX, "7.ecx"},
    {7, 0, EDX, "7.edx"},
    {7, 1, EAX, "7.1.eax"},
    {7, 1, EDX, "7.1.edx"},
    {7, 2, EDX, "7.2.edx"},
    {0xd, 0, EAX, "0xd.eax"},
    {0xd, 1, EAX, "0xd.1.eax"},
    {KVM_CPUID_FEATURES, 0, EAX, "kvm.eax"},
    {0x80000001, 0, ECX, "0x80000001.ecx"},
    {0x80000001, 0, EDX, "0x80000001.edx"},
    {0x80000008, 0, EBX, "0x80000008.ebx"},
    {0x80000021, 0, EAX, "0x80000021.eax"},
};

static const struct {
    const char *word;
    unsigned bit;
    const char *name;
} names[] = {
    {"1.ecx", 0, "SSE3"},
    {"1.ecx", 1, "PCLMULQDQ"},
    {"1.ecx", 9, "SSSE3"},
    {"1.ecx", 12, "FMA"},
    {"1.ecx", 13, "CMPXCHG16B"},
    {"1.ecx", 19, "SSE4.1"},
    {"1.ecx", 20, "SSE4.2"},
    {"1.ecx", 21, "x2APIC"},
    {"1.ecx", 22, "MOVBE"},
    {"1.ecx", 23, "POPCNT"},
    {"1.ecx", 25, "AES"},
    {"1.ecx", 26, "XSAVE"},
    {"1.ecx", 28, "AVX"},
    {"1.ecx", 29, "F16C"},
    {"1.ecx", 30, "RDRAND"},
    {"7.ebx", 0, "FSGSBASE"},
    {"7.ebx", 3, "BMI1"},
    {"7.ebx", 5, "AVX2"},
    {"7.ebx", 7, "SMEP"},
    {"7.ebx", 8, "BMI2"},
    {"7.ebx", 9, "ERMS"},
    {"7.ebx", 10, "INVPCID"},
    {"7.ebx", 16, "AVX512F"},
    {"7.ebx", 18, "RDSEED"},
    {"7.ebx", 19, "ADX"},
    {"7.ebx", 20, "SMAP"},
    {"7.ebx", 29, "SHA"},
    {"7.ecx", 2, "UMIP"},
    {"7.ecx", 3, "PKU"},
    {"7.edx", 26, "SPEC_CTRL"},
    {"0xd.1.eax", 0, "XSAVEOPT"},
    {"0xd.1.eax", 1, "XSAVEC"},
    {"0xd.1.eax", 3, "XSAVES"},
    {"kvm.eax", KVM_FEATURE_CLOCKSOURCE2, "kvm-clock"},
    {"kvm.eax", KVM_FEATURE_PV_EOI, "kvm-pv-eoi"},
    {"0x80000001.ecx", 5, "LZCNT"},
    {"0x80000001.edx", 26, "1-GiB pages"},
    {"0x80000001.edx", 27, "RDTSCP"},
};

static int missing_feature(const struct feature_word *word, uint32_t missing, struct err *err)
{
    unsigned bit = (unsigned)__builtin_ctz(missing);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].bit == bit && strcmp(names[i].word, word->name) == 0)
            return err_set(err, ENOTSUP, "this CPU lacks %s, which the snapshot's guest uses",
                           names[i].name);
    }
    return err_set(err, ENOTSUP,
                   "this CPU lacks bit %u of CPUID %s, which the snapshot's guest uses", bit,
                   word->name);
}

static void vendor(const struct x86_cpuid *cpuid, char out[13])
{
    uint32_t w[3] = {read_word(cpuid, 0, 0, EBX), read_word(cpuid, 0, 0, EDX),
                     read_word(cpuid, 0, 0, ECX)};

    memcpy(out, w, 12);
    out[12] = '\0';
    for (int i = 0; i < 12; i++) {
        if (out[i] <= ' ' || out[i] > '~')
            out[i] = '?';
    }
}

int x86_cpuid_check(const struct x86_cpuid *want, const struct x86_cpuid *have, struct err *err)
{
    char want_vendor[13], have_vendor[13];

    vendor(want, want_vendor);
    vendor(have, have_vendor);
    if (strcmp(want_vendor, have_vendor) != 0)
        return err_set(err, ENOTSUP, "the snapshot was made on a CPU by %s, this one is by %s",
                       want_vendor, have_vendor);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        uint32_t w = read_word(want, words[i].leaf, words[i].subleaf, words[i].reg);
        uint32_t h = read_word(have, words[i].leaf, words[i].subleaf, words[i].reg);

        if (w & ~h)
            return missing_feature(&words[i], w & ~h, err);
    }
    return 0;
}

int x86_cpuid_describe(const struct x86_cpuid *cpuid, char *out, size_t cap, struct err *err)
{
    uint32_t signature = read_word(cpuid, 1, 0, EAX);
    uint32_t family = signature >> 8 & 0xf;
    uint32_t model = signature >> 4 & 0xf;
    char name[13];
    size_t at;
    int n;

    if (family == 0xf || family == 6)
        model |= (signature >> 16 & 0xf) << 4;
    if (family == 0xf)
        family += signature >> 20 & 0xff;
    vendor(cpuid, name);
    n = snprintf(out, cap, "vendor=%s family=%u model=%u stepping=%u features=", name, family,
                 model, signature & 0xf);
    at = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && at < cap; i++) {
        n = snprintf(out + at, cap - at, "%s%08x", i > 0 ? "-" : "",
                     read_word(cpuid, words[i].leaf, words[i].subleaf, words[i].reg));
        at += n > 0 ? (size_t)n : 0;
    }
    return at < cap ? 0 : err_set(err, E2BIG, "fingerprint: longer than %zu bytes", cap);
}

void x86_cpuid_encode(const struct x86_cpuid *cpuid, struct bytes_writer *w)
{
    bytes_put_u32(w, cpuid->n_entries);
    for (uint32_t i = 0; i < cpuid->n_entries; i++) {
        const struct kvm_cpuid_entry2 *e = &cpuid->entries[i];

        bytes_put_u32(w, e->function);
        bytes_put_u32(w, e->index);
        bytes_put_u32(w, e->flags);
        bytes_put_u32(w, e->eax);
        bytes_put_u32(w, e->ebx);
        bytes_put_u32(w, e->ecx);
        bytes_put_u32(w, e->edx);
    }
}

int x86_cpuid_decode(struct bytes_reader *r, struct x86_cpuid *ret_cpuid)
{
    struct x86_cpuid cpuid = {.n_entries = bytes_get_u32(r)};

    if (cpuid.n_entries > X86_CPUID_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < cpuid.n_entries; i++) {
        struct kvm_cpuid_entry2 *e = &cpuid.entries[i];

        e->function = bytes_get_u32(r);
        e->index = bytes_get_u32(r);
        e->flags = bytes_get_u32(r);
        e->eax = bytes_get_u32(r);
        e->ebx = bytes_get_u32(r);
        e->ecx = bytes_get_u32(r);
        e->edx = bytes_get_u32(r);
    }
    if (!bytes_done(r))
        return -EINVAL;
    *ret_cpuid = cpuid;
    return 0;
}
