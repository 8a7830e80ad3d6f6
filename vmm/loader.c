/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/loader.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

static int read_exactly(int fd, void *data, size_t len, uint64_t offset, const char *what,
                        struct err *err)
{
    ssize_t n = fd_pread_full(fd, data, len, offset);

    if (n < 0)
        return err_set_errno(err, (int)-n, "reading the kernel's %s", what);
    if ((size_t)n != len)
        return err_set(err, ENOEXEC, "kernel: the file ends inside its %s", what);
    return 0;
}

static int check_header(const Elf64_Ehdr *h, struct err *err)
{
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return err_set(err, ENOEXEC, "kernel: not an ELF file");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_ident[EI_VERSION] != EV_CURRENT)
        return err_set(err, ENOEXEC, "kernel: not a little-endian ELF64 file");
    if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
        return err_set(err, ENOEXEC, "kernel: ELF type %u is no executable", h->e_type);
    if (h->e_machine != arch_elf_machine())
        return err_set(err, ENOEXEC, "kernel: made for ELF machine %u, this one is %u",
                       h->e_machine, arch_elf_machine());
    if (h->e_phentsize != sizeof(Elf64_Phdr))
        return err_set(err, ENOEXEC, "kernel: program headers of %u bytes", h->e_phentsize);
    if (h->e_phnum == 0 || h->e_phnum > LOADER_SEGMENTS_MAX)
        return err_set(err, ENOEXEC, "kernel: %u program headers", h->e_phnum);
    return 0;
}

static int check_segment(const Elf64_Phdr *p, uint64_t file_bytes, uint64_t limit_gpa,
                         struct err *err)
{
    if (p->p_filesz > p->p_memsz)
        return err_set(err, ENOEXEC, "kernel: a segment is longer in the file than in memory");
    if (p->p_offset > file_bytes || p->p_filesz > file_bytes - p->p_offset)
        return err_set(err, ENOEXEC, "kernel: a segment lies outside the file");
    if (p->p_paddr < arch_kernel_min_gpa())
        return err_set(err, ENOEXEC, "kernel: a segment loads at %#llx, below %#llx",
                       (unsigned long long)p->p_paddr,
                       (unsigned long long)arch_kernel_min_gpa());
    if (p->p_paddr > limit_gpa || p->p_memsz > limit_gpa - p->p_paddr)
        return err_set(err, ENOMEM, "kernel: a segment ends at %#llx, outside guest memory",
                       (unsigned long long)(p->p_paddr + p->p_memsz));
    return 0;
}

/* Guest memory is fresh, so the part of a segment that is not in the file is zero already. */
static int load_segment(int fd, const Elf64_Phdr *p, struct memory *memory, struct err *err)
{
    void *host = memory_writable(memory, p->p_paddr, p->p_filesz);

    if (!host)
        return err_set(err, ENOMEM, "kernel: a segment lies outside guest memory");
    return read_exactly(fd, host, p->p_filesz, p->p_offset, "segments", err);
}

/* The kernel's extent so far with one more segment, all of them at one distance. */
static int note_segment(struct loader_kernel *kernel, const Elf64_Phdr *p, struct err *err)
{
    uint64_t end = p->p_paddr + p->p_memsz;

    if (kernel->bytes == 0) {
        kernel->gpa = p->p_paddr;
        kernel->va = p->p_vaddr;
    }
    if (p->p_paddr < kernel->gpa || p->p_vaddr - p->p_paddr != kernel->va - kernel->gpa)
        return err_set(err, ENOEXEC, "kernel: its segments are not one block");
    if (end - kernel->gpa > kernel->bytes)
        kernel->bytes = end - kernel->gpa;
    return 0;
}

static int read_section(int fd, const Elf64_Ehdr *h, unsigned index, Elf64_Shdr *ret_section,
                        struct err *err)
{
    uint64_t offset = h->e_shoff + index * sizeof(*ret_section);

