/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/control_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "vmm/control.h"
#include "vmm/snapshot.h"
#include "vmm/vcpu.h"

#define MILLISECOND_NS      1000000ull
#define CONNECT_INTERVAL_NS (2 * MILLISECOND_NS)
/* How long a connection may take to close before a snapshot. */
#define CLOSE_TIMEOUT_NS (2000 * MILLISECOND_NS)

/* How long the host may take for what a guest wrote before it ended. */
#define FLUSH_TIMEOUT_NS (1000 * MILLISECOND_NS)

#define NEVER UINT64_MAX

struct loop {
    struct machine *m;
    int control_fd;
    int vsock_fd;
    bool can_save;
    struct snapshot_origin *origin; /* or NULL */
    bool connected;                 /* said so */
    uint64_t connect_ns;            /* when to try again, or NEVER */
    /* A snapshot that waits for the guest connection to close. */
    int state_fd;
    int memory_fd;
    uint64_t close_deadline_ns; /* or NEVER */
    bool done;
};

void control_send(int control_fd, uint32_t type, uint64_t time_ns, uint64_t value,
                  const char *message)
{
    struct vmm_event event = {
        .version = VMM_CONTROL_VERSION,
        .type = type,
        .time_ns = time_ns,
        .value = value,
    };

    (void)snprintf(event.message, sizeof(event.message), "%.*s", VMM_MESSAGE_MAX - 1,
                   message ? message : "");
    if (send(control_fd, &event, sizeof(event), MSG_NOSIGNAL) < 0)
        return;
}

static int start_snapshot(struct loop *l, int fds[2], size_t n_fds, struct err *err)
{
    if (!l->can_save)
        return err_set(err, ENOTSUP, "only a machine that booted can be saved");
    if (n_fds != 2)
        return err_set(err, EPROTO, "a SNAPSHOT command with %zu descriptors", n_fds);
    if (l->state_fd >= 0)
        return err_set(err, EPROTO, "a second SNAPSHOT command");
    l->state_fd = fd_steal(&fds[0]);
    l->memory_fd = fd_steal(&fds[1]);
    l->close_deadline_ns = clock_monotonic_ns() + CLOSE_TIMEOUT_NS;
    return 0;
}

/* Lets the guest run, with the request for a connection on its way. */
static void enter(struct loop *l, uint32_t event, uint64_t value)
{
    /* A restored guest listens already: the request goes out before it runs. */
    (void)machine_vsock_connect(l->m);
    l->connected = false;
    l->connect_ns = 0;
    vcpu_start(l->m);
    control_send(l->control_fd, event, clock_monotonic_ns(), value, NULL);
}

static int reset(struct loop *l, int fds[2], size_t n_fds, struct err *err)
{
    struct err why = {0};
    uint64_t pages = 0;
    int r;

    if (!l->origin)
        return err_set(err, ENOTSUP, "a machine without --reusable cannot be reset");
    if (n_fds != 1)
        return err_set(err, EPROTO, "a RESET command with %zu descriptors", n_fds);
    r = vcpu_pause(l->m, err);
    if (machine_get_end(l->m, &why) != MACHINE_RUNS)
        return err_set(err, EIO, "no reset of a guest that ended: %s", why.message);
    if (r < 0)
        return r;
    /* Under the old one's number: the free one is for the next RESET to arrive in. */
    if (dup2(fds[0], l->vsock_fd) < 0)
        return err_set_errno(err, errno, "the new end of the stream");
    r = snapshot_reset(l->m, l->origin, l->vsock_fd, &pages, err);
    if (r < 0)
        return r;
    enter(l, VMM_EVENT_RESET, pages);
    return 0;
}

static int attach_disk(const struct loop *l, const struct vmm_command *command, int fds[2],
                       size_t n_fds, struct err *err)
{
    int r;

    if (l->can_save)
        return err_set(err, ENOTSUP, "no skill's disk for a machine that is to be saved");
    if (n_fds != BLK_PARTS_MAX)
        return err_set(err, EPROTO, "a DISK command with %zu descriptors", n_fds);
    r = machine_attach_disk(l->m, fds, command->disk_bytes, err);
    if (r < 0)
        return r;
    control_send(l->control_fd, VMM_EVENT_DISK, clock_monotonic_ns(), 0, NULL);
    return 0;
}

static int read_command(struct loop *l, struct err *err)
{
    int fds[2] = {-1, -1};
    struct vmm_command command;
    size_t n_fds = 0;
    ssize_t n = fd_receive(l->control_fd, &command, sizeof(command), fds, 2, &n_fds);
    int r = 0;

    if (n == 0 || n == -ECONNRESET) {
        l->done = true;
    } else if (n == -EAGAIN || n == -EINTR) {
        r = 0;
    } else if (n < 0) {
        r = err_set_errno(err, (int)-n, "the control socket");
    } else if (n != (ssize_t)sizeof(command) || command.version != VMM_CONTROL_VERSION) {
        r = err_set(err, EPROTO, "a malformed command");
    } else if (command.type == VMM_COMMAND_QUIT) {
        l->done = true;
    } else if (command.type == VMM_COMMAND_RESET) {
        r = reset(l, fds, n_fds, err);
    } else if (command.type == VMM_COMMAND_DISK) {
        r = attach_disk(l, &command, fds, n_fds, err);
    } else if (command.type == VMM_COMMAND_SNAPSHOT) {
        r = start_snapshot(l, fds, n_fds, err);
    } else {
        r = err_set(err, EPROTO, "unknown command %u", command.type);
    }
    fd_close(&fds[0]);
    fd_close(&fds[1]);
    return r;
}

