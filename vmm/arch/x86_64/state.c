/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vCPU, the interrupt chips and the clock as sections of a state file. KVM's structures are
 * kept as blobs whose length is checked; lists are encoded field by field.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/cpuid.h"
#include "vmm/arch/x86_64/msr.h"

#define XSAVE_MAX (64u << 10)
#define N_CHIPS   3u

/* KVM takes part of the difference between two clocks for drift: the same as its default. */
#define TSC_TOLERANCE_PPM 250u

/* Laid out as struct kvm_msrs with room for its entries. */
struct msr_list {
    uint32_t n;
    uint32_t padding;
    struct kvm_msr_entry entries[X86_MSRS_MAX];
};
_Static_assert(offsetof(struct msr_list, entries) == offsetof(struct kvm_msrs, entries),
               "struct msr_list must be laid out as struct kvm_msrs");

/* What a section needs that does not fit on a stack. */
struct scratch {
    struct x86_cpuid cpuid;
    struct x86_cpuid have;
    struct msr_list msrs;
    struct x86_msr_index index;
    uint8_t xsave[XSAVE_MAX] __attribute__((aligned(64)));
    uint8_t bytes[64u << 10];
};

/* Static, because nothing may be allocated when the guest has run. */
static struct scratch scratch;

/* Bytes of this machine's KVM_GET_XSAVE2 and KVM_SET_XSAVE. */
static int xsave_bytes(const struct kvm *kvm, size_t *ret_bytes, struct err *err)
{
    int r = ioctl(kvm->vm_fd, KVM_CHECK_EXTENSION, (unsigned long)KVM_CAP_XSAVE2);

    if (r < 0)
        return err_set_errno(err, errno, "KVM_CAP_XSAVE2");
    if ((size_t)r < sizeof(struct kvm_xsave))
        return err_set(err, ENOTSUP, "this KVM has no KVM_CAP_XSAVE2 (Linux 5.17)");
    if ((size_t)r > XSAVE_MAX)
        return err_set(err, E2BIG, "KVM_CAP_XSAVE2: %d bytes", r);
    *ret_bytes = (size_t)r;
    return 0;
}

/* KVM_GET_… of a fixed structure straight into a section. */
static int save_blob(int fd, unsigned long request, const char *name, struct state_writer *w,
                     uint32_t tag, void *blob, size_t len, struct err *err)
{
    int r;

    memset(blob, 0, len);
    r = kvm_ioctl(fd, request, blob, name, err);
    return r < 0 ? r : state_add(w, tag, blob, len, err);
}

static int load_blob(int fd, unsigned long request, const char *name, const struct state *state,
                     uint32_t tag, void *blob, size_t len, struct err *err)
{
    int r = state_get_blob(state, tag, blob, len, err);

    if (r < 0)
        return r;
    r = kvm_ioctl(fd, request, blob, name, err);
    return r < 0 ? r : 0;
}

static int save_cpuid(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    struct bytes_writer b = bytes_writer_init(scratch.bytes, sizeof(scratch.bytes));
    int r;

    scratch.cpuid.n_entries = X86_CPUID_MAX;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_GET_CPUID2, &scratch.cpuid, "KVM_GET_CPUID2", err);
    if (r < 0)
        return r;
    x86_cpuid_filter(&scratch.cpuid);
    x86_cpuid_encode(&scratch.cpuid, &b);
    return state_add(w, X86_TAG_CPUID, scratch.bytes, b.len, err);
}

static int load_cpuid(const struct kvm *kvm, const struct state *state, struct err *err)
{
    struct bytes_reader r = state_section(state, X86_TAG_CPUID);
    int e;

    if (x86_cpuid_decode(&r, &scratch.cpuid) < 0)
        return state_bad_section(state, X86_TAG_CPUID, "not a list of entries", err);
    e = x86_cpuid_host(kvm->dev_fd, &scratch.have, err);
    if (e < 0)
        return e;
    e = x86_cpuid_check(&scratch.cpuid, &scratch.have, err);
    if (e < 0)
        return e;
    e = kvm_ioctl(kvm->vcpu_fd, KVM_SET_CPUID2, &scratch.cpuid, "KVM_SET_CPUID2", err);
    return e < 0 ? e : 0;
}

static int save_xsave(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    size_t len = 0;
    int r = xsave_bytes(kvm, &len, err);

    if (r < 0)
        return r;
    return save_blob(kvm->vcpu_fd, KVM_GET_XSAVE2, "KVM_GET_XSAVE2", w, X86_TAG_XSAVE,
                     scratch.xsave, len, err);
}