    if (index >= h->e_shnum || offset < h->e_shoff)
        return err_set(err, ENOEXEC, "kernel: it has no section %u", index);
    return read_exactly(fd, ret_section, sizeof(*ret_section), offset, "section headers", err);
}

/* Whether that is the section's name; false where its name lies outside the file. */
static bool is_named(int fd, const Elf64_Shdr *names, const Elf64_Shdr *section)
{
    char name[sizeof(LOADER_RELOCATIONS_SECTION)];
    uint64_t offset = names->sh_offset + section->sh_name;

    return offset >= names->sh_offset &&
           fd_pread_full(fd, name, sizeof(name), offset) == (ssize_t)sizeof(name) &&
           memcmp(name, LOADER_RELOCATIONS_SECTION, sizeof(name)) == 0;
}

static int find_relocations(int fd, const Elf64_Ehdr *h, uint64_t file_bytes,
                            struct loader_kernel *kernel, struct err *err)
{
    Elf64_Shdr names, section;
    int r;

    if (h->e_shnum == 0)
        return 0;
    if (h->e_shentsize != sizeof(section) || h->e_shnum > LOADER_SECTIONS_MAX)
        return err_set(err, ENOEXEC, "kernel: %u section headers of %u bytes", h->e_shnum,
                       h->e_shentsize);
    r = read_section(fd, h, h->e_shstrndx, &names, err);
    for (unsigned i = 0; r >= 0 && i < h->e_shnum; i++) {
        r = read_section(fd, h, i, &section, err);
        if (r < 0)
            return r;
        if (!is_named(fd, &names, &section))
            continue;
        if (section.sh_offset > file_bytes || section.sh_size > file_bytes - section.sh_offset)
            return err_set(err, ENOEXEC, "kernel: its relocations lie outside the file");
        kernel->relocations_offset = section.sh_offset;
        kernel->relocations_bytes = section.sh_size;
    }
    return r;
}

static int load_segments(int fd, const Elf64_Ehdr *h, uint64_t file_bytes, uint64_t limit_gpa,
                         struct memory *memory, struct loader_kernel *kernel, struct err *err)
{
    Elf64_Phdr segments[LOADER_SEGMENTS_MAX];
    bool entry_is_loaded = false;
    int r = read_exactly(fd, segments, h->e_phnum * sizeof(segments[0]), h->e_phoff,
                         "program headers", err);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        const Elf64_Phdr *p = &segments[i];

        if (p->p_type != PT_LOAD || p->p_memsz == 0)
            continue;
        r = check_segment(p, file_bytes, limit_gpa, err);
        if (r < 0)
            return r;
        r = note_segment(kernel, p, err);
        if (r < 0)
            return r;
        r = load_segment(fd, p, memory, err);
        if (r < 0)
            return r;
        if (h->e_entry >= p->p_paddr && h->e_entry - p->p_paddr < p->p_filesz)
            entry_is_loaded = true;
    }
    if (!entry_is_loaded)
        return err_set(err, ENOEXEC, "kernel: its entry point %#llx is in no segment",
                       (unsigned long long)h->e_entry);
    kernel->entry_gpa = h->e_entry;
    return 0;
}

int loader_load_kernel(int kernel_fd, struct memory *memory, uint64_t limit_gpa,
                       struct loader_kernel *ret_kernel, struct err *err)
{
    struct loader_kernel kernel = {0};
    Elf64_Ehdr header;
    struct stat st;
    int r;

    if (fstat(kernel_fd, &st) < 0)
        return err_set_errno(err, errno, "kernel");
    r = read_exactly(kernel_fd, &header, sizeof(header), 0, "header", err);
    if (r < 0)
        return r;
    r = check_header(&header, err);
    if (r < 0)
        return r;
    r = load_segments(kernel_fd, &header, (uint64_t)st.st_size, limit_gpa, memory, &kernel,
                      err);
    if (r < 0)
        return r;
    r = find_relocations(kernel_fd, &header, (uint64_t)st.st_size, &kernel, err);
    if (r < 0)
        return r;
    *ret_kernel = kernel;
    return 0;
}
