/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU that a guest sees, and the check before a restore.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)

#include "vmm/arch/x86_64/cpuid.h"

#define BIT(n) (1u << (n))

/* As KVM would list a CPU of "GenuineTest" with everything in the words that matter. */
static struct x86_cpuid full_cpu(void)
{
    struct x86_cpuid c = {
        .n_entries = 8,
        .entries =
            {
                {.function = 0,
                 .eax = 0x1f,
                 .ebx = 0x756e6547,
                 .edx = 0x54656e69,
                 .ecx = 0x21747365},
                {.function = 1, .eax = 0x000306a9, .ebx = 0x12345678, .ecx = ~0u, .edx = ~0u},
                {.function = 7, .ebx = ~0u, .ecx = ~0u, .edx = ~0u},
                {.function = 0xb, .ebx = 4},
                {.function = 0xd, .index = 0, .eax = 0x602e7},
                {.function = 0xd, .index = 17, .eax = 64},
                {.function = 0x40000001, .eax = ~0u, .edx = ~0u},
                {.function = 0x80000007, .edx = ~0u},
            },
    };

    return c;
}

static const struct kvm_cpuid_entry2 *find(const struct x86_cpuid *c, uint32_t leaf,
                                           uint32_t index)
{
    for (uint32_t i = 0; i < c->n_entries; i++) {
        if (c->entries[i].function == leaf && c->entries[i].index == index)
            return &c->entries[i];
    }
    return NULL;
}

static void hides_what_cannot_be_restored(void **unused)
{
    struct x86_cpuid c = full_cpu();

    (void)unused;
    x86_cpuid_filter(&c);
    /* VMX, MONITOR and OSXSAVE are gone; HYPERVISOR and the TSC deadline timer are there. */
    assert_int_equal(find(&c, 1, 0)->ecx & (BIT(5) | BIT(3) | BIT(27)), 0);
    assert_int_equal(find(&c, 1, 0)->ecx & (BIT(31) | BIT(24)), BIT(31) | BIT(24));
    /* One logical CPU with APIC ID 0. */
    assert_int_equal(find(&c, 1, 0)->ebx, 0x00015678);
    /* TSC_ADJUST, SGX, RTM; CET, AMX. */
    assert_int_equal(find(&c, 7, 0)->ebx & (BIT(1) | BIT(2) | BIT(11)), 0);
    assert_int_equal(find(&c, 7, 0)->ecx & BIT(7), 0);
    assert_int_equal(find(&c, 7, 0)->edx & BIT(24), 0);
    /* Topology, and the state of AMX. */
    assert_null(find(&c, 0xb, 0));
    assert_null(find(&c, 0xd, 17));
    assert_int_equal(x86_cpuid_xcr0(&c), 0x2e7);
    /* The invariant TSC. */
    assert_int_equal(find(&c, 0x80000007, 0)->edx & BIT(8), 0);
}

/* What is left of leaves that are all ones: a feature more, or one less, is one here. */
static const struct kvm_cpuid_entry2 left[] = {
    {.function = 1, .eax = ~0u, .ebx = 0x0001ffff, .ecx = 0xf7fb7a03, .edx = 0x4f9faf7f},
    {.function = 4, .eax = 0x00003fff, .ebx = ~0u, .ecx = ~0u, .edx = ~0u},
    {.function = 7, .eax = ~0u, .ebx = 0xfdffb7e9, .ecx = 0x9efeff4f, .edx = 0xfca7ffff},
    {.function = 0xd, .eax = 0x000002e7, .ebx = ~0u, .ecx = ~0u},
    {.function = 0xd, .index = 1, .eax = 0xffffffef, .ebx = ~0u, .edx = ~0u},
    {.function = 0xd, .index = 2, .eax = ~0u, .ebx = ~0u, .ecx = ~0u, .edx = ~0u},
    {.function = 0xd, .index = 9, .eax = ~0u, .ebx = ~0u, .ecx = ~0u, .edx = ~0u},
    {.function = 0x40000001, .eax = 0x0100004b, .ebx = ~0u, .ecx = ~0u},
    {.function = 0x80000001, .eax = ~0u, .ebx = ~0u, .ecx = 0xc6374bfb, .edx = ~0u},
    {.function = 0x80000007, .eax = ~0u, .ebx = ~0u, .ecx = ~0u, .edx = 0xfffffeff},
    {.function = 0x80000008, .eax = ~0u, .ebx = ~0u, .edx = ~0u},
};
/* Of these nothing is left: leaves, and components of 0xd. */
static const uint32_t gone[] = {
    0x5,  0xa,  0xb,  0x12,       0x14,       0x15,       0x16,       0x19,       0x1c,
    0x1d, 0x1e, 0x1f, 0x8000000a, 0x8000001b, 0x8000001d, 0x8000001e, 0x8000001f, 0x80000022};
static const uint32_t gone_components[] = {3, 4, 8, 10, 11, 12, 17, 18, 32, 63};

static void add_full(struct x86_cpuid *c, uint32_t leaf, uint32_t index)
{
    c->entries[c->n_entries++] = (struct kvm_cpuid_entry2){
        .function = leaf, .index = index, .eax = ~0u, .ebx = ~0u, .ecx = ~0u, .edx = ~0u};
}