/* The area may be shorter than this machine's (a CPU with fewer components), never longer. */
static int load_xsave(const struct kvm *kvm, const struct state *state, struct err *err)
{
    struct bytes_reader r = state_section(state, X86_TAG_XSAVE);
    size_t saved = bytes_left(&r);
    size_t len = 0;
    int e = xsave_bytes(kvm, &len, err);

    if (e < 0)
        return e;
    if (saved < sizeof(struct kvm_xsave) || saved > len)
        return state_bad_section(state, X86_TAG_XSAVE, "wrong length", err);
    memset(scratch.xsave, 0, len);
    bytes_get(&r, scratch.xsave, saved);
    e = kvm_ioctl(kvm->vcpu_fd, KVM_SET_XSAVE, scratch.xsave, "KVM_SET_XSAVE", err);
    return e < 0 ? e : 0;
}

/* Every MSR that KVM lists and can read, but for the TSC, which has a section of its own. */
static int read_msrs(const struct kvm *kvm, struct err *err)
{
    uint32_t n = 0;
    int r = x86_msr_list(kvm, &scratch.index, err);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < scratch.index.n; i++) {
        uint32_t index = scratch.index.indices[i];
        uint64_t value;

        if (index == MSR_TSC)
            continue;
        r = x86_msr_get(kvm, index, &value, err);
        if (r < 0)
            return r;
        /* None is one of a feature that the guest was not given. */
        if (r > 0)
            scratch.msrs.entries[n++] = (struct kvm_msr_entry){.index = index, .data = value};
    }
    scratch.msrs.n = n;
    return 0;
}

static int save_msrs(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    struct bytes_writer b = bytes_writer_init(scratch.bytes, sizeof(scratch.bytes));
    int r = read_msrs(kvm, err);

    if (r < 0)
        return r;
    bytes_put_u32(&b, scratch.msrs.n);
    for (uint32_t i = 0; i < scratch.msrs.n; i++) {
        bytes_put_u32(&b, scratch.msrs.entries[i].index);
        bytes_put_u64(&b, scratch.msrs.entries[i].data);
    }
    return state_add(w, X86_TAG_MSRS, scratch.bytes, b.len, err);
}

static int load_msrs(const struct kvm *kvm, const struct state *state, struct err *err)
{
    struct bytes_reader r = state_section(state, X86_TAG_MSRS);
    uint32_t n = bytes_get_u32(&r);
    int e;

    if (n > X86_MSRS_MAX)
        return state_bad_section(state, X86_TAG_MSRS, "too many entries", err);
    scratch.msrs.n = n;
    for (uint32_t i = 0; i < n; i++) {
        scratch.msrs.entries[i] = (struct kvm_msr_entry){.index = bytes_get_u32(&r)};
        scratch.msrs.entries[i].data = bytes_get_u64(&r);
        if (scratch.msrs.entries[i].index == MSR_TSC)
            return state_bad_section(state, X86_TAG_MSRS, "holds the TSC", err);
    }
    if (!bytes_done(&r))
        return state_bad_section(state, X86_TAG_MSRS, "wrong length", err);
    e = kvm_ioctl(kvm->vcpu_fd, KVM_SET_MSRS, &scratch.msrs, "KVM_SET_MSRS", err);
    if (e < 0)
        return e;
    if ((uint32_t)e != n)
        return err_set(err, ENOTSUP, "KVM_SET_MSRS: this KVM refuses MSR %08x",
                       scratch.msrs.entries[e].index);
    return 0;
}

static int read_tsc(const struct kvm *kvm, uint64_t *ret_tsc, struct err *err)
{
    int r = x86_msr_get(kvm, MSR_TSC, ret_tsc, err);

    if (r < 0)
        return r;
    return r == 1 ? 0 : err_set(err, ENOTSUP, "KVM_GET_MSRS: the TSC cannot be read");
}

static int save_tsc(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    struct bytes_writer b = bytes_writer_init(scratch.bytes, sizeof(scratch.bytes));
    int khz = kvm_ioctl(kvm->vcpu_fd, KVM_GET_TSC_KHZ, NULL, "KVM_GET_TSC_KHZ", err);
    uint64_t tsc = 0;
    int r;

    if (khz < 0)
        return khz;
    r = read_tsc(kvm, &tsc, err);
    if (r < 0)
        return r;
    bytes_put_u64(&b, tsc);
    bytes_put_u32(&b, (uint32_t)khz);
    return state_add(w, X86_TAG_TSC, scratch.bytes, b.len, err);
}

