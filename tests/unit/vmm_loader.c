/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel loader on good, damaged and hostile ELF files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <elf.h>

#include "base/fd.h"
#include "vmm/loader.h"

#define RAM_BYTES (4u << 20)
#define LOAD_GPA  0x200000u
#define LOAD_VA   0xffffffff81000000ull

/* A kernel of one segment whose file part is "kernel", and eight bytes of relocations. */
struct file {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    char content[6];
    char names[sizeof(LOADER_RELOCATIONS_SECTION)];
    Elf64_Shdr sections[2];
    char table[8];
};

static struct memory memory;
static void *mapping;

static int set_up(void **unused)
{
    (void)unused;
    mapping = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return -1;
    memory_init(&memory, mapping, RAM_BYTES);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    return munmap(mapping, RAM_BYTES);
}

static struct file good_file(void)
{
    struct file f = {
        .header =
            {
                .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                            EV_CURRENT},
                .e_type = ET_EXEC,
                .e_machine = arch_elf_machine(),
                .e_version = EV_CURRENT,
                .e_entry = LOAD_GPA + 2,
                .e_phoff = offsetof(struct file, segment),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 1,
                .e_shoff = offsetof(struct file, sections),
                .e_shentsize = sizeof(Elf64_Shdr),
                .e_shnum = 2,
                .e_shstrndx = 1,
            },
        .segment =
            {
                .p_type = PT_LOAD,
                .p_offset = offsetof(struct file, content),
                .p_vaddr = LOAD_VA,
                .p_paddr = LOAD_GPA,
                .p_filesz = 6,
                .p_memsz = 8192,
            },
        .content = {'k', 'e', 'r', 'n', 'e', 'l'},
        .names = LOADER_RELOCATIONS_SECTION,
        .sections = {{.sh_offset = offsetof(struct file, table), .sh_size = 8},
                     {.sh_name = 1, .sh_offset = offsetof(struct file, names)}},
    };

    return f;
}

static int load(const struct file *f, size_t len, struct loader_kernel *ret_kernel,
                struct err *err)
{
    int fd = memfd_create("kernel", MFD_CLOEXEC);
    int r;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, f, len), 0);
    r = loader_load_kernel(fd, &memory, RAM_BYTES - 4096, ret_kernel, err);
    fd_close(&fd);
    return r;
}

static void loads_segments(void **unused)
{
    struct file f = good_file();
    struct err err = {0};
    struct loader_kernel kernel;
    char found[7] = "";

    (void)unused;
    assert_int_equal(load(&f, sizeof(f), &kernel, &err), 0);
    assert_int_equal(kernel.entry_gpa, LOAD_GPA + 2);
    assert_int_equal(kernel.gpa, LOAD_GPA);
    assert_int_equal(kernel.va, LOAD_VA);
    assert_int_equal(kernel.bytes, 8192);
    assert_int_equal(kernel.relocations_offset, offsetof(struct file, table));
    assert_int_equal(kernel.relocations_bytes, 8);
    assert_int_equal(memory_read(&memory, LOAD_GPA, found, 7), 0);
    assert_memory_equal(found, "kernel", 7);
}

static void loads_what_has_no_relocations(void **unused)
{
    struct loader_kernel kernel;
    struct file f = good_file();

    (void)unused;
    f.names[1] = 'S';
    assert_int_equal(load(&f, sizeof(f), &kernel, NULL), 0);
    assert_int_equal(kernel.relocations_bytes, 0);
    f.header.e_shnum = 0;
    assert_int_equal(load(&f, sizeof(f), &kernel, NULL), 0);
    assert_int_equal(kernel.relocations_bytes, 0);
}

static void expect_refused(const struct file *f, size_t len, const char *says)
{
    struct err err = {0};
    struct loader_kernel kernel = {.entry_gpa = 77};

    assert_true(load(f, len, &kernel, &err) < 0);
    assert_non_null(strstr(err.message, says));
    assert_int_equal(kernel.entry_gpa, 77);
}

static void refuses_what_is_no_kernel(void **unused)
{
    struct file f;

    (void)unused;
#define WITH(change, says)                                                                     \
    do {                                                                                       \
        f = good_file();                                                                       \
        change;                                                                                \
        expect_refused(&f, sizeof(f), says);                                                   \
    } while (0)
    WITH(f.header.e_ident[0] = 0, "not an ELF file");
    WITH(f.header.e_ident[EI_CLASS] = ELFCLASS32, "ELF64");
    WITH(f.header.e_ident[EI_DATA] = ELFDATA2MSB, "ELF64");
    WITH(f.header.e_type = ET_REL, "no executable");
    WITH(f.header.e_machine = 1, "machine 1");
    WITH(f.header.e_phentsize = 1, "program headers of 1 bytes");
    WITH(f.header.e_phnum = 0, "0 program headers");
    WITH(f.header.e_phnum = 0xffff, "65535 program headers");
    WITH(f.header.e_phoff = sizeof(f), "program headers");
    WITH(f.header.e_phoff = UINT64_MAX, "program headers");
    WITH(f.header.e_entry = LOAD_GPA + 6, "entry point");
    WITH(f.segment.p_type = PT_NOTE, "entry point");
    WITH(f.segment.p_filesz = 8193, "longer in the file");
    WITH(f.segment.p_offset = sizeof(f), "outside the file");
    WITH(f.segment.p_offset = UINT64_MAX, "outside the file");
    WITH((f.segment.p_filesz = UINT64_MAX, f.segment.p_memsz = UINT64_MAX), "outside the file");
    WITH(f.segment.p_paddr = 0x1000, "below");
    WITH(f.segment.p_paddr = RAM_BYTES - 4096, "outside guest memory");
    WITH(f.segment.p_paddr = UINT64_MAX - 100, "outside guest memory");
    WITH(f.segment.p_memsz = UINT64_MAX - 100, "outside guest memory");
    WITH(f.header.e_shentsize = 1, "section headers of 1 bytes");
    WITH(f.header.e_shnum = 0xffff, "65535 section headers");
    WITH(f.header.e_shstrndx = 2, "no section 2");
    WITH(f.header.e_shoff = sizeof(f), "section headers");
    WITH(f.header.e_shoff = UINT64_MAX, "section");
    WITH(f.sections[0].sh_offset = sizeof(f) + 1, "relocations lie outside");
    WITH(f.sections[0].sh_offset = UINT64_MAX, "relocations lie outside");
    WITH(f.sections[0].sh_size = 9, "relocations lie outside");
    WITH(f.sections[0].sh_size = UINT64_MAX, "relocations lie outside");
#undef WITH
}

static void refuses_every_truncation(void **unused)
{
    struct file f = good_file();
    struct loader_kernel kernel;

    (void)unused;
    for (size_t len = 0; len < sizeof(f); len++)
        assert_true(load(&f, len, &kernel, NULL) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_segments),
        cmocka_unit_test(loads_what_has_no_relocations),
        cmocka_unit_test(refuses_what_is_no_kernel),
        cmocka_unit_test(refuses_every_truncation),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
