/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addon zygote.node: what node.cjs cannot do from JavaScript. All of it happens while Node
 * loads the addon: it tells guest-init that this process is warm, waits until there is
 * something to run, and then renews what a plain Node draws or notes when it starts.
 *
 *   Math.random    V8's own generator, which also seeds what worker threads and contexts draw,
 *                  gets a new seed, and the context forgets the numbers it has drawn ahead.
 *   crypto         OpenSSL's first generator is seeded by the kernel's anew; all others, one of
 *                  each thread, are by the next number that they draw.
 *   hrtime         goes on from where the wait began: performance.now() and process.uptime()
 * count from the start, and Node keeps that time in places of its own.
 *
 * What stays equal in all machines of a snapshot is V8's hash seed, as Python's
 * (sitecustomize.py).
 *
 * The end is as the Python zygote's (end.h): where Node would take its heap apart, it leaves.
 * Not if the script loaded native code of its own, which may have something to do then.
 *
 * No header of Node's, V8's or OpenSSL's is used: few functions of theirs are called, by name.
 * If one is missing the zygote ends, and Node starts plainly for each run.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest-init/zygote/finish.h"
#include "guest-init/zygote/redirect.h"

#define CONTROL 3

/* Of libnode and libcrypto, as C sees them. */
static struct {
    void *(*current_isolate)(void);
    uintptr_t **(*current_context)(void *isolate); /* a handle: the address of the context */
    void *(*generator)(void *isolate);
    void (*seed_generator)(void *generator, int64_t seed);
    void (*reset_random)(uintptr_t *context);
    void (*seed_openssl)(const void *data, int len);
    void *spin;         /* node::SpinEventLoop(Environment*) */
    void *exit_handler; /* node::DefaultProcessExitHandler(Environment*, int) */
    void *hrtime;       /* uv_hrtime() */
} node;

/* SpinEventLoop gives a Maybe<int>: whether there is one, and in the upper half the exit code.
 */
static uint64_t (*spin_event_loop)(void *environment);
static pid_t main_thread;
static unsigned long long objects_loaded;
static uint64_t waited_ns;

static int find_functions(void)
{
    const struct {
        const char *name;
        void *at;
    } wanted[] = {
        {"_ZN2v87Isolate10GetCurrentEv", &node.current_isolate},
        {"_ZN2v87Isolate17GetCurrentContextEv", &node.current_context},
        {"_ZN2v88internal7Isolate23random_number_generatorEv", &node.generator},
        {"_ZN2v84base21RandomNumberGenerator7SetSeedEl", &node.seed_generator},
        {"_ZN2v88internal10MathRandom12ResetContextENS0_7ContextE", &node.reset_random},
        {"RAND_seed", &node.seed_openssl},
        {"_ZN4node13SpinEventLoopEPNS_11EnvironmentE", &node.spin},
        {"_ZN4node25DefaultProcessExitHandlerEPNS_11EnvironmentEi", &node.exit_handler},
        {"uv_hrtime", &node.hrtime},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *found = dlsym(RTLD_DEFAULT, wanted[i].name);

        if (!found)
            return -ENOENT;
        memcpy(wanted[i].at, &found, sizeof(found));
    }
    return 0;
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t hrtime(void)
{
    return monotonic_ns() - waited_ns;
}

static int note_loaded(struct dl_phdr_info *info, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1;
}

static unsigned long long count_loaded(void)
{
    unsigned long long loaded = 0;

    (void)dl_iterate_phdr(note_loaded, &loaded);
    return loaded;
}

/* The end of the main thread's event loop: every event of the process's end was emitted. */
static uint64_t spin(void *environment)
{
    uint64_t code = spin_event_loop(environment);

    if ((pid_t)syscall(SYS_gettid) != main_thread || count_loaded() != objects_loaded)
        return code;
    (void)fflush(NULL);
    _exit((code & 0xff) != 0 ? (int)(code >> 32) : 1);
}

/* process.exit(), and what is fatal. Only the main thread has this handler. */
static void exit_now(void *environment, int code)
{
    (void)environment;
    (void)fflush(NULL);
    if (count_loaded() != objects_loaded)
        exit(code);
    _exit(code);
}

/* Makes the calls that a library makes of a function by its table of others' go elsewhere. */
static int redirect_calls(const struct link_map *library, const char *name, void *to)
{
    const ElfW(Rela) *relocation = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    size_t bytes = 0;

    for (const ElfW(Dyn) *d = library->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_JMPREL)
            relocation = (const void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_PLTRELSZ)
            bytes = d->d_un.d_val;
        else if (d->d_tag == DT_SYMTAB)
            symbols = (const void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_STRTAB)
            strings = (const void *)d->d_un.d_ptr;
    }
    if (!relocation || !symbols || !strings)
        return -ENOENT;
    for (; bytes >= sizeof(*relocation); relocation++, bytes -= sizeof(*relocation)) {
        uintptr_t slot = library->l_addr + relocation->r_offset;
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        if (strcmp(strings + symbols[ELF64_R_SYM(relocation->r_info)].st_name, name) != 0)
            continue;
        if (mprotect((void *)(slot & ~(page - 1)), page, PROT_READ | PROT_WRITE) < 0)
            return -errno;
        memcpy((void *)slot, &to, sizeof(to));
        return 0;
    }
    return -ENOENT;
}

static int take_over_end(void)
{
    struct link_map *library;
    Dl_info info;
    int r;

    if (!dladdr1(node.spin, &info, (void **)&library, RTLD_DL_LINKMAP))
        return -ENOENT;
    memcpy(&spin_event_loop, &node.spin, sizeof(node.spin));
    main_thread = (pid_t)syscall(SYS_gettid);
    objects_loaded = count_loaded();
    r = leave_prepare(CONTROL);
    if (r < 0)
        return r;
    r = redirect(node.exit_handler, (void *)(uintptr_t)exit_now, NULL);
    return r < 0 ? r
                 : redirect_calls(library, "_ZN4node13SpinEventLoopEPNS_11EnvironmentE",
                                  (void *)(uintptr_t)spin);
}

/* Not by _exit, which waits for guest-init to look at a program's end: this is none. */
static void __attribute__((noreturn)) give_up(int status)
{
    for (;;)
        (void)syscall(SYS_exit_group, status);
}

static int renew(void)
{
    struct {
        int64_t v8;
        uint8_t openssl[48];
    } seed;
    void *isolate = node.current_isolate();

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return -errno;
    node.seed_generator(node.generator(isolate), seed.v8);
    node.reset_random(*node.current_context(isolate));
    node.seed_openssl(seed.openssl, sizeof(seed.openssl));
    return 0;
}

/* Until the message begins, which node.cjs reads. */
static void wait_for_run(void)
{
    uint64_t began_ns = monotonic_ns();
    char byte = 'w';

    if (write(CONTROL, &byte, 1) != 1)
        give_up(127);
    if (recv(CONTROL, &byte, 1, MSG_PEEK) != 1)
        give_up(0);
    waited_ns = monotonic_ns() - began_ns;
}

/* Node calls it once the addon is loaded. What it gives back would be the module's exports. */
void *napi_register_module_v1(void *env, void *exports);
void *napi_register_module_v1(void *env, void *exports)
{
    (void)env;
    (void)exports;
    if (find_functions() < 0 || redirect(node.hrtime, (void *)(uintptr_t)hrtime, NULL) < 0 ||
        take_over_end() < 0)
        give_up(127);
    wait_for_run();
    if (renew() < 0)
        give_up(127);
    return NULL;
}
