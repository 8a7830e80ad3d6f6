/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the linker puts between vmm/main.c and the rest (-Wl,--wrap): the layers, which may be
 * left out, and the loops of both threads, which the attempts take the place of.
 */
#include "tests/hostile/taken/taken.h"

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "vmm/control.h"
#include "vmm/control_loop.h"

#define TEXT_MAX 2048

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);
int __real_harden_process(int proc_fd, int last_fd, struct err *err);
int __wrap_harden_process(int proc_fd, int last_fd, struct err *err);
int __wrap_harden_confine(struct err *err);
int __real_harden_limits(const struct harden_plan *plan, struct err *err);
int __wrap_harden_limits(const struct harden_plan *plan, struct err *err);
int __real_harden_thread(const struct harden_plan *plan, enum harden_thread thread,
                         struct err *err);
int __wrap_harden_thread(const struct harden_plan *plan, enum harden_thread thread,
                         struct err *err);
void __real_fd_close(int *fd);
void __wrap_fd_close(int *fd);
int __wrap_control_run(const struct control_machine *machine, struct err *err);

static unsigned long off;
static bool confined;
static const struct harden_plan *plan_of_all;
static char *low_page;
static char text[TEXT_MAX];
static char told[VMM_MESSAGE_MAX];

/* What the vCPU thread is to try. */
static struct {
    const struct attempt *attempt;
    sem_t go, end;
    int result;
} vcpu;

const char *taken_given(const char *key)
{
    static char value[512];
    const size_t len = strlen(key);

    for (const char *line = text; line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, len) != 0 || line[len] != '=')
            continue;
        (void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + len + 1, "\n"),
                       line + len + 1);
        return value;
    }
    return "";
}

long taken_number(const char *key)
{
    return strtol(taken_given(key), NULL, 10);
}

void taken_tell(const void *bytes, size_t n)
{
    size_t len = strlen(told);

    for (size_t i = 0; i < n && len + 1 < sizeof(told); i++)
        if (((const char *)bytes)[i])
            told[len++] = ((const char *)bytes)[i];
    told[len] = '\0';
}

int taken_done(long r)
{
    return r < 0 ? -errno : 0;
}

const struct harden_plan *taken_plan(void)
{
    return plan_of_all;
}

char *taken_low_page(void)
{
    return low_page;
}

static const struct attempt *find_attempt(const char *name)
{
    static const struct attempt *const tables[] = {taken_files, taken_others, taken_rights,
                                                   taken_resources};

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct attempt *a = tables[i]; a->name; a++)
            if (strcmp(a->name, name) == 0)
                return a;
    return NULL;
}

int __wrap_main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    off = strtoul(argv[1], NULL, 10);
    argv[1] = argv[0];
#if defined(__x86_64__)
    low_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
                    -1, 0);
#endif
    (void)sem_init(&vcpu.go, 0, 0);
    (void)sem_init(&vcpu.end, 0, 0);
    return __real_main(argc - 1, argv + 1);
}

int __wrap_harden_process(int proc_fd, int last_fd, struct err *err)
{
    return off & TAKEN_PROCESS ? 0 : __real_harden_process(proc_fd, last_fd, err);
}

/* Only of what is closed because it is not needed any more. */
void __wrap_fd_close(int *fd)
{
    if ((off & TAKEN_PROCESS) && !confined)
        *fd = -1;
    else
        __real_fd_close(fd);
}

/* harden_confine, as far as it is wanted. */
int __wrap_harden_confine(struct err *err)
{
    int r = off & TAKEN_CAPABILITIES ? 0 : harden_privileges(err);

    confined = true;
    if (r == 0 && !(off & TAKEN_CAPABILITIES))
        r = harden_capabilities(err);
    return r == 0 && !(off & TAKEN_LANDLOCK) ? harden_landlock(err) : r;
}

int __wrap_harden_limits(const struct harden_plan *plan, struct err *err)
{
    return off & TAKEN_RLIMITS ? 0 : __real_harden_limits(plan, err);
}

static _Noreturn void wait_for_the_end(void)
{
    for (;;)
        (void)sem_wait(&vcpu.end);
}

/* The vCPU thread never comes back: this is its loop. */
int __wrap_harden_thread(const struct harden_plan *plan, enum harden_thread thread,
                         struct err *err)
{
    int r = off & TAKEN_FILTER ? 0 : __real_harden_thread(plan, thread, err);

    if (r < 0 || thread == HARDEN_MAIN)
        return r;
    for (;;) {
        while (sem_wait(&vcpu.go) < 0)
            continue;
        vcpu.result = vcpu.attempt->try();
        (void)sem_post(&vcpu.end);
    }
}

static int run(const struct attempt *attempt, bool by_vcpu)
{
    if (!attempt)
        return -EPROTO;
    if (!by_vcpu)
        return attempt->try();
    vcpu.attempt = attempt;
    (void)sem_post(&vcpu.go);
    while (sem_wait(&vcpu.end) < 0)
        continue;
    return vcpu.result;
}

/* The main thread's: its answers are the address of what it holds, and what came of attempts.
 */
int __wrap_control_run(const struct control_machine *machine, struct err *err)
{
    const int fd = machine->control_fd;

    (void)err;
    plan_of_all = machine->machine->plan;
    control_send(fd, TAKEN_READY, (uint64_t)machine->machine->kick.pid,
                 (uint64_t)(uintptr_t)text, NULL);
    for (;;) {
        struct iovec part = {text, sizeof(text) - 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n = recvmsg(fd, &message, 0);
        int r;

        /* Who took it over does not end with its daemon by himself. */
        if (n <= 0)
            wait_for_the_end();
        text[n] = told[0] = '\0';
        r = run(find_attempt(taken_given("attempt")), taken_given("thread")[0] == 'v');
        control_send(fd, TAKEN_RESULT, 0, (uint64_t)-r, told);
    }
}
