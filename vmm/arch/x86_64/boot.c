/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 64-bit boot protocol of Linux (Documentation/arch/x86/boot.rst): the kernel is entered at
 * startup_64 in long mode with flat segments, the first GiB mapped one to one, and RSI pointing
 * at struct boot_params. The devicetree and a random seed hang in its setup_data list.
 */
#include <asm/bootparam.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/cpuid.h"
#include "vmm/layout.h"

/* Low memory of a booting guest. */
#define GDT_GPA         0x500u
#define BOOT_PARAMS_GPA 0x7000u
#define STACK_TOP_GPA   0x8000u
#define PML4_GPA        0x9000u
#define PDPT_GPA        0xa000u
#define PD_GPA          0xb000u
#define DTB_GPA         0x10000u
#define SEED_GPA        0x12000u
#define CMDLINE_GPA     0x20000u
#define CMDLINE_MAX     2048u
#define LOW_RAM_END     0x9f000u
#define HIGH_RAM_START  0x100000u

#define SEED_SIZE 64u

#define E820_RAM 1u

#define PAGE_PRESENT 1ull
#define PAGE_WRITE   2ull
#define PAGE_LARGE   0x80ull

#define CR0_PE   1ull
#define CR0_MP   2ull
#define CR0_ET   0x10ull
#define CR0_NE   0x20ull
#define CR0_WP   0x10000ull
#define CR0_PG   0x80000000ull
#define CR4_PAE  0x20ull
#define EFER_LME 0x100ull
#define EFER_LMA 0x400ull

#define MSR_MISC_ENABLE          0x1a0u
#define MISC_ENABLE_FAST_STRING  1ull
#define RFLAGS_RESERVED          2ull
#define BOOT_SELECTOR_CODE       0x10u
#define BOOT_SELECTOR_DATA       0x18u
#define BOOT_SELECTOR_TSS        0x20u
#define TYPE_OF_LOADER_UNDEFINED 0xffu
#define BOOT_PROTOCOL_VERSION    0x020fu
#define BOOT_FLAG                0xaa55u
#define HEADER_MAGIC             0x53726448u /* "HdrS" */
#define KERNEL_ALIGNMENT         0x1000000u

/* Where an x86_64 kernel with KASLR is mapped, and the pages that it maps itself with. */
#define KERNEL_MAP_VA    0xffffffff80000000ull
#define KERNEL_MAP_BYTES (1ull << 30)
#define KERNEL_MAP_PAGE  (2ull << 20)

uint16_t arch_elf_machine(void)
{
    return EM_X86_64;
}

uint64_t arch_kernel_min_gpa(void)
{
    return HIGH_RAM_START;
}

int arch_kernel_draw_move(uint64_t va, uint64_t bytes, uint64_t *ret_move, struct err *err)
{
    uint64_t first = va - KERNEL_MAP_VA;
    uint64_t random;

    if (first > KERNEL_MAP_BYTES || bytes > KERNEL_MAP_BYTES - first)
        return err_set(err, ENOEXEC, "kernel: linked for %#llx", (unsigned long long)va);
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set_errno(err, errno, "getrandom");
    *ret_move =
        random % ((KERNEL_MAP_BYTES - first - bytes) / KERNEL_MAP_PAGE + 1) * KERNEL_MAP_PAGE;
    return 0;
}

/* One node of the setup_data list at gpa, in front of the list so far. */
static int add_setup_data(struct memory *memory, struct boot_params *params, gpa_t gpa,
                          uint32_t type, const void *data, uint32_t len)
{
    struct setup_data node = {.next = params->hdr.setup_data, .type = type, .len = len};

    if (memory_write(memory, gpa, &node, sizeof(node)) < 0 ||
        memory_write(memory, gpa + sizeof(node), data, len) < 0)
        return -EFAULT;
    params->hdr.setup_data = gpa;
    return 0;
}

static int write_boot_params(struct memory *memory, const char *cmdline, const void *dtb,
                             size_t dtb_bytes, struct err *err)
{
    size_t cmdline_bytes = strlen(cmdline) + 1;
    struct boot_params params = {
        .hdr =
            {
                .type_of_loader = TYPE_OF_LOADER_UNDEFINED,
                .boot_flag = BOOT_FLAG,
                .header = HEADER_MAGIC,
                .version = BOOT_PROTOCOL_VERSION,
                /* It draws where it maps memory only if it is told that it was moved. */
                .loadflags = LOADED_HIGH | KASLR_FLAG,
                .cmd_line_ptr = CMDLINE_GPA,
                .cmdline_size = (uint32_t)cmdline_bytes,
                .kernel_alignment = KERNEL_ALIGNMENT,
            },
        .e820_entries = 2,
        .e820_table =
            {
                {0, LOW_RAM_END, E820_RAM},
                {HIGH_RAM_START, LAYOUT_VMGENID_GPA(memory->size) - HIGH_RAM_START, E820_RAM},
            },
    };
    uint8_t seed[SEED_SIZE];

    if (cmdline_bytes > CMDLINE_MAX)
        return err_set(err, EINVAL, "the kernel command line is longer than %u bytes",
                       CMDLINE_MAX);
    if (dtb_bytes > SEED_GPA - DTB_GPA - sizeof(struct setup_data))
        return err_set(err, E2BIG, "the devicetree does not fit in its place");
    if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return err_set_errno(err, errno, "getrandom");
    if (memory_write(memory, CMDLINE_GPA, cmdline, cmdline_bytes) < 0 ||
        add_setup_data(memory, &params, SEED_GPA, SETUP_RNG_SEED, seed, sizeof(seed)) < 0 ||
        add_setup_data(memory, &params, DTB_GPA, SETUP_DTB, dtb, (uint32_t)dtb_bytes) < 0 ||
        memory_write(memory, BOOT_PARAMS_GPA, &params, sizeof(params)) < 0)
        return err_set(err, EFAULT, "boot data lies outside guest memory");
    return 0;
}

