/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/jail.h"

#include "api/daemon/machine/launch.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Starting a machine takes less than a thousandth of that. */
#define ANSWER_MAX_S 30

struct jail {
    pthread_mutex_t lock;
    char *program;
    int machine_fd;
    uint32_t layers;
    bool strict;
    bool gave_up;      /* what the users of its first process took */
    _Atomic bool lost; /* and so there is no other */
    pid_t pid;         /* -1: it is not there */
    int socket_fd;
    struct jail_hello hello;        /* of the first process; a later one is in the same host */
    _Atomic bool taken[JAIL_CELLS]; /* set under the lock, and given back without */
};

const char *jail_missing(const struct jail *jail, enum jail_layer layer)
{
    return jail->hello.layers & 1u << layer ? NULL : jail->hello.missing[layer];
}

/* The process has nothing to lose but machines, which go with it where they have its
 * namespaces. */
static void stop(struct jail *jail)
{
    fd_close(&jail->socket_fd);
    if (jail->pid > 0) {
        (void)kill(jail->pid, SIGKILL);
        (void)process_reap(jail->pid);
    }
    jail->pid = -1;
}

/* Whoever is on the other side, it answers in time. 0 or -errno. */
static int open_socket(int ret[2])
{
    const struct timeval most = {.tv_sec = ANSWER_MAX_S};
    int error;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
        return -errno;
    if (setsockopt(ret[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0 &&
        setsockopt(ret[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) == 0)
        return 0;
    error = errno;
    fd_close(&ret[0]);
    fd_close(&ret[1]);
    return -error;
}

static int receive_hello(const struct jail *jail, struct jail_hello *ret, struct err *err)
{
    ssize_t n = fd_receive(jail->socket_fd, ret, sizeof(*ret), NULL, 0, NULL);

    if (n != (ssize_t)sizeof(*ret) || ret->version != JAIL_VERSION)
        return err_set(err, EPROTO, "%s did not start as it should", jail->program);
    for (int i = 0; i < JAIL_LAYERS; i++)
        ret->missing[i][JAIL_WHY_MAX - 1] = '\0';
    return 0;
}

/* Whether what is there will do. */
static int judge(const struct jail *jail, const struct jail_hello *hello, struct err *err)
{
    for (uint32_t i = 0; i < JAIL_LAYERS; i++) {
        const char *why = hello->missing[i];

        if (!(jail->layers & ~hello->layers & 1u << i))
            continue;
        if (jail->strict)
            return err_set(err, EPERM,
                           "isolation is strict, and its layer '%s' is missing: %s. Allow it, "
                           "or set isolation: best-effort",
                           jail_layer_names[i], why);
        log_warn("jail", "event=layer-missing layer=%s reason=\"%s\"", jail_layer_names[i],
                 why);
    }
    return 0;
}

static int start(struct jail *jail, struct jail_hello *ret, struct err *err)
{
    struct launch l = launch_init(jail->program, NULL);
    char layers[16];
    int ends[2], r = open_socket(ends);

    if (r < 0)
        return err_set_errno(err, -r, "cannot create the socket of the jail");
    jail->socket_fd = ends[0];
    (void)snprintf(layers, sizeof(layers), "%u", jail->layers);
    launch_add_fd(&l, "--socket-fd", ends[1]);
    launch_add_fd(&l, "--program-fd", jail->machine_fd);
    launch_add(&l, "--layers");
    launch_add(&l, layers);
    r = launch_run(&l, -1, &jail->pid);
    fd_close(&ends[1]);
    if (r < 0)
        return err_set_errno(err, -r, "cannot start %s", jail->program);
    r = receive_hello(jail, ret, err);
    return r < 0 ? r : judge(jail, ret, err);
}

/*
 * Who has these two is root to the rest of the host, and callers' words are read here. A child
 * that is started later has them no more either.
 */
static int give_up_users(struct jail *jail, struct err *err)
{
    const uint32_t users = 1u << CAP_SETUID | 1u << CAP_SETGID;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, kept) < 0)
        return err_set_errno(err, errno, "looking at capabilities");
    if (geteuid() == 0 || !(kept[0].permitted & users))
        return 0;
    kept[0].permitted &= ~users;
    kept[0].effective &= ~users;
    kept[0].inheritable &= ~users;
    if (syscall(SYS_capset, &header, kept) < 0)
        return err_set_errno(err, errno, "giving up capabilities");
    jail->gave_up = true;
    return 0;
}

static int begin(struct jail *jail, struct err *err)
{
    int r = start(jail, &jail->hello, err);

    return r < 0 ? r : give_up_users(jail, err);
}

int jail_open(const struct jail_config *config, struct jail **ret, struct err *err)
{
    struct jail *jail = calloc(1, sizeof(*jail));
    int r;

    if (!jail)
        return err_no_memory(err);
    (void)pthread_mutex_init(&jail->lock, NULL);
    jail->pid = jail->socket_fd = -1;
    jail->layers = config->layers;
    jail->strict = config->strict;
    jail->program = strdup(config->program);
    jail->machine_fd = open(config->machine, O_PATH | O_CLOEXEC);
    if (!jail->program)
        r = err_no_memory(err);
    else if (jail->machine_fd < 0)
        r = err_set_errno(err, errno, "cannot open %s", config->machine);
    else
        r = begin(jail, err);
    if (r < 0)
        jail_close(jail);
    else
        *ret = jail;
    return r;
}

/* The cgroups go, and this process to where it was. What that says goes where this one's does.
 */
static void leave(const struct jail *jail)
{
    struct launch l = launch_init(jail->program, "leave");
    pid_t pid;
    int r = launch_run(&l, -1, &pid);

    if (r < 0)
        log_warn("jail", "event=leave reason=\"cannot start %s: %s\"", jail->program,
                 strerror(-r));
    else
        (void)process_reap(pid);
}

void jail_close(struct jail *jail)
{
    if (!jail)
        return;
    stop(jail);
    if (jail->program && !jail_missing(jail, JAIL_LIMITS))
        leave(jail);
    fd_close(&jail->machine_fd);
    free(jail->program);
    (void)pthread_mutex_destroy(&jail->lock);
    free(jail);
}

/* The process's answer. -EPIPE where it has gone or is silent; otherwise it heard nothing. */
static int ask(struct jail *jail, const struct jail_request *request, const int *fds,
               size_t n_fds, struct jail_reply *ret, int *ret_weight)
{
    int r = fd_send(jail->socket_fd, request, sizeof(*request), fds, n_fds);
    ssize_t n;

    if (r == -ECONNRESET || r == -EAGAIN)
        return -EPIPE;
    if (r < 0)
        return r;
    n = fd_receive(jail->socket_fd, ret, sizeof(*ret), ret_weight, 1, NULL);
    /* Where this process may open no more the answer came whole, and its descriptor did not:
       the machine has the share of one that nobody has. */
    return n == (ssize_t)sizeof(*ret) || n == -EMSGSIZE ? 0 : -EPIPE;
}

int jail_check(const struct jail *jail, struct err *err)
{
    return jail->lost ? err_set(err, ECHILD,
                                "%s has ended, and the daemon gave up what another takes: "
                                "start it again",
                                jail->program)
                      : 0;
}

/* Another process, which has what the first one had, or none. */
static int restart(struct jail *jail, struct err *err)
{
    struct jail_hello hello;

    log_warn("jail", "event=restart reason=\"%s does not answer\"", jail->program);
    stop(jail);
    if (jail->gave_up && !jail_missing(jail, JAIL_USERS)) {
        if (!jail->lost)
            (void)kill(getpid(), SIGTERM);
        jail->lost = true;
        return jail_check(jail, err);
    }
    return start(jail, &hello, err);
}

static int ask_again(struct jail *jail, const struct jail_request *request, const int *fds,
                     size_t n_fds, struct jail_reply *ret, int *ret_weight, struct err *err)
{
    int r = jail->pid > 0 ? ask(jail, request, fds, n_fds, ret, ret_weight) : -EPIPE;

    if (r == 0)
        return 0;
    if (r != -EPIPE)
        return err_set_errno(err, -r, "cannot ask %s for a machine", jail->program);
    r = restart(jail, err);
    if (r < 0) {
        stop(jail);
        return r;
    }
    r = ask(jail, request, fds, n_fds, ret, ret_weight);
    /* What it might still say would be taken for the answer to another. */
    if (r == -EPIPE)
        stop(jail);
    return r < 0 ? err_set_errno(err, -r, "%s does not answer again", jail->program) : 0;
}

static int take_cell(struct jail *jail, uint32_t *ret, struct err *err)
{
    for (uint32_t i = 0; i < JAIL_CELLS; i++) {
        if (jail->taken[i])
            continue;
        jail->taken[i] = true;
        *ret = i;
        return 0;
    }
    return err_set(err, EAGAIN, "there are %u machines already", JAIL_CELLS);
}

int jail_start(struct jail *jail, struct jail_request *request, const int *fds, size_t n_fds,
               struct jailed *ret, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&jail->lock);
    struct jail_reply reply = {0};
    _cleanup_fd_ int weight_fd = -1;
    int r = take_cell(jail, &request->cell, err);

    if (r < 0)
        return r;
    request->version = JAIL_VERSION;
    request->wish = JAIL_START;
    r = ask_again(jail, request, fds, n_fds, &reply, &weight_fd, err);
    if (r == 0 && reply.error) {
        if (reply.pid > 0)
            (void)process_reap(reply.pid);
        r = err_set_errno(err, reply.error, "cannot start a machine");
    }
    if (r < 0)
        jail->taken[request->cell] = false;
    *ret = (struct jailed){.pid = reply.pid,
                           .cell = request->cell,
                           .weight_fd = r < 0 ? -1 : fd_steal(&weight_fd)};
    return r;
}

enum jail_memory jail_look(struct jail *jail, uint32_t cell)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&jail->lock);
    const struct jail_request request = {
        .version = JAIL_VERSION, .wish = JAIL_LOOK, .cell = cell};
    struct jail_reply reply = {0};
    int none = -1, r;

    if (jail_missing(jail, JAIL_LIMITS) || jail->pid < 0)
        return JAIL_MEMORY_ENOUGH;
    r = ask(jail, &request, NULL, 0, &reply, &none);
    /* What it might still say would be taken for the answer to another. */
    if (r == -EPIPE)
        stop(jail);
    return r == 0 && reply.memory <= JAIL_MEMORY_SHORT ? (enum jail_memory)reply.memory
                                                       : JAIL_MEMORY_ENOUGH;
}

void jail_release_cell(struct jail *jail, uint32_t cell)
{
    jail->taken[cell] = false;
}