/* Tries to connect when it is time, and says when the guest accepted. */
static void drive_connection(struct loop *l, enum vsock_state state)
{
    uint64_t now;

    if (state == VSOCK_CONNECTED && !l->connected) {
        l->connected = true;
        control_send(l->control_fd, VMM_EVENT_CONNECTED, clock_monotonic_ns(), 0, NULL);
    }
    if ((state != VSOCK_IDLE && state != VSOCK_REFUSED) || l->state_fd >= 0) {
        l->connect_ns = NEVER;
        return;
    }
    now = clock_monotonic_ns();
    if (l->connect_ns == NEVER) {
        l->connect_ns = now + CONNECT_INTERVAL_NS;
    } else if (now >= l->connect_ns) {
        (void)machine_vsock_connect(l->m);
        l->connect_ns = now + CONNECT_INTERVAL_NS;
    }
}

/* Saves once the connection is closed; -EBUSY when that takes too long. */
static int drive_snapshot(struct loop *l, enum vsock_state state, struct err *err)
{
    struct err why = {0};
    int r;

    if (l->state_fd < 0)
        return 0;
    if (state == VSOCK_CONNECTING || state == VSOCK_CONNECTED || state == VSOCK_CLOSING) {
        if (clock_monotonic_ns() < l->close_deadline_ns)
            return 0;
        return err_set(err, EBUSY, "the guest connection is still open: no snapshot");
    }
    r = vcpu_pause(l->m, err);
    /* It may have ended since the last look. */
    if (machine_get_end(l->m, &why) != MACHINE_RUNS)
        return err_set(err, EIO, "no snapshot of a guest that ended: %s", why.message);
    if (r < 0)
        return r;
    r = snapshot_save(l->m, l->state_fd, l->memory_fd, err);
    if (r < 0)
        return r;
    control_send(l->control_fd, VMM_EVENT_SNAPSHOT, clock_monotonic_ns(), 0, NULL);
    l->done = true;
    return 0;
}

/* The last bytes of a guest that ended are still on their way to the host. */
static void flush_connection(struct loop *l)
{
    uint64_t deadline_ns = clock_monotonic_ns() + FLUSH_TIMEOUT_NS;
    enum vsock_state state;
    bool more;

    for (;;) {
        int events = machine_vsock_wait(l->m, &state, &more);
        struct pollfd fd = {.fd = l->vsock_fd, .events = POLLOUT};

        if (events < 0 || !(events & POLLOUT) || clock_monotonic_ns() >= deadline_ns)
            return;
        if (poll(&fd, 1, clock_timeout_ms(deadline_ns)) > 0)
            machine_vsock_ready(l->m, fd.revents);
    }
}

/* Reports how the guest ended. */
static int handle_end(struct loop *l, struct err *err)
{
    struct err why = {0};
    enum machine_end end = machine_get_end(l->m, &why);

    if (end == MACHINE_RUNS)
        return 0;
    machine_tell_last_words(l->m, STDERR_FILENO);
    if (end == MACHINE_FAILED)
        return err_set(err, EIO, "%s", why.message);
    flush_connection(l);
    control_send(l->control_fd, VMM_EVENT_EXITED, clock_monotonic_ns(),
                 end == MACHINE_RULES ? VMM_EXIT_RULES : VMM_EXIT_SHUTDOWN, why.message);
    l->done = true;
    return 0;
}

static void drain_wake(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof(count)) < 0)
        return;
}

/* One wait and what came of it. */
static int turn(struct loop *l, struct err *err)
{
    enum vsock_state state;
    bool more = false;
    int events = machine_vsock_wait(l->m, &state, &more);
    uint64_t deadline;
    int timeout_ms;
    struct pollfd fds[3] = {
        {.fd = l->control_fd, .events = POLLIN},
        {.fd = l->m->wake_fd, .events = POLLIN},
        {.fd = events < 0 ? -1 : l->vsock_fd, .events = (short)events},
    };
    int r;

    drive_connection(l, state);
    r = drive_snapshot(l, state, err);
    if (r < 0 || l->done)
        return r;
    deadline = l->connect_ns < l->close_deadline_ns ? l->connect_ns : l->close_deadline_ns;
    timeout_ms = deadline == NEVER ? -1 : clock_timeout_ms(deadline);
    if (poll(fds, 3, more ? 0 : timeout_ms) < 0)
        return errno == EINTR ? 0 : err_set_errno(err, errno, "poll");
    if (fds[1].revents)
        drain_wake(l->m->wake_fd);
    r = handle_end(l, err);
    if (r < 0 || l->done)
        return r;
    /* First: a RESET voids what the old stream has to say, its end above all. */
    if (fds[0].revents)
        return read_command(l, err);
    if (fds[2].revents)
        machine_vsock_ready(l->m, fds[2].revents);
    return 0;
}

int control_run(const struct control_machine *machine, struct err *err)
{
    struct loop l = {
        .m = machine->machine,
        .control_fd = machine->control_fd,
        .vsock_fd = machine->vsock_fd,
        .can_save = machine->can_save,
        .origin = machine->origin,
        .state_fd = -1,
        .memory_fd = -1,
        .close_deadline_ns = NEVER,
    };
    int r = 0;

    enter(&l, VMM_EVENT_RESUMED, 0);
    while (r >= 0 && !l.done)
        r = turn(&l, err);
    fd_close(&l.state_fd);
    fd_close(&l.memory_fd);
    return r;
}
