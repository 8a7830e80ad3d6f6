/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/guest.h"

#include "api/daemon/machine/guest_drain.h"
#include "api/daemon/machine/skill_disk.h"
#include "api/daemon/terms/limits.h"
#include "base/bytes.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define READ_SIZE      (64u * 1024u)
#define CONNECT_GRACES 6u /* restore and connect may take this many graces */
#define INJECT_GRACES  12u
#define COLLECT_GRACES 12u
#define REASON_NS      5000000000ull
/* Nobody waits for the rest of what was cancelled; whole files of it are kept. */
#define CANCELLED_GRACES 2u
/* On top of them what a guest of the slowest kind takes in, or hands over, per millisecond. */
#define BYTES_PER_MS 1024u
/* Small frames travel together: every write wakes the machine. */
#define OUT_SIZE       (2u * (PROTO_HEADER_SIZE + PROTO_CHUNK_MAX))
#define READS_IN_A_ROW 16u /* then the other descriptors get their turn */

enum send_step {
    SEND_NOTHING, /* READY has not come */
    SEND_WAKE,
    SEND_RUN,
    SEND_RUN_BODY,
    SEND_PACKAGES,
    SEND_SKILL,
    SEND_INPUT,
    SEND_FILES_IN,
    SEND_SESSION_IN, /* where there is a session */
    SEND_DONE,
};

struct guest {
    struct vm *vm;
    uint64_t grace_ns;
    uint64_t deadline_ns;
    struct guest_times times;
    const struct job *job; /* NULL until it is run */
    const struct guest_sink *sink;
    int cancel_fd;
    bool cancelled;
    enum send_step step;
    uint64_t sent; /* of the step's bytes */
    struct input_stream files;
    size_t out_at; /* of out, written already */
    size_t out_len;
    bool connected;     /* the process said so, which may come after READY */
    bool has_disk;      /* the same of the skill's disk */
    bool cancel_due;    /* CANCEL goes out next */
    bool is_deaf;       /* the guest takes no more bytes */
    bool is_holding;    /* what is sent is for a snapshot */
    bool holds;         /* the job's packages are there already */
    bool control_ended; /* the process went away; bytes it left may still be read */
    struct err ended;   /* why it did */
    struct guest_decoder decoder;
    /* From here on nothing is initialised. */
    uint8_t in[READ_SIZE];
    uint8_t out[OUT_SIZE];
};

/* How long the guest may take for all that it is given. */
static uint64_t inject_ns(const struct guest *g)
{
    uint64_t bytes =
        g->job->packages.len + g->job->skill.len + g->job->input.len + g->job->session.len;

    for (size_t i = 0; i < g->job->files.n; i++)
        bytes += g->job->files.items[i].bytes;
    return INJECT_GRACES * g->grace_ns + bytes / BYTES_PER_MS * NS_PER_MS;
}

static uint64_t collect_ns(const struct guest *g)
{
    return (g->cancelled ? CANCELLED_GRACES : COLLECT_GRACES) * g->grace_ns;
}

/* The skill has ended: what it said to others goes on to them, unless somebody ended it. */
static void end_egress(const struct guest *g)
{
    const uint32_t ended = PROTO_EXIT_TIMED_OUT | PROTO_EXIT_CANCELLED;
    uint64_t over_ns = g->times.started_ns + g->job->timeout_ms * NS_PER_MS;

    if (g->sink->egress)
        guest_drain_begin(g->sink->egress, over_ns,
                          g->cancelled || (g->decoder.exit.flags & ended));
}

/* What begins with a stage that the guest has come to. */
static void enter_stage(struct guest *g)
{
    uint64_t now = clock_monotonic_ns();

    switch (g->decoder.stage) {
    case GUEST_INJECTING:
        g->times.ready_ns = now;
        break;
    case GUEST_RUNNING:
        g->times.started_ns = now;
        /* A cancelled run keeps the deadline that cancelling set. */
        if (!g->cancelled)
            g->deadline_ns = now + g->job->timeout_ms * NS_PER_MS + g->grace_ns;
        break;
    case GUEST_OUTPUT:
        g->times.exit_ns = now;
        end_egress(g);
        g->deadline_ns = now + collect_ns(g);
        break;
    default:
        break;
    }
    if (g->sink->stage)
        g->sink->stage(g->sink->ctx, g->decoder.stage);
}

