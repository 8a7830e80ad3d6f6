/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into compilers (hugepages.sh), which then have their memory in huge pages. gcc
 * takes a hundred megabytes for a small file of the kernel, three quarters of them compiled
 * headers, which it maps privately and writes to; objtool clears 8 MB for each. Page by page
 * that is tens of thousands of faults and of misses of the TLB, and takes a third of the time,
 * more on virtual machines where both are the hypervisor's. Where the machine has no huge pages
 * all is as without.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

static char *map(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    return (char *)syscall(SYS_mmap, addr, size, prot, flags, fd, offset);
}

/* What a huge page cannot begin in is given back: all that is asked for is aligned to one. */
static char *map_aligned(size_t size, int prot, int flags)
{
    char *memory = map(NULL, size + HUGE_PAGE, prot, flags, -1, 0);
    size_t before = (size_t)(-(uintptr_t)memory) % HUGE_PAGE;

    if (memory == MAP_FAILED)
        return memory;
    if (before > 0)
        munmap(memory, before);
    munmap(memory + before + size, HUGE_PAGE - before);
    madvise(memory + before, size, MADV_HUGEPAGE);
    return memory + before;
}

/* A file's private pages are never huge: they are read into memory that can be. */
static char *map_copied(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    char *memory = map(addr, size, prot, flags | MAP_ANONYMOUS, -1, 0);
    ssize_t got;

    if (memory == MAP_FAILED)
        return memory;
    madvise(memory, size, MADV_HUGEPAGE);
    for (size_t n = 0; n < size; n += (size_t)got) {
        got = pread(fd, memory + n, size - n, offset + (off_t)n);
        if (got <= 0) {
            munmap(memory, size);
            return map(addr, size, prot, flags, fd, offset);
        }
    }
    return memory;
}

/* The program's and malloc's calls; what the loader maps itself does not come here. */
void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    if ((prot & PROT_WRITE) && (flags & MAP_PRIVATE) && size >= HUGE_PAGE) {
        if (fd >= 0)
            return map_copied(addr, size, prot, flags, fd, offset);
        if (!addr && size % HUGE_PAGE == 0)
            return map_aligned(size, prot, flags);
    }
    return map(addr, size, prot, flags, fd, offset);
}

/* The zeroed data of the program itself, which is the first object. */
static int advise(struct dl_phdr_info *program, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &program->dlpi_phdr[i];
        uintptr_t from = program->dlpi_addr + part->p_vaddr + part->p_filesz;
        uintptr_t to = program->dlpi_addr + part->p_vaddr + part->p_memsz;

        from = (from + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        if (part->p_type == PT_LOAD && from + HUGE_PAGE <= to)
            madvise((void *)from, to / HUGE_PAGE * HUGE_PAGE - from, MADV_HUGEPAGE);
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    dl_iterate_phdr(advise, NULL);
}