static int set_tsc_khz(const struct kvm *kvm, uint32_t khz, int have_khz, struct err *err)
{
    /* An argument by value: not for kvm_ioctl. */
    if (ioctl(kvm->vcpu_fd, KVM_SET_TSC_KHZ, (unsigned long)khz) < 0)
        return err_set(
            err, ENOTSUP,
            "the snapshot's TSC runs at %u kHz, this one at %d, and it cannot be scaled", khz,
            have_khz);
    return 0;
}

static int read_tsc_section(const struct state *state, uint64_t *ret_tsc, uint32_t *ret_khz,
                            struct err *err)
{
    struct bytes_reader b = state_section(state, X86_TAG_TSC);

    *ret_tsc = bytes_get_u64(&b);
    *ret_khz = bytes_get_u32(&b);
    if (!bytes_done(&b) || *ret_khz == 0)
        return state_bad_section(state, X86_TAG_TSC, "wrong length or frequency", err);
    return 0;
}

static int load_tsc_khz(const struct kvm *kvm, const struct state *state, struct err *err)
{
    uint32_t saved_khz, difference;
    uint64_t saved;
    int r = read_tsc_section(state, &saved, &saved_khz, err);
    int khz;

    if (r < 0)
        return r;
    khz = kvm_ioctl(kvm->vcpu_fd, KVM_GET_TSC_KHZ, NULL, "KVM_GET_TSC_KHZ", err);
    if (khz < 0)
        return khz;
    difference =
        saved_khz > (uint32_t)khz ? saved_khz - (uint32_t)khz : (uint32_t)khz - saved_khz;
    /* Small differences are calibration noise, and kvm-clock tells the guest the truth. */
    if (difference * UINT64_C(1000000) <= (uint64_t)saved_khz * TSC_TOLERANCE_PPM)
        return 0;
    return set_tsc_khz(kvm, saved_khz, khz, err);
}

/*
 * The guest's TSC goes on from the saved value. Writing it as an MSR would not do: KVM may take
 * the write for an attempt to synchronise CPUs and ignore it.
 */
static int load_tsc(const struct kvm *kvm, const struct state *state, struct err *err)
{
    uint64_t offset = 0, now = 0, saved;
    uint32_t saved_khz;
    struct kvm_device_attr attr = {
        .group = KVM_VCPU_TSC_CTRL,
        .attr = KVM_VCPU_TSC_OFFSET,
        .addr = (uintptr_t)&offset,
    };
    int r = read_tsc_section(state, &saved, &saved_khz, err);

    if (r < 0)
        return r;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_GET_DEVICE_ATTR, &attr, "reading KVM_VCPU_TSC_OFFSET", err);
    if (r < 0)
        return r;
    r = read_tsc(kvm, &now, err);
    if (r < 0)
        return r;
    offset += saved - now;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_SET_DEVICE_ATTR, &attr, "setting KVM_VCPU_TSC_OFFSET", err);
    return r < 0 ? r : 0;
}

static int save_irqchips(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    struct bytes_writer b = bytes_writer_init(scratch.bytes, sizeof(scratch.bytes));

    for (uint32_t i = 0; i < N_CHIPS; i++) {
        struct kvm_irqchip chip = {.chip_id = i};
        int r = kvm_ioctl(kvm->vm_fd, KVM_GET_IRQCHIP, &chip, "KVM_GET_IRQCHIP", err);

        if (r < 0)
            return r;
        bytes_put(&b, &chip, sizeof(chip));
    }
    return state_add(w, X86_TAG_IRQCHIPS, scratch.bytes, b.len, err);
}

static int load_irqchips(const struct kvm *kvm, const struct state *state, struct err *err)
{
    struct kvm_irqchip chips[N_CHIPS];
    int r = state_get_blob(state, X86_TAG_IRQCHIPS, chips, sizeof(chips), err);

    for (uint32_t i = 0; r >= 0 && i < N_CHIPS; i++) {
        if (chips[i].chip_id != i)
            return state_bad_section(state, X86_TAG_IRQCHIPS, "chips out of order", err);
        r = kvm_ioctl(kvm->vm_fd, KVM_SET_IRQCHIP, &chips[i], "KVM_SET_IRQCHIP", err);
    }
    return r < 0 ? r : 0;
}