/* Where the payload of the next frame goes: PROTO_CHUNK_MAX bytes fit. */
static uint8_t *payload_of_next(struct guest *g)
{
    return g->out + g->out_len + PROTO_HEADER_SIZE;
}

/* Adds a frame to the out buffer; payload_here bytes are already in their place. */
static void frame(struct guest *g, enum proto_type type, size_t len, size_t payload_here)
{
    struct bytes_writer w = bytes_writer_init(g->out + g->out_len, PROTO_HEADER_SIZE);

    bytes_put_u32(&w, (uint32_t)len);
    bytes_put_u8(&w, (uint8_t)type);
    bytes_put_u8(&w, 0);
    bytes_put_u16(&w, 0);
    g->out_len += PROTO_HEADER_SIZE + payload_here;
}

static int make_wake(struct guest *g, struct err *err)
{
    struct bytes_writer w = bytes_writer_init(payload_of_next(g), PROTO_WAKE_SIZE);
    uint8_t entropy[PROTO_ENTROPY_SIZE];

    if (getrandom(entropy, sizeof(entropy), 0) != (ssize_t)sizeof(entropy))
        return err_set(err, EIO, "no random bytes for the guest");
    bytes_put_u64(&w, clock_realtime_ns());
    bytes_put(&w, entropy, sizeof(entropy));
    explicit_bzero(entropy, sizeof(entropy));
    frame(g, PROTO_WAKE, w.len, w.len);
    g->step = SEND_RUN;
    return 0;
}

/* The next chunk of PACKAGES, SKILL, INPUT or SESSION_IN, or the empty frame after the last. */
static int make_chunk(struct guest *g, enum proto_type type, const struct job_bytes *bytes,
                      const char *what, struct err *err)
{
    uint8_t *payload = payload_of_next(g);
    uint64_t left = bytes->len - g->sent;
    size_t n = left < PROTO_CHUNK_MAX ? (size_t)left : PROTO_CHUNK_MAX;
    int r = job_bytes_read(bytes, g->sent, payload, n);

    if (r < 0)
        return err_set_errno(err, -r, "cannot read the %s", what);
    frame(g, type, n, n);
    g->sent += n;
    if (n == 0) {
        g->step = g->is_holding ? SEND_NOTHING : g->step + 1;
        g->sent = 0;
    }
    return 0;
}

/* The next chunk of FILES_IN, or the empty frame after the last. */
static int make_files(struct guest *g, struct err *err)
{
    size_t n = 0;
    int r = input_stream_read(&g->files, payload_of_next(g), PROTO_CHUNK_MAX, &n, err);

    if (r < 0)
        return r;
    frame(g, PROTO_FILES_IN, n, n);
    if (n == 0)
        g->step = g->job->has_session ? SEND_SESSION_IN : SEND_DONE;
    return 0;
}

/* The next piece of the RUN payload, without a header of its own. RUN is never empty. */
static void make_run_body(struct guest *g)
{
    size_t left = g->job->run.len - (size_t)g->sent;
    size_t n = left < PROTO_CHUNK_MAX ? left : PROTO_CHUNK_MAX;

    memcpy(g->out + g->out_len, g->job->run.data + g->sent, n);
    g->out_len += n;
    g->sent += n;
    if (n == left) {
        g->sent = 0;
        g->step = SEND_SKILL;
        if (g->job->packages.len > 0) {
            g->step = SEND_PACKAGES;
            g->sent = g->holds ? g->job->packages.len : 0;
        }
    }
}

/* The tar, or of one that is a disk as well, once that is there, the empty frame alone. */
static int make_skill(struct guest *g, struct err *err)
{
    if (g->job->disk.len > 0 && !g->has_disk)
        return 0;
    if (g->has_disk)
        g->sent = g->job->skill.len;
    return make_chunk(g, PROTO_SKILL, &g->job->skill, "skill", err);
}

/* The next frame of the skill's connections, if there is any. */
static void make_network(struct guest *g)
{
    uint8_t type;
    size_t len;

    if (!g->sink->egress || g->decoder.stage != GUEST_RUNNING)
        return;
    len = egress_next(g->sink->egress, &type, payload_of_next(g));
    if (len > 0)
        frame(g, (enum proto_type)type, len, len);
}