/* The first GiB one to one, in 2-MiB pages. */
static int write_page_tables(struct memory *memory, struct err *err)
{
    uint64_t pml4 = PDPT_GPA | PAGE_PRESENT | PAGE_WRITE;
    uint64_t pdpt = PD_GPA | PAGE_PRESENT | PAGE_WRITE;
    uint64_t pd[512];

    for (uint64_t i = 0; i < 512; i++)
        pd[i] = i << 21 | PAGE_PRESENT | PAGE_WRITE | PAGE_LARGE;
    if (memory_write(memory, PML4_GPA, &pml4, sizeof(pml4)) < 0 ||
        memory_write(memory, PDPT_GPA, &pdpt, sizeof(pdpt)) < 0 ||
        memory_write(memory, PD_GPA, pd, sizeof(pd)) < 0)
        return err_set(err, EFAULT, "page tables lie outside guest memory");
    return 0;
}

static struct kvm_segment flat_segment(uint16_t selector, bool code)
{
    return (struct kvm_segment){
        .limit = 0xffffffff,
        .selector = selector,
        .type = code ? 11 : 3,
        .present = 1,
        .db = code ? 0 : 1,
        .l = code ? 1 : 0,
        .s = 1,
        .g = 1,
    };
}

static int write_gdt(struct memory *memory, struct err *err)
{
    /* Null, unused, 64-bit code, data, and a TSS of 16 bytes that nothing uses. */
    static const uint64_t gdt[] = {
        0, 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00008b0000000067, 0};

    if (memory_write(memory, GDT_GPA, gdt, sizeof(gdt)) < 0)
        return err_set(err, EFAULT, "the GDT lies outside guest memory");
    return 0;
}

static int set_registers(const struct kvm *kvm, uint64_t entry_gpa, struct err *err)
{
    struct kvm_segment data = flat_segment(BOOT_SELECTOR_DATA, false);
    struct kvm_regs regs = {
        .rip = entry_gpa,
        .rsi = BOOT_PARAMS_GPA,
        .rsp = STACK_TOP_GPA,
        .rbp = STACK_TOP_GPA,
        .rflags = RFLAGS_RESERVED,
    };
    struct kvm_sregs sregs;
    int r = kvm_ioctl(kvm->vcpu_fd, KVM_GET_SREGS, &sregs, "KVM_GET_SREGS", err);

    if (r < 0)
        return r;
    sregs.cs = flat_segment(BOOT_SELECTOR_CODE, true);
    sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = data;
    sregs.tr = (struct kvm_segment){
        .limit = 0x67, .selector = BOOT_SELECTOR_TSS, .type = 11, .present = 1};
    sregs.gdt.base = GDT_GPA;
    sregs.gdt.limit = 6 * 8 - 1;
    sregs.idt.base = 0;
    sregs.idt.limit = 0;
    sregs.cr3 = PML4_GPA;
    sregs.cr0 = CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_PG;
    sregs.cr4 = CR4_PAE;
    sregs.efer = EFER_LME | EFER_LMA;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_SET_SREGS, &sregs, "KVM_SET_SREGS", err);
    return r < 0 ? r : kvm_ioctl(kvm->vcpu_fd, KVM_SET_REGS, &regs, "KVM_SET_REGS", err);
}

/*
 * Makes the features of the vCPU final. XCR0 is set to what the guest will set it to anyway:
 * where a nested host does not see the guest's XSETBV, AVX would fault in user space else.
 */
static int set_features(const struct kvm *kvm, struct err *err)
{
    /* Laid out as struct kvm_msrs with one entry. */
    struct {
        uint32_t n;
        uint32_t padding;
        struct kvm_msr_entry entry;
    } msrs = {
        .n = 1,
        .entry = {.index = MSR_MISC_ENABLE, .data = MISC_ENABLE_FAST_STRING},
    };
    struct kvm_xcrs xcrs = {.nr_xcrs = 1};
    struct x86_cpuid cpuid;
    int r = x86_cpuid_host(kvm->dev_fd, &cpuid, err);

    if (r < 0)
        return r;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_SET_CPUID2, &cpuid, "KVM_SET_CPUID2", err);
    if (r < 0)
        return r;
    xcrs.xcrs[0].value = x86_cpuid_xcr0(&cpuid);
    if (xcrs.xcrs[0].value != 0) {
        r = kvm_ioctl(kvm->vcpu_fd, KVM_SET_XCRS, &xcrs, "KVM_SET_XCRS", err);
        if (r < 0)
            return r;
    }
    r = kvm_ioctl(kvm->vcpu_fd, KVM_SET_MSRS, &msrs, "KVM_SET_MSRS", err);
    return r < 0 ? r : 0;
}

int arch_boot(const struct kvm *kvm, struct memory *memory, gpa_t entry_gpa,
              const char *cmdline, const void *dtb, size_t dtb_bytes, struct err *err)
{
    int r = set_features(kvm, err);

    if (r < 0)
        return r;
    r = write_boot_params(memory, cmdline, dtb, dtb_bytes, err);
    if (r < 0)
        return r;
    r = write_page_tables(memory, err);
    if (r < 0)
        return r;
    r = write_gdt(memory, err);
    return r < 0 ? r : set_registers(kvm, entry_gpa, err);
}
