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

static int save_cpuid(const struct kvm *kvm, struct state_writer *w, struct scratch *s,
                      struct err *err)
{
    struct bytes_writer b = bytes_writer_init(s->bytes, sizeof(s->bytes));
    int r;

    s->cpuid.n_entries = X86_CPUID_MAX;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_GET_CPUID2, &s->cpuid, "KVM_GET_CPUID2", err);
    if (r < 0)
        return r;
    x86_cpuid_filter(&s->cpuid);
    x86_cpuid_encode(&s->cpuid, &b);
    return state_add(w, X86_TAG_CPUID, s->bytes, b.len, err);
}

static int load_cpuid(const struct kvm *kvm, const struct state *state, struct scratch *s,
                      struct err *err)
{
    struct bytes_reader r = state_section(state, X86_TAG_CPUID);
    int e;

    if (x86_cpuid_decode(&r, &s->cpuid) < 0)
        return state_bad_section(state, X86_TAG_CPUID, "not a list of entries", err);
    e = x86_cpuid_host(kvm->dev_fd, &s->have, err);
    if (e >= 0)
        e = x86_cpuid_check(&s->cpuid, &s->have, err);
    if (e >= 0)
        e = kvm_ioctl(kvm->vcpu_fd, KVM_SET_CPUID2, &s->cpuid, "KVM_SET_CPUID2", err);
    return e < 0 ? e : 0;
}

static int save_xsave(const struct kvm *kvm, struct state_writer *w, struct scratch *s,
                      struct err *err)
{
    size_t len = 0;
    int r = xsave_bytes(kvm, &len, err);

    if (r < 0)
        return r;
    return save_blob(kvm->vcpu_fd, KVM_GET_XSAVE2, "KVM_GET_XSAVE2", w, X86_TAG_XSAVE, s->xsave,
                     len, err);
}

/* The area may be shorter than this machine's (a CPU with fewer components), never longer. */
static int load_xsave(const struct kvm *kvm, const struct state *state, struct scratch *s,
                      struct err *err)
{
    struct bytes_reader r = state_section(state, X86_TAG_XSAVE);
    size_t saved = bytes_left(&r);
    size_t len = 0;
    int e = xsave_bytes(kvm, &len, err);

    if (e < 0)
        return e;
    if (saved < sizeof(struct kvm_xsave) || saved > len)
        return state_bad_section(state, X86_TAG_XSAVE, "wrong length", err);
    memset(s->xsave, 0, len);
    bytes_get(&r, s->xsave, saved);
    e = kvm_ioctl(kvm->vcpu_fd, KVM_SET_XSAVE, s->xsave, "KVM_SET_XSAVE", err);
    return e < 0 ? e : 0;
}

/* Every MSR that KVM lists and can read, but for the TSC, which has a section of its own. */
static int read_msrs(const struct kvm *kvm, struct scratch *s, struct err *err)
{
    uint32_t n = 0;
    int r = x86_msr_list(kvm, &s->index, err);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < s->index.n; i++) {
        uint32_t index = s->index.indices[i];
        uint64_t value;

        if (index == MSR_TSC)
            continue;
        r = x86_msr_get(kvm, index, &value, err);
        if (r < 0)
            return r;
        /* None is one of a feature that the guest was not given. */
        if (r > 0)
            s->msrs.entries[n++] = (struct kvm_msr_entry){.index = index, .data = value};
    }
    s->msrs.n = n;
    return 0;
}

static int save_msrs(const struct kvm *kvm, struct state_writer *w, struct scratch *s,
                     struct err *err)
{
    struct bytes_writer b = bytes_writer_init(s->bytes, sizeof(s->bytes));
    int r = read_msrs(kvm, s, err);

    if (r < 0)
        return r;
    bytes_put_u32(&b, s->msrs.n);
    for (uint32_t i = 0; i < s->msrs.n; i++) {
        bytes_put_u32(&b, s->msrs.entries[i].index);
        bytes_put_u64(&b, s->msrs.entries[i].data);
    }
    return state_add(w, X86_TAG_MSRS, s->bytes, b.len, err);
}