/* Adds the next frame, or piece of one, to the out buffer, if there is any to send. */
static int make_frame(struct guest *g, struct err *err)
{
    if (g->cancel_due && g->decoder.stage >= GUEST_INJECTING && g->step == SEND_DONE) {
        g->cancel_due = false;
        frame(g, PROTO_CANCEL, 0, 0);
        return 0;
    }
    if (!g->job)
        return 0;
    switch (g->step) {
    case SEND_NOTHING:
        return 0;
    case SEND_DONE:
        make_network(g);
        return 0;
    case SEND_WAKE:
        return make_wake(g, err);
    case SEND_RUN:
        if (g->job->run.len > PROTO_PAYLOAD_MAX)
            return err_set(err, E2BIG, "arguments and environment are too large together");
        frame(g, PROTO_RUN, g->job->run.len, 0);
        g->step = SEND_RUN_BODY;
        return g->job->disk.len > 0 ? skill_disk_send(g->job, g->vm, err) : 0;
    case SEND_RUN_BODY:
        make_run_body(g);
        return 0;
    case SEND_PACKAGES:
        return make_chunk(g, PROTO_PACKAGES, &g->job->packages, "skill's packages", err);
    case SEND_SKILL:
        return make_skill(g, err);
    case SEND_INPUT:
        return make_chunk(g, PROTO_INPUT, job_input(g->job), "input", err);
    case SEND_FILES_IN:
        return make_files(g, err);
    case SEND_SESSION_IN:
        return make_chunk(g, PROTO_SESSION_IN, &g->job->session, "session", err);
    }
    return 0;
}

/* Fills the empty out buffer with as many frames as fit. */
static int fill_out(struct guest *g, struct err *err)
{
    size_t before;
    int r = 0;

    g->out_at = g->out_len = 0;
    if (g->step == SEND_DONE)
        g->decoder.injected = true;
    do {
        before = g->out_len;
        r = make_frame(g, err);
    } while (r == 0 && g->out_len > before &&
             sizeof(g->out) - g->out_len >= PROTO_HEADER_SIZE + PROTO_CHUNK_MAX);
    return r;
}