/* The guest's monotonic clock goes on where it stopped. */
static int load_clock(const struct kvm *kvm, const struct state *state, struct err *err)
{
    struct kvm_clock_data saved;
    struct kvm_clock_data clock = {0};
    int r = state_get_blob(state, X86_TAG_CLOCK, &saved, sizeof(saved), err);

    if (r < 0)
        return r;
    clock.clock = saved.clock;
    r = kvm_ioctl(kvm->vm_fd, KVM_SET_CLOCK, &clock, "KVM_SET_CLOCK", err);
    if (r < 0)
        return r;
    /* Keeps watchdogs quiet about the pause. EINVAL: the guest has no kvm-clock yet. */
    r = kvm_ioctl(kvm->vcpu_fd, KVM_KVMCLOCK_CTRL, NULL, "KVM_KVMCLOCK_CTRL", NULL);
    if (r < 0 && r != -EINVAL)
        return err_set_errno(err, -r, "KVM_KVMCLOCK_CTRL");
    return 0;
}

static int save_clock(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    struct kvm_clock_data clock;

    return save_blob(kvm->vm_fd, KVM_GET_CLOCK, "KVM_GET_CLOCK", w, X86_TAG_CLOCK, &clock,
                     sizeof(clock), err);
}

/* A section with functions of its own, or one that is a structure of KVM's as it is. */
struct section {
    int (*save)(const struct kvm *kvm, struct state_writer *w, struct err *err);
    int (*load)(const struct kvm *kvm, const struct state *state, struct err *err);
    uint32_t tag;
    size_t len;
    unsigned long get, set;
    const char *get_name, *set_name;
};
#define BLOB(section_tag, type, request)                                                       \
    .tag = (section_tag), .len = sizeof(struct type), .get = KVM_GET_##request,                \
    .set = KVM_SET_##request, .get_name = "KVM_GET_" #request, .set_name = "KVM_SET_" #request

/*
 * The order matters. Saving: the MP state first, because reading it makes KVM settle pending
 * INIT and SIPI. Loading: the local APIC before the MSRs, because the TSC deadline is only
 * taken in that timer mode; the TSC before the MSRs for the same reason; events last of the
 * vCPU, because setting registers clears them; the clock after the TSC it is computed from.
 */
static const struct section sections[] = {
    {BLOB(X86_TAG_MP, kvm_mp_state, MP_STATE)},
    {BLOB(X86_TAG_REGS, kvm_regs, REGS)},
    {BLOB(X86_TAG_SREGS, kvm_sregs, SREGS)},
    {.save = save_xsave, .load = load_xsave},
    {BLOB(X86_TAG_XCRS, kvm_xcrs, XCRS)},
    {BLOB(X86_TAG_DEBUGREGS, kvm_debugregs, DEBUGREGS)},
    {BLOB(X86_TAG_LAPIC, kvm_lapic_state, LAPIC)},
    {.save = save_tsc, .load = load_tsc},
    {.save = save_msrs, .load = load_msrs},
    {BLOB(X86_TAG_EVENTS, kvm_vcpu_events, VCPU_EVENTS)},
    {.save = save_irqchips, .load = load_irqchips},
    {.save = save_clock, .load = load_clock},
};
#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

int arch_state_save(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    int r = save_cpuid(kvm, w, err);

    for (const struct section *s = sections; r >= 0 && s < sections + N_SECTIONS; s++)
        r = s->save ? s->save(kvm, w, err)
                    : save_blob(kvm->vcpu_fd, s->get, s->get_name, w, s->tag, scratch.bytes,
                                s->len, err);
    return r;
}

static int load_vcpu(const struct kvm *kvm, const struct state *state, struct err *err)
{
    int r = 0;

    for (const struct section *s = sections; r >= 0 && s < sections + N_SECTIONS; s++)
        r = s->load ? s->load(kvm, state, err)
                    : load_blob(kvm->vcpu_fd, s->set, s->set_name, state, s->tag, scratch.bytes,
                                s->len, err);
    return r;
}

/* Features and frequency first, because they decide what the rest may hold. */
int arch_state_load(const struct kvm *kvm, const struct state *state, struct err *err)
{
    int r = load_cpuid(kvm, state, err);

    if (r < 0)
        return r;
    r = load_tsc_khz(kvm, state, err);
    return r < 0 ? r : load_vcpu(kvm, state, err);
}

int arch_state_reload(const struct kvm *kvm, const struct state *state, struct err *err)
{
    struct kvm_lapic_state lapic;
    /* One time more than for a fresh vCPU: KVM computes the processor's priority from what it
       remembers of the interrupt in service, and forgets that only afterwards. */
    int r = load_blob(kvm->vcpu_fd, KVM_SET_LAPIC, "KVM_SET_LAPIC", state, X86_TAG_LAPIC,
                      &lapic, sizeof(lapic), err);

    return r < 0 ? r : load_vcpu(kvm, state, err);
}