static int load_msrs(const struct kvm *kvm, const struct state *state, struct scratch *s,
                     struct err *err)
{
    struct bytes_reader r = state_section(state, X86_TAG_MSRS);
    uint32_t n = bytes_get_u32(&r);
    int e;

    if (n > X86_MSRS_MAX)
        return state_bad_section(state, X86_TAG_MSRS, "too many entries", err);
    s->msrs.n = n;
    for (uint32_t i = 0; i < n; i++) {
        s->msrs.entries[i] = (struct kvm_msr_entry){.index = bytes_get_u32(&r)};
        s->msrs.entries[i].data = bytes_get_u64(&r);
        if (s->msrs.entries[i].index == MSR_TSC)
            return state_bad_section(state, X86_TAG_MSRS, "holds the TSC", err);
    }
    if (!bytes_done(&r))
        return state_bad_section(state, X86_TAG_MSRS, "wrong length", err);
    e = kvm_ioctl(kvm->vcpu_fd, KVM_SET_MSRS, &s->msrs, "KVM_SET_MSRS", err);
    if (e < 0)
        return e;
    if ((uint32_t)e != n)
        return err_set(err, ENOTSUP, "KVM_SET_MSRS: this KVM refuses MSR %08x",
                       s->msrs.entries[e].index);
    return 0;
}

static int read_tsc(const struct kvm *kvm, uint64_t *ret_tsc, struct err *err)
{
    int r = x86_msr_get(kvm, MSR_TSC, ret_tsc, err);

    if (r < 0)
        return r;
    return r == 1 ? 0 : err_set(err, ENOTSUP, "KVM_GET_MSRS: the TSC cannot be read");
}

static int save_tsc(const struct kvm *kvm, struct state_writer *w, struct scratch *s,
                    struct err *err)
{
    struct bytes_writer b = bytes_writer_init(s->bytes, sizeof(s->bytes));
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
    return state_add(w, X86_TAG_TSC, s->bytes, b.len, err);
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

    if (r >= 0)
        r = kvm_ioctl(kvm->vcpu_fd, KVM_GET_DEVICE_ATTR, &attr, "reading KVM_VCPU_TSC_OFFSET",
                      err);
    if (r >= 0)
        r = read_tsc(kvm, &now, err);
    if (r < 0)
        return r;
    offset += saved - now;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_SET_DEVICE_ATTR, &attr, "setting KVM_VCPU_TSC_OFFSET", err);
    return r < 0 ? r : 0;
}

static int save_irqchips(const struct kvm *kvm, struct state_writer *w, struct scratch *s,
                         struct err *err)
{
    struct bytes_writer b = bytes_writer_init(s->bytes, sizeof(s->bytes));