/* Sends until nothing is left or the socket is full. */
static int send_frames(struct guest *g, struct err *err)
{
    while (!g->is_deaf) {
        ssize_t n;

        if (g->out_at == g->out_len) {
            int r = fill_out(g, err);

            if (r < 0 || g->out_len == 0)
                return r;
        }
        n = send(g->vm->vsock_fd, g->out + g->out_at, g->out_len - g->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        /* A closed peer shows on the reading side, with what it said before. */
        g->is_deaf = n < 0 && (errno == EPIPE || errno == ECONNRESET);
        if (n < 0 && !g->is_deaf)
            return err_set_errno(err, errno, "cannot send to the guest");
        g->out_at = n < 0 ? g->out_len : g->out_at + (size_t)n;
    }
    return 0;
}

static int feed(struct guest *g, size_t len, struct err *err)
{
    for (size_t at = 0, used = 0; at < len; at += used) {
        const enum guest_stage stage = g->decoder.stage;
        const uint64_t seen = g->decoder.seen;
        int r = guest_decoder_feed(&g->decoder, g->in + at, len - at, g->sink, &used, err);

        if (g->decoder.stage != stage)
            enter_stage(g);
        if (r < 0)
            return r;
        /* Its bytes buy time, the headers around them none. */
        if (!g->cancelled)
            g->deadline_ns += (g->decoder.seen - seen) * NS_PER_MS / BYTES_PER_MS;
    }
    return 0;
}

/* Reads what is there. 0, -EPIPE at the end of the stream, or an error. */
static int receive(struct guest *g, struct err *err)
{
    for (unsigned i = 0; i < READS_IN_A_ROW && g->decoder.stage < GUEST_DONE; i++) {
        ssize_t n = recv(g->vm->vsock_fd, g->in, sizeof(g->in), MSG_DONTWAIT);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return -EPIPE;
        if (n < 0)
            return err_set_errno(err, errno, "cannot receive from the guest");
        r = feed(g, (size_t)n, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void read_control(struct guest *g)
{
    for (unsigned i = 0; i < READS_IN_A_ROW && !g->control_ended; i++) {
        struct vmm_event event;
        int r = vm_next_event(g->vm, &event, &g->ended);

        if (r == -EAGAIN)
            return;
        g->connected |= r == 0 && event.type == VMM_EVENT_CONNECTED;
        g->has_disk |= r == 0 && event.type == VMM_EVENT_DISK;
        if (r == 0 && event.type == VMM_EVENT_FAILED)
            r = err_set(&g->ended, EREMOTEIO, "the microVM failed: %s", event.message);
        if (r == 0 && event.type == VMM_EVENT_EXITED)
            r = err_set(&g->ended, EPIPE, "%s",
                        event.value == VMM_EXIT_RULES
                            ? "the guest kernel broke a device's rules"
                            : "the guest stopped before it had finished");
        g->control_ended = r < 0;
    }
}

static uint64_t no_later(const struct guest *g, uint64_t ns)
{
    return ns < g->deadline_ns ? ns : g->deadline_ns;
}

/* The wish to cancel arrived. 0 when the guest will be asked, -ECANCELED when it need not be.
 */
static int cancel(struct guest *g, struct err *err)
{
    g->cancelled = true;
    if (g->decoder.stage < GUEST_RUNNING)
        return err_set(err, ECANCELED, "cancelled before the skill ran");
    if (g->decoder.stage > GUEST_RUNNING) {
        g->deadline_ns = no_later(g, clock_monotonic_ns() + collect_ns(g));
        return 0;
    }
    g->cancel_due = true;
    g->times.cancelled_ns = clock_monotonic_ns();
    g->deadline_ns = g->times.cancelled_ns + g->grace_ns;
    return 0;
}

static int timed_out(const struct guest *g, struct err *err)
{
    static const char *const missing[] = {
        [GUEST_CONNECTING] = "the guest did not answer after it was restored",
        [GUEST_INJECTING] = "the guest did not start the skill",
        [GUEST_RUNNING] = "the guest did not end the skill at its deadline",
        [GUEST_OUTPUT] = "the guest did not hand over output.json",
        [GUEST_FILES] = "the guest did not hand over its files",
        [GUEST_SESSION] = "the guest did not hand over its session",
        [GUEST_ENDING] = "the guest did not finish",
    };

    return err_set(err, ETIMEDOUT, "%s", missing[g->decoder.stage]);
}

/* Sends what is due, once the guest is ready and there is something to run. */
static int advance(struct guest *g, struct err *err)
{
    if (g->job && !g->is_holding && g->step == SEND_NOTHING &&
        g->decoder.stage == GUEST_INJECTING) {
        g->step = SEND_WAKE;
        g->deadline_ns = clock_monotonic_ns() + inject_ns(g);
    }
    return send_frames(g, err);
}

/*
 * Why it is over too early; its user wants to know whether the skill had begun. The process
 * says why on the control socket, perhaps a moment later: a guest that restarts closes its
 * connection first, and who is ended by the kernel has a share of a processor.
 */
static int tell_end(struct guest *g, struct err *err)
{
    const enum guest_stage stage = g->decoder.stage;
    const char *when = stage < GUEST_RUNNING    ? "before"
                       : stage == GUEST_RUNNING ? "while"
                                                : "after";
    const uint64_t until_ns = no_later(g, clock_monotonic_ns() + REASON_NS);
    struct pollfd control = {.fd = g->vm->control_fd, .events = POLLIN};

    /* What a process says that was taken over may never end. */
    for (bool late = false; !g->control_ended && !late;) {
        late = clock_monotonic_ns() >= until_ns;
        (void)poll(&control, 1, clock_timeout_ms(until_ns));
        read_control(g);
    }
    if (!g->ended.code)
        return err_set(err, EPIPE,
                       "the guest closed the connection too early (%s the skill ran)", when);
    return err_set(err, g->ended.code, "%s (%s the skill ran)", g->ended.message, when);
}

/* The skill's connections while there may be any, or NULL. */
static struct egress *running_egress(const struct guest *g)
{
    return g->decoder.stage >= GUEST_RUNNING ? g->sink->egress : NULL;
}

/* One wait for anything to happen, and its handling. */
static int turn(struct guest *g, struct err *err)
{
    bool watch_cancel = g->cancel_fd >= 0 && !g->cancelled;
    bool sending = g->out_at < g->out_len;
    struct egress *egress = running_egress(g);
    uint64_t wake_ns = egress ? egress_deadline_ns(egress) : UINT64_MAX;
    struct pollfd p[4] = {
        {.fd = g->vm->vsock_fd, .events = (short)(POLLIN | (sending ? POLLOUT : 0))},
        {.fd = g->control_ended ? -1 : g->vm->control_fd, .events = POLLIN},
        {.fd = watch_cancel ? g->cancel_fd : -1, .events = POLLIN},
        {.fd = egress ? egress_fd(egress) : -1, .events = POLLIN},
    };
    int r;

    if (clock_monotonic_ns() >= g->deadline_ns)
        return timed_out(g, err);
    if (poll(p, 4, clock_timeout_ms(no_later(g, wake_ns))) < 0 && errno != EINTR)
        return err_set_errno(err, errno, "cannot wait for the guest");
    if (p[1].revents)
        read_control(g);
    if (p[2].revents) {
        r = cancel(g, err);
        if (r < 0)
            return r;
    }
    if (p[0].revents & ~POLLOUT) {
        r = receive(g, err);
        if (r == -EPIPE && g->decoder.stage < GUEST_DONE)
            return tell_end(g, err);
        if (r < 0)
            return r;
    } else if (g->control_ended) {
        /* Everything it left was read: the stream had nothing more. */
        return tell_end(g, err);
    }
    /* Its first frames may have come together with STARTED. */
    if (running_egress(g))
        egress_work(g->sink->egress);
    return g->decoder.stage < GUEST_DONE ? advance(g, err) : 0;
}

struct guest *guest_open(struct vm *vm, uint64_t start_ns, uint64_t grace_ms)
{
    static const struct guest_decoder_limits limits = {.output_bytes = LIMIT_OUTPUT_BYTES,
                                                       .files_bytes = LIMIT_FILES_STREAM,
                                                       .session_bytes = LIMIT_SESSION_STREAM};
    static const struct guest_sink nobody;
    struct guest *g = malloc(sizeof(*g));

    if (!g)
        return NULL;
    memset(g, 0, offsetof(struct guest, decoder));
    g->vm = vm;
    g->grace_ns = grace_ms * NS_PER_MS;
    g->deadline_ns = start_ns + CONNECT_GRACES * g->grace_ns;
    g->sink = &nobody;
    g->cancel_fd = -1;
    guest_decoder_init(&g->decoder, &limits);
    return g;
}

void guest_close(struct guest *g)
{
    free(g);
}

int guest_wait_ready(struct guest *g, uint64_t deadline_ns, struct err *err)
{
    int r = 0;

    g->deadline_ns = deadline_ns;
    while (r == 0 && (g->decoder.stage == GUEST_CONNECTING || !g->connected))
        r = turn(g, err);
    return r;
}

/* Sends what is due, and waits for WARMED. */
static int await_warmed(struct guest *g, uint64_t deadline_ns, struct err *err)
{
    int r;

    g->decoder.warming = true;
    g->deadline_ns = deadline_ns;
    r = send_frames(g, err);
    while (r == 0 && g->decoder.warming)
        r = turn(g, err);
    return r;
}

int guest_warm(struct guest *g, const char *modules, uint64_t deadline_ns, struct err *err)
{
    size_t len = strlen(modules);

    if (len == 0 || len > PROTO_WARM_MAX)
        return err_set(err, EINVAL, "no list of modules to warm");
    memcpy(payload_of_next(g), modules, len);
    frame(g, PROTO_WARM, len, len);
    return await_warmed(g, deadline_ns, err);
}

int guest_hold(struct guest *g, const struct job *job, uint64_t deadline_ns, struct err *err)
{
    int r;

    g->job = job;
    g->is_holding = true;
    g->step = SEND_PACKAGES;
    frame(g, PROTO_HOLD, 0, 0);
    deadline_ns += (job->packages.len / BYTES_PER_MS + PROTO_COMPILE_MS) * NS_PER_MS;
    r = await_warmed(g, deadline_ns, err);
    g->is_holding = false;
    g->job = NULL;
    return r;
}

void guest_holds_packages(struct guest *g)
{
    g->holds = true;
}

int guest_run(struct guest *g, const struct job *job, const struct guest_sink *sink,
              int cancel_fd, struct guest_report *report, struct err *err)
{
    int r;

    g->job = job;
    g->decoder.has_session = job->has_session;
    g->sink = sink;
    g->cancel_fd = cancel_fd;
    g->files = input_stream_init(&job->files);
    r = advance(g, err);
    while (r == 0 && g->decoder.stage < GUEST_DONE)
        r = turn(g, err);
    if (r == 0 && sink->egress)
        guest_drain_wait(sink->egress, cancel_fd);
    input_stream_finish(&g->files);
    *report = (struct guest_report){
        .times = g->times, .exit = g->decoder.exit, .cancelled = g->cancelled};
    return r;
}
