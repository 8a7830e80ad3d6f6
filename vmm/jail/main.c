/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm-jail: makes the room that machines are in, and starts them in it. See jail.h. It is
 * trusted, and none of its descriptors but those meant for it ever reach a machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "vmm/jail/jail.h"
#include "vmm/jail/room.h"
#include "vmm/jail/start.h"

struct options {
    unsigned long socket_fd, program_fd, layers;
};

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {
        {"socket-fd", required_argument, NULL, 's'},
        {"program-fd", required_argument, NULL, 'p'},
        {"layers", required_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    int key;

    while ((key = getopt_long(argc, argv, "", names, NULL)) != -1) {
        unsigned long *value = key == 's'   ? &o->socket_fd
                               : key == 'p' ? &o->program_fd
                               : key == 'l' ? &o->layers
                                            : NULL;
        char *end = NULL;

        if (!value)
            return -EINVAL;
        *value = strtoul(optarg, &end, 10);
        if (*optarg == '\0' || *end != '\0' || *value > UINT32_MAX)
            return -EINVAL;
    }
    return optind == argc && o->socket_fd > 2 && o->program_fd > 2 ? 0 : -EINVAL;
}

/* All that starting a machine as another user takes. */
static int keep_capabilities(struct err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = {{0}};

    if (syscall(SYS_capget, &header, kept) < 0)
        return err_set_errno(err, errno, "looking at capabilities");
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const uint32_t wanted = i == 0 ? 1u << CAP_SETUID | 1u << CAP_SETGID : 0;

        kept[i].permitted &= wanted;
        kept[i].effective = kept[i].permitted;
        kept[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, kept) < 0
               ? err_set_errno(err, errno, "giving up capabilities")
               : 0;
}

/*
 * Keys of whoever started the daemon: who has a keyring may read them as any user. The new one
 * is all machines', and so nobody may put anything into it. Where a filter forbids keyctl(2) it
 * forbids machines, too.
 */
static int leave_keyring(struct err *err)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
        return errno == ENOSYS || errno == EPERM
                   ? 0
                   : err_set_errno(err, errno, "leaving the session's keyring");
    return syscall(SYS_keyctl, KEYCTL_SETPERM, KEY_SPEC_SESSION_KEYRING, 0) < 0
               ? err_set_errno(err, errno, "closing the keyring")
               : 0;
}

static struct jail_reply look(struct start *start, uint32_t cell)
{
    if (cell >= JAIL_CELLS)
        return (struct jail_reply){.error = EPROTO};
    return (struct jail_reply){.memory = start->limits.machines_fd < 0
                                             ? JAIL_MEMORY_ENOUGH
                                             : limits_look(&start->limits, cell)};
}

static struct jail_reply answer(struct start *start, struct jail_request *request, size_t len,
                                const int *fds, size_t n_fds, int *ret_weight)
{
    if (len != sizeof(*request) || request->version != JAIL_VERSION)
        return (struct jail_reply){.error = EPROTO};
    if (request->wish == JAIL_START)
        return start_machine(start, request, fds, n_fds, ret_weight);
    return request->wish == JAIL_LOOK ? look(start, request->cell)
                                      : (struct jail_reply){.error = EPROTO};
}

/* Answers until the daemon goes, or no machine can be started any more. */
static int serve(int socket_fd, struct start *start, const struct jail_hello *hello)
{
    int r = fd_send(socket_fd, hello, sizeof(*hello), NULL, 0);

    while (r == 0) {
        struct jail_request request;
        struct jail_reply reply;
        _cleanup_fd_ int weight_fd = -1;
        int fds[JAIL_FDS_MAX];
        size_t n_fds = 0;
        ssize_t n = fd_receive(socket_fd, &request, sizeof(request), fds, JAIL_FDS_MAX, &n_fds);

        if (n <= 0)
            return (int)n;
        reply = answer(start, &request, (size_t)n, fds, n_fds, &weight_fd);
        for (size_t i = 0; i < n_fds; i++)
            fd_close(&fds[i]);
        /* With its first process a PID namespace has gone for ever; the daemon starts another.
         */
        if (reply.error == ENOMEM && room_is_over(start->first))
            return -ECHILD;
        r = fd_send(socket_fd, &reply, sizeof(reply), &weight_fd, weight_fd >= 0);
    }
    return r;
}

static int run(const struct options *o, struct err *err)
{
    struct start start;
    struct jail_hello hello;
    int socket_fd, r;

    /* Machines lie at addresses of their own, and have no data that is code, whatever the
       daemon was started with. */
    if (personality(PER_LINUX) < 0)
        return err_set_errno(err, errno, "personality");
    r = start_init(&start, (int)o->program_fd, (int)o->socket_fd, &socket_fd, err);
    if (r < 0)
        return r;
    r = room_make((uint32_t)o->layers, &start.limits, &start.first, &hello, err);
    if (r < 0)
        return r;
    r = leave_keyring(err);
    if (r < 0)
        return r;
    start.own_users = hello.layers & 1u << JAIL_USERS;
    r = keep_capabilities(err);
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_set_errno(err, errno, "giving up privileges");
    r = serve(socket_fd, &start, &hello);
    if (r == -ECHILD)
        return err_set(err, ECHILD, "the first process of the PID namespace has ended");
    return r < 0 ? err_set_errno(err, -r, "speaking with the daemon") : 0;
}

/* What could be made here, a line each. */
static int probe(struct err *err)
{
    struct jail_hello hello;

    room_try(&hello);
    for (int i = 0; i < JAIL_LAYERS; i++)
        (void)printf("%s=%s\n", jail_layer_names[i],
                     hello.layers & 1u << i ? "ok" : hello.missing[i]);
    return fflush(stdout) == 0 ? 0 : err_set_errno(err, errno, "standard output");
}

/*
 * Takes back what an earlier process has made for the same daemon, which waits for it. It ends
 * with the daemon: whoever is the parent then is not to be moved anywhere.
 */
static int leave(struct err *err)
{
    const pid_t daemon = getppid();
    const char *failed;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != daemon)
        return err_set(err, ESRCH, "the daemon has gone");
    failed = limits_leave();
    if (!failed)
        return 0;
    return errno ? err_set_errno(err, errno, "%s", failed) : err_set(err, EBUSY, "%s", failed);
}

int main(int argc, char **argv)
{
    const bool is_probe = argc == 2 && strcmp(argv[1], "probe") == 0;
    const bool is_leave = argc == 2 && strcmp(argv[1], "leave") == 0;
    struct options o = {.layers = JAIL_ALL};
    struct err err = {0};
    int r;

    if (!is_probe && !is_leave && parse_options(argc, argv, &o) < 0) {
        (void)fputs("usage: skillvm-jail probe\n"
                    "Says which layers of the machines' jail this host allows. All else is\n"
                    "skillvmd's, which starts its machines by it.\n",
                    stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    r = is_probe ? probe(&err) : is_leave ? leave(&err) : run(&o, &err);
    if (r < 0)
        log_error("jail", "event=failed reason=\"%s\"", err.message);
    /* Nothing is kept for the end, and what a sanitizer would look at is not in this root. */
    _exit(r < 0 ? 1 : 0);
}
