/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: mappings, their protection and advice, files that are only memory.
 */
#include "tests/calls/calls.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static void *map(size_t size, int protection, int flags)
{
    return mmap(NULL, size, protection, flags | MAP_ANONYMOUS, -1, 0);
}

static int memory_map(void)
{
    char *at = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    CHECK(at != MAP_FAILED && at[PAGE] == 0);
    at[PAGE] = 'x';
    TRY(munmap(at, PAGE));
    at = mremap(at + PAGE, 7 * PAGE, 32 * PAGE, MREMAP_MAYMOVE);
    CHECK(at != MAP_FAILED && at[0] == 'x');
    return 0;
}

static int memory_shared(void)
{
    char *at = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);
    pid_t pid;

    CHECK(at != MAP_FAILED);
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        at[0] = 'x';
        probe_child_end(true);
    }
    TRY_PROBE(probe_child_wait(pid));
    CHECK(at[0] == 'x');
    return 0;
}

static int memory_file(void)
{
    int fd = open("a", O_CREAT | O_RDWR, 0644);
    char text[4] = "";
    char *at;

    TRY(fd);
    TRY(ftruncate(fd, PAGE));
    at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED);
    memcpy(at, "abc", 3);
    TRY(msync(at, PAGE, MS_SYNC));
    CHECK(pread(fd, text, 3, 0) == 3 && strcmp(text, "abc") == 0);
    return 0;
}

static int memory_fixed(void)
{
    char *at = map(PAGE, PROT_READ, MAP_PRIVATE);

    CHECK(at != MAP_FAILED);
    CHECK(mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
              MAP_FAILED &&
          errno == EEXIST);
    return 0;
}

static int memory_protect(void)
{
    char *at = map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    int status;
    pid_t pid;

    CHECK(at != MAP_FAILED);
    TRY(mprotect(at, PAGE, PROT_READ));
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        at[0] = 'x';
        probe_child_end(true);
    }
    TRY(waitpid(pid, &status, 0));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    return 0;
}

/* What a compiler at run time does: mov $42, %eax; ret. */
static int memory_code(void)
{
    const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
    void *at = map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    int (*function)(void);

    CHECK(at != MAP_FAILED);
    memcpy(at, code, sizeof(code));
    TRY(mprotect(at, PAGE, PROT_READ | PROT_EXEC));
    memcpy(&function, &at, sizeof(function));
    CHECK(function() == 42);
    return 0;
}

static int memory_code_writable(void)
{
    void *at = map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);

    return at == MAP_FAILED ? -errno : 0;
}

static int memory_lock(void)
{
    char *at = map(1u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    CHECK(at != MAP_FAILED);
    TRY(mlock(at, 1u << 20));
    return munlock(at, 1u << 20) < 0 ? -errno : 0;
}

static int memory_lock_much(void)
{
    void *at = map(64u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    CHECK(at != MAP_FAILED);
    return mlock(at, 64u << 20) < 0 ? -errno : 0;
}

static int memory_advise(void)
{
    unsigned char there[4];
    char *at = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    CHECK(at != MAP_FAILED);
    TRY(madvise(at, 4 * PAGE, MADV_POPULATE_WRITE));
    TRY(mincore(at, 4 * PAGE, there));
    CHECK(there[3] & 1);
    at[0] = 'x';
    TRY(madvise(at, 4 * PAGE, MADV_DONTNEED));
    CHECK(at[0] == 0);
    return madvise(at, 4 * PAGE, MADV_FREE) < 0 ? -errno : 0;
}

static int advise(int advice)
{
    void *at = map(4u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    CHECK(at != MAP_FAILED);
    return madvise(at, 4u << 20, advice) < 0 ? -errno : 0;
}

static int memory_huge_advice(void)
{
    return advise(MADV_HUGEPAGE);
}

static int memory_merge(void)
{
    return advise(MADV_MERGEABLE);
}

static int memory_huge(void)
{
    return map(2u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_HUGETLB) == MAP_FAILED
               ? -errno
               : 0;
}

static int memory_memfd(void)
{
    int fd = memfd_create("calls", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    TRY(fd);
    CHECK(write(fd, "x", 1) == 1);
    TRY(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK));
    CHECK(write(fd, "x", 1) < 0 && errno == EPERM);
    return 0;
}

static int memory_barrier(void)
{
    TRY(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0 ? -errno : 0;
}

static int memory_seal(void)
{
    void *at = map(PAGE, PROT_READ, MAP_PRIVATE);

    CHECK(at != MAP_FAILED);
    TRY(syscall(462, at, PAGE, 0));
    CHECK(munmap(at, PAGE) < 0 && errno == EPERM);
    return 0;
}

static int memory_brk(void)
{
    char *end = sbrk(0);

    TRY(brk(end + 16 * PAGE));
    end[8 * PAGE] = 'x';
    return brk(end) < 0 ? -errno : 0;
}

static int memory_of_another(void)
{
    char from[4] = "abc";
    char to[4];
    struct iovec remote = {from, 3};
    struct iovec local = {to, 3};

    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 ? -errno : 0;
}

static const struct probe probes[] = {
    PROBE("mmap munmap mremap", memory_map),
    PROBE("mmap MAP_SHARED", memory_shared),
    PROBE("mmap of a file, msync", memory_file),
    PROBE("mmap MAP_FIXED_NOREPLACE", memory_fixed),
    PROBE("mprotect", memory_protect),
    PROBE("code made at run time", memory_code),
    PROBE("memory writable and executable", memory_code_writable),
    PROBE("mlock munlock", memory_lock),
    PROBE("mlock of 64 MiB", memory_lock_much),
    PROBE("madvise mincore", memory_advise),
    PROBE("madvise MADV_HUGEPAGE", memory_huge_advice),
    PROBE("madvise MADV_MERGEABLE", memory_merge),
    PROBE("mmap MAP_HUGETLB", memory_huge),
    PROBE("memfd_create with seals", memory_memfd),
    PROBE("membarrier", memory_barrier),
    PROBE("mseal", memory_seal),
    PROBE("brk", memory_brk),
    PROBE("process_vm_readv", memory_of_another),
    {.name = "memfd_secret", .number = SYS_memfd_secret},
    {.name = "userfaultfd", .number = SYS_userfaultfd, .args = {UFFD_USER_MODE_ONLY}},
    {.name = "get_mempolicy", .number = SYS_get_mempolicy},
    {.name = "pkey_alloc", .number = SYS_pkey_alloc},
};

const struct probe_list calls_memory = PROBE_LIST(probes);