static void a_guest_is_told_this_and_no_more(void **unused)
{
    struct x86_cpuid c = {0};

    (void)unused;
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        add_full(&c, left[i].function, left[i].index);
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        add_full(&c, gone[i], 0);
    for (size_t i = 0; i < sizeof(gone_components) / sizeof(gone_components[0]); i++)
        add_full(&c, 0xd, gone_components[i]);
    x86_cpuid_filter(&c);
    assert_int_equal(c.n_entries, sizeof(left) / sizeof(left[0]));
    for (size_t i = 0; i < c.n_entries; i++)
        if (memcmp(&c.entries[i], &left[i], sizeof(left[i])) != 0)
            fail_msg("leaf %#x.%u: %#x %#x %#x %#x", c.entries[i].function, c.entries[i].index,
                     c.entries[i].eax, c.entries[i].ebx, c.entries[i].ecx, c.entries[i].edx);
}

static void filter_is_idempotent(void **unused)
{
    struct x86_cpuid c = full_cpu();
    struct x86_cpuid again;

    (void)unused;
    x86_cpuid_filter(&c);
    again = c;
    x86_cpuid_filter(&again);
    assert_int_equal(c.n_entries, again.n_entries);
    assert_memory_equal(c.entries, again.entries, c.n_entries * sizeof(c.entries[0]));
}

static void check_names_what_is_missing(void **unused)
{
    struct x86_cpuid want = full_cpu();
    struct x86_cpuid have = full_cpu();
    struct err err = {0};

    (void)unused;
    assert_int_equal(x86_cpuid_check(&want, &have, &err), 0);
    assert_int_equal(err.code, 0);

    have.entries[2].ebx &= ~BIT(5);
    assert_int_equal(x86_cpuid_check(&want, &have, &err), -95);
    assert_string_equal(err.message, "this CPU lacks AVX2, which the snapshot's guest uses");

    /* More than what the guest was given is fine. */
    assert_int_equal(x86_cpuid_check(&have, &want, NULL), 0);

    have = full_cpu();
    have.entries[2].edx &= ~BIT(9);
    err = (struct err){0};
    assert_int_equal(x86_cpuid_check(&want, &have, &err), -95);
    assert_non_null(strstr(err.message, "bit 9 of CPUID 7.edx"));

    have = full_cpu();
    have.entries[0].ebx++;
    err = (struct err){0};
    assert_int_equal(x86_cpuid_check(&want, &have, &err), -95);
    assert_non_null(strstr(err.message, "by GenuineTest!, this one is by HenuineTest!"));
}

/* A kernel or a library uses what it found there before the snapshot. */
static void check_looks_at_every_part_of_leaf_7(void **unused)
{
    static const struct kvm_cpuid_entry2 parts[] = {
        {.function = 7, .index = 1, .eax = BIT(4)}, /* AVX-VNNI */
        {.function = 7, .index = 1, .edx = BIT(4)}, /* AVX-VNNI-INT8 */
        {.function = 7, .index = 2, .edx = BIT(4)}, /* BHI_CTRL: a bit of SPEC_CTRL */
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct x86_cpuid want = full_cpu();
        struct x86_cpuid have = full_cpu();
        char with[1024], without[1024];

        want.entries[want.n_entries++] = parts[i];
        assert_int_equal(x86_cpuid_check(&want, &have, NULL), -95);
        assert_int_equal(x86_cpuid_check(&have, &want, NULL), 0);
        assert_int_equal(x86_cpuid_describe(&want, with, sizeof(with), NULL), 0);
        assert_int_equal(x86_cpuid_describe(&have, without, sizeof(without), NULL), 0);
        assert_string_not_equal(with, without);
    }
}

static void encodes_and_decodes(void **unused)
{
    struct x86_cpuid c = full_cpu();
    struct x86_cpuid back;
    uint8_t bytes[4096];
    struct bytes_writer w = bytes_writer_init(bytes, sizeof(bytes));
    struct bytes_reader r;

    (void)unused;
    x86_cpuid_encode(&c, &w);
    r = bytes_reader_init(bytes, w.len);
    assert_int_equal(x86_cpuid_decode(&r, &back), 0);
    assert_memory_equal(&c, &back, sizeof(c));
    for (size_t len = 0; len < w.len; len++) {
        r = bytes_reader_init(bytes, len);
        assert_int_equal(x86_cpuid_decode(&r, &back), -22);
    }
    memset(bytes, 0xff, sizeof(bytes));
    r = bytes_reader_init(bytes, sizeof(bytes));
    assert_int_equal(x86_cpuid_decode(&r, &back), -22);
}

static void describes_in_one_line(void **unused)
{
    struct x86_cpuid c = full_cpu();
    char line[512];
    struct err err = {0};

    (void)unused;
    assert_int_equal(x86_cpuid_describe(&c, line, sizeof(line), &err), 0);
    assert_non_null(strstr(line, "vendor=GenuineTest! family=6 model=58 stepping=9 features="));
    assert_null(strchr(line, '\n'));
    assert_int_equal(x86_cpuid_describe(&c, line, 40, &err), -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guest_is_told_this_and_no_more),
        cmocka_unit_test(hides_what_cannot_be_restored),
        cmocka_unit_test(filter_is_idempotent),
        cmocka_unit_test(check_names_what_is_missing),
        cmocka_unit_test(check_looks_at_every_part_of_leaf_7),
        cmocka_unit_test(encodes_and_decodes),
        cmocka_unit_test(describes_in_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
