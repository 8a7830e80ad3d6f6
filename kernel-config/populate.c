/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the compiler by cc.sh. gcc maps the compiled headers privately and writes to
 * some nine thousand of their pages, each of which faults, is copied by itself and has its
 * translation thrown away; on virtual machines where that is a call to the hypervisor it takes
 * longer than compiling. All of them copied at once (mmap(2), MAP_POPULATE) cost a fraction of
 * that.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    /* Such a mapping of a file is the compiler's of the headers alone. */
    if (fd >= 0 && (prot & PROT_WRITE) && (flags & MAP_PRIVATE))
        flags |= MAP_POPULATE;
    return (void *)syscall(SYS_mmap, addr, size, prot, flags, fd, offset);
}
