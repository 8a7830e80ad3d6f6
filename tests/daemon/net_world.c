/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/net_world.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BRIDGE_ADDRESS "10.77.0.1/24"

/* A command line of ip(8). False where it fails. */
static bool __attribute__((format(printf, 1, 2))) ip(const char *format, ...)
{
    char command[160] = "ip ";
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(command + 3, sizeof(command) - 3, format, ap);
    va_end(ap);
    return system(command) == 0;
}

static int open_own(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* A process that is in a namespace of its own, and does nothing. */
static pid_t hold(void)
{
    int ready[2];
    pid_t pid;
    char byte;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static bool add_host(struct net_world *w)
{
    struct net_host *host = &w->hosts[w->n];
    unsigned i = (unsigned)w->n++;
    bool good;

    host->pid = hold();
    host->fd = open_own(host->pid);
    assert_true(host->fd >= 0);
    snprintf(host->address, sizeof(host->address), "10.77.0.%u", 10 + i);
    good = ip("link add v%u type veth peer name eth netns %d", i, (int)host->pid) &&
           ip("link set v%u master bridge up", i);
    net_enter(w, i);
    good = good && ip("address add %s/24 dev eth", host->address) && ip("link set eth up") &&
           ip("link set lo up");
    net_leave(w);
    return good;
}

bool net_begin(struct net_world *w, size_t n)
{
    bool good;

    *w = (struct net_world){.own = -1};
    if (unshare(CLONE_NEWNET) < 0)
        return false;
    w->own = open_own(getpid());
    assert_true(w->own >= 0);
    good = ip("link set lo up") && ip("link add bridge type bridge") &&
           ip("address add " BRIDGE_ADDRESS " dev bridge") && ip("link set bridge up");
    while (good && w->n < n)
        good = add_host(w);
    if (!good)
        net_end(w);
    return good;
}

void net_end(struct net_world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        kill(w->hosts[i].pid, SIGKILL);
        (void)waitpid(w->hosts[i].pid, NULL, 0);
        close(w->hosts[i].fd);
    }
    if (w->own >= 0)
        close(w->own);
    *w = (struct net_world){.own = -1};
}

void net_enter(const struct net_world *w, size_t host)
{
    if (w->own >= 0)
        assert_int_equal(setns(w->hosts[host].fd, CLONE_NEWNET), 0);
}

void net_leave(const struct net_world *w)
{
    if (w->own >= 0)
        assert_int_equal(setns(w->own, CLONE_NEWNET), 0);
}

void net_cut(const struct net_world *w, size_t host)
{
    assert_true(host < w->n && ip("link set v%zu down", host));
}

void net_mend(const struct net_world *w, size_t host)
{
    assert_true(host < w->n && ip("link set v%zu up", host));
}