    for (uint32_t i = 0; i < N_CHIPS; i++) {
        struct kvm_irqchip chip = {.chip_id = i};
        int r = kvm_ioctl(kvm->vm_fd, KVM_GET_IRQCHIP, &chip, "KVM_GET_IRQCHIP", err);

        if (r < 0)
            return r;
        bytes_put(&b, &chip, sizeof(chip));
    }
    return state_add(w, X86_TAG_IRQCHIPS, s->bytes, b.len, err);
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

int arch_state_save(const struct kvm *kvm, struct state_writer *w, struct err *err)
{
    struct scratch *s = &scratch;
    int cpu = kvm->vcpu_fd;
    struct kvm_mp_state mp;
    struct kvm_regs regs;
    struct kvm_sregs sregs;
    struct kvm_xcrs xcrs;
    struct kvm_debugregs debugregs;
    struct kvm_lapic_state lapic;
    struct kvm_vcpu_events events;
    struct kvm_clock_data clock;
    int r;

#define SAVE(fd, request, tag, blob)                                                           \
    save_blob(fd, request, #request, w, tag, &(blob), sizeof(blob), err)
    r = save_cpuid(kvm, w, s, err);
    /* The MP state first: reading it makes KVM settle pending INIT and SIPI. */
    r = r < 0 ? r : SAVE(cpu, KVM_GET_MP_STATE, X86_TAG_MP, mp);
    r = r < 0 ? r : SAVE(cpu, KVM_GET_REGS, X86_TAG_REGS, regs);
    r = r < 0 ? r : SAVE(cpu, KVM_GET_SREGS, X86_TAG_SREGS, sregs);
    r = r < 0 ? r : save_xsave(kvm, w, s, err);
    r = r < 0 ? r : SAVE(cpu, KVM_GET_XCRS, X86_TAG_XCRS, xcrs);
    r = r < 0 ? r : SAVE(cpu, KVM_GET_DEBUGREGS, X86_TAG_DEBUGREGS, debugregs);
    r = r < 0 ? r : SAVE(cpu, KVM_GET_LAPIC, X86_TAG_LAPIC, lapic);
    r = r < 0 ? r : save_tsc(kvm, w, s, err);
    r = r < 0 ? r : save_msrs(kvm, w, s, err);
    r = r < 0 ? r : SAVE(cpu, KVM_GET_VCPU_EVENTS, X86_TAG_EVENTS, events);
    r = r < 0 ? r : save_irqchips(kvm, w, s, err);
    r = r < 0 ? r : SAVE(kvm->vm_fd, KVM_GET_CLOCK, X86_TAG_CLOCK, clock);
#undef SAVE
    return r;
}

/*
 * The order matters: the local APIC before the MSRs, because the TSC deadline is only taken in
 * that timer mode; the TSC before the MSRs for the same reason; events last of the vCPU,
 * because setting registers clears them; the clock after the TSC it is computed from.
 */
static int load_vcpu(const struct kvm *kvm, const struct state *state, struct err *err)
{
    int cpu = kvm->vcpu_fd;
    struct kvm_mp_state mp;
    struct kvm_regs regs;
    struct kvm_sregs sregs;
    struct kvm_xcrs xcrs;
    struct kvm_debugregs debugregs;
    struct kvm_lapic_state lapic;
    struct kvm_vcpu_events events;
    int r;

#define LOAD(request, tag, blob)                                                               \
    load_blob(cpu, request, #request, state, tag, &(blob), sizeof(blob), err)
    r = LOAD(KVM_SET_MP_STATE, X86_TAG_MP, mp);
    r = r < 0 ? r : LOAD(KVM_SET_REGS, X86_TAG_REGS, regs);
    r = r < 0 ? r : LOAD(KVM_SET_SREGS, X86_TAG_SREGS, sregs);
    r = r < 0 ? r : load_xsave(kvm, state, &scratch, err);
    r = r < 0 ? r : LOAD(KVM_SET_XCRS, X86_TAG_XCRS, xcrs);
    r = r < 0 ? r : LOAD(KVM_SET_DEBUGREGS, X86_TAG_DEBUGREGS, debugregs);
    r = r < 0 ? r : LOAD(KVM_SET_LAPIC, X86_TAG_LAPIC, lapic);
    r = r < 0 ? r : load_tsc(kvm, state, err);
    r = r < 0 ? r : load_msrs(kvm, state, &scratch, err);
    r = r < 0 ? r : LOAD(KVM_SET_VCPU_EVENTS, X86_TAG_EVENTS, events);
    r = r < 0 ? r : load_irqchips(kvm, state, err);
    r = r < 0 ? r : load_clock(kvm, state, err);
#undef LOAD
    return r;
}

/* Features and frequency first, because they decide what the rest may hold. */
int arch_state_load(const struct kvm *kvm, const struct state *state, struct err *err)
{
    int r = load_cpuid(kvm, state, &scratch, err);

    r = r < 0 ? r : load_tsc_khz(kvm, state, err);
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
