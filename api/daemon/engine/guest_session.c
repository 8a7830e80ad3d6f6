/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/guest_session.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define MS             1000000ull
#define READ_SIZE      (64u * 1024u)
#define CONNECT_GRACES 6u /* restore and connect may take this many graces */
#define INJECT_GRACES  12u
#define COLLECT_GRACES 12u
/* On top of it what a guest of the slowest kind takes in per millisecond. */
#define INJECT_BYTES_PER_MS 1024u
/* Small frames travel together: every write wakes the machine. */
#define OUT_SIZE       (2u * (PROTO_HEADER_SIZE + PROTO_CHUNK_MAX))
#define READS_IN_A_ROW 16u /* then the other descriptors get their turn */

enum send_step {
    SEND_NOTHING, /* READY has not come */
    SEND_WAKE,
    SEND_RUN,
    SEND_RUN_BODY,
    SEND_SKILL,
    SEND_INPUT,
    SEND_FILES_IN,
    SEND_DONE,
};

struct session {
    struct vm *vm;
    const struct guest_session_plan *plan;
    const struct guest_session_events *events;
    void *ctx;
    struct guest_session_report *report;
    struct guest_decoder decoder;
    uint64_t deadline_ns;
    enum send_step step;
    uint64_t sent; /* of the step's bytes */
    struct input_stream files;
    size_t out_at; /* of out, written already */
    size_t out_len;
    bool only_ready;    /* nothing is sent, READY is the end */
    bool cancel_due;    /* CANCEL goes out next */
    bool control_ended; /* the process went away; bytes it left may still be read */
    struct err ended;   /* why it did */
    /* From here on nothing is initialised. */
    uint8_t in[READ_SIZE];
    uint8_t out[OUT_SIZE];
};

static int on_log(void *ctx, enum guest_stream stream, const uint8_t *data, size_t len,
                  struct err *err)
{
    struct session *s = ctx;

    return s->events->log(s->ctx, stream, data, len, err);
}

static int on_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct session *s = ctx;

    return s->events->output(s->ctx, data, len, err);
}

static int on_files(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct session *s = ctx;

    return s->events->files(s->ctx, data, len, err);
}

static int on_exited(void *ctx, const struct guest_exit *how, struct err *err)
{
    struct session *s = ctx;

    (void)err;
    s->report->exit = *how;
    return 0;
}

/* How long the guest may take for all that it is given. */
static uint64_t inject_ns(const struct guest_session_plan *plan)
{
    uint64_t bytes = plan->skill_bytes + plan->input_bytes;

    for (size_t i = 0; plan->files && i < plan->files->n; i++)
        bytes += plan->files->items[i].bytes;
    return (INJECT_GRACES * plan->grace_ms + bytes / INJECT_BYTES_PER_MS) * MS;
}

static void on_stage(void *ctx, enum guest_stage stage)
{
    struct session *s = ctx;
    uint64_t now = clock_monotonic_ns();
    uint64_t grace_ns = s->plan->grace_ms * MS;

    switch (stage) {
    case GUEST_INJECTING:
        s->report->times.ready_ns = now;
        s->deadline_ns = now + inject_ns(s->plan);
        s->step = SEND_WAKE;
        break;
    case GUEST_RUNNING:
        s->report->times.started_ns = now;
        /* A cancelled run keeps the deadline that cancelling set. */
        if (!s->report->cancelled)
            s->deadline_ns = now + s->plan->timeout_ms * MS + grace_ns;
        if (s->events->started)
            s->events->started(s->ctx);
        break;
    case GUEST_OUTPUT:
        s->report->times.exit_ns = now;
        if (s->events->ended)
            s->events->ended(s->ctx);
        s->deadline_ns = now + COLLECT_GRACES * grace_ns;
        break;
    case GUEST_DONE:
        s->report->times.done_ns = now;
        break;
    default:
        break;
    }
}

static const struct guest_handlers handlers = {
    .log = on_log,
    .exited = on_exited,
    .output = on_output,
    .files = on_files,
    .stage = on_stage,
};

/* Where the payload of the next frame goes: PROTO_CHUNK_MAX bytes fit. */
static uint8_t *payload_of_next(struct session *s)
{
    return s->out + s->out_len + PROTO_HEADER_SIZE;
}

/* Adds a frame to the out buffer; payload_here bytes are already in their place. */
static void frame(struct session *s, enum proto_type type, size_t len, size_t payload_here)
{
    struct bytes_writer w = bytes_writer_init(s->out + s->out_len, PROTO_HEADER_SIZE);

    bytes_put_u32(&w, (uint32_t)len);
    bytes_put_u8(&w, (uint8_t)type);
    bytes_put_u8(&w, 0);
    bytes_put_u16(&w, 0);
    s->out_len += PROTO_HEADER_SIZE + payload_here;
}

static int make_wake(struct session *s, struct err *err)
{
    struct bytes_writer w = bytes_writer_init(payload_of_next(s), PROTO_WAKE_SIZE);
    uint8_t entropy[PROTO_ENTROPY_SIZE];

    if (getrandom(entropy, sizeof(entropy), 0) != (ssize_t)sizeof(entropy))
        return err_set(err, EIO, "no random bytes for the guest");
    bytes_put_u64(&w, clock_realtime_ns());
    bytes_put(&w, entropy, sizeof(entropy));
    explicit_bzero(entropy, sizeof(entropy));
    frame(s, PROTO_WAKE, w.len, w.len);
    s->step = SEND_RUN;
    return 0;
}

static int read_input(const struct session *s, uint8_t *data, size_t len)
{
    const struct guest_session_plan *plan = s->plan;

    if (plan->input_text) {
        memcpy(data, plan->input_text + s->sent, len);
        return 0;
    }
    return spool_read(plan->input, plan->input_at + s->sent, data, len);
}

/* The next chunk of SKILL or INPUT, or the empty frame after the last. */
static int make_chunk(struct session *s, enum proto_type type, uint64_t total,
                      enum send_step next, struct err *err)
{
    uint8_t *payload = payload_of_next(s);
    uint64_t left = total - s->sent;
    size_t n = left < PROTO_CHUNK_MAX ? (size_t)left : PROTO_CHUNK_MAX;
    int r = 0;

    if (n > 0 && type == PROTO_SKILL) {
        ssize_t got = fd_pread_full(s->plan->skill_fd, payload, n, s->sent);

        if (got < 0 || (size_t)got != n)
            r = got < 0 ? (int)got : -EIO;
    } else if (n > 0) {
        r = read_input(s, payload, n);
    }
    if (r < 0)
        return err_set_errno(err, -r, "cannot read the %s",
                             type == PROTO_SKILL ? "skill" : "input");
    frame(s, type, n, n);
    s->sent += n;
    if (n == 0) {
        s->step = next;
        s->sent = 0;
    }
    return 0;
}

/* The next chunk of FILES_IN, or the empty frame after the last. */
static int make_files(struct session *s, struct err *err)
{
    size_t n = 0;
    int r = input_stream_read(&s->files, payload_of_next(s), PROTO_CHUNK_MAX, &n, err);

    if (r < 0)
        return r;
    frame(s, PROTO_FILES_IN, n, n);
    if (n == 0)
        s->step = SEND_DONE;
    return 0;
}

/* The next piece of the RUN payload, without a header of its own. RUN is never empty. */
static void make_run_body(struct session *s)
{
    size_t left = s->plan->run->len - (size_t)s->sent;
    size_t n = left < PROTO_CHUNK_MAX ? left : PROTO_CHUNK_MAX;

    memcpy(s->out + s->out_len, s->plan->run->data + s->sent, n);
    s->out_len += n;
    s->sent += n;
    if (n == left) {
        s->sent = 0;
        s->step = SEND_SKILL;
    }
}

/* Adds the next frame, or piece of one, to the out buffer, if there is any to send. */
static int make_frame(struct session *s, struct err *err)
{
    if (s->cancel_due && s->decoder.stage >= GUEST_INJECTING && s->step == SEND_DONE) {
        s->cancel_due = false;
        frame(s, PROTO_CANCEL, 0, 0);
        return 0;
    }
    switch (s->step) {
    case SEND_NOTHING:
    case SEND_DONE:
        return 0;
    case SEND_WAKE:
        return make_wake(s, err);
    case SEND_RUN:
        if (s->plan->run->len > PROTO_PAYLOAD_MAX)
            return err_set(err, E2BIG, "arguments and environment are too large together");
        frame(s, PROTO_RUN, s->plan->run->len, 0);
        s->step = SEND_RUN_BODY;
        return 0;
    case SEND_RUN_BODY:
        make_run_body(s);
        return 0;
    case SEND_SKILL:
        return make_chunk(s, PROTO_SKILL, s->plan->skill_bytes, SEND_INPUT, err);
    case SEND_INPUT:
        return make_chunk(s, PROTO_INPUT, s->plan->input_bytes, SEND_FILES_IN, err);
    case SEND_FILES_IN:
        return make_files(s, err);
    }
    return 0;
}

/* Fills the empty out buffer with as many frames as fit. */
static int fill_out(struct session *s, struct err *err)
{
    size_t before;
    int r = 0;

    s->out_at = s->out_len = 0;
    if (s->step == SEND_DONE)
        guest_decoder_set_injected(&s->decoder);
    do {
        before = s->out_len;
        r = make_frame(s, err);
    } while (r == 0 && s->out_len > before &&
             sizeof(s->out) - s->out_len >= PROTO_HEADER_SIZE + PROTO_CHUNK_MAX);
    return r;
}

/* Sends until nothing is left or the socket is full. */
static int send_frames(struct session *s, struct err *err)
{
    for (;;) {
        ssize_t n;

        if (s->out_at == s->out_len) {
            int r = fill_out(s, err);

            if (r < 0 || s->out_len == 0)
                return r;
        }
        n = send(s->vm->vsock_fd, s->out + s->out_at, s->out_len - s->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        /* A closed peer shows on the reading side, with what it said before. */
        if (n < 0 && (errno == EAGAIN || errno == EPIPE || errno == ECONNRESET))
            return 0;
        if (n < 0)
            return err_set_errno(err, errno, "cannot send to the guest");
        s->out_at += (size_t)n;
    }
}

/* Reads what is there. 0, -EPIPE at the end of the stream, or an error. */
static int receive(struct session *s, struct err *err)
{
    for (unsigned i = 0; i < READS_IN_A_ROW && s->decoder.stage < GUEST_DONE; i++) {
        ssize_t n = recv(s->vm->vsock_fd, s->in, sizeof(s->in), MSG_DONTWAIT);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return -EPIPE;
        if (n < 0)
            return err_set_errno(err, errno, "cannot receive from the guest");
        r = guest_decoder_feed(&s->decoder, s->in, (size_t)n, &handlers, s, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The process may be in the guest's hands: it is believed nothing it cannot know. */
static void note_resumed(struct session *s, uint64_t time_ns)
{
    if (time_ns >= s->report->times.start_ns && time_ns <= clock_monotonic_ns())
        s->report->times.resumed_ns = time_ns;
}

static void read_control(struct session *s)
{
    for (unsigned i = 0; i < READS_IN_A_ROW && !s->control_ended; i++) {
        struct vmm_event event;
        int r = vm_next_event(s->vm, &event, &s->ended);

        if (r == -EAGAIN)
            return;
        if (r == 0 && event.type == VMM_EVENT_RESUMED)
            note_resumed(s, event.time_ns);
        if (r == 0 && event.type == VMM_EVENT_FAILED)
            r = err_set(&s->ended, EREMOTEIO, "the microVM failed: %s", event.message);
        if (r == 0 && event.type == VMM_EVENT_EXITED)
            r = err_set(&s->ended, EPIPE, "%s",
                        event.value == VMM_EXIT_RULES
                            ? "the guest kernel broke a device's rules"
                            : "the guest stopped before it had finished");
        s->control_ended = r < 0;
    }
}

/* The wish to cancel arrived. 0 when the guest will be asked, -ECANCELED when it need not be.
 */
static int cancel(struct session *s, struct err *err)
{
    s->report->cancelled = true;
    if (s->decoder.stage < GUEST_RUNNING)
        return err_set(err, ECANCELED, "cancelled before the skill ran");
    if (s->decoder.stage > GUEST_RUNNING)
        return 0;
    s->cancel_due = true;
    s->deadline_ns = clock_monotonic_ns() + s->plan->grace_ms * MS;
    return 0;
}

static int timed_out(const struct session *s, struct err *err)
{
    static const char *const missing[] = {
        [GUEST_CONNECTING] = "the guest did not answer after it was restored",
        [GUEST_INJECTING] = "the guest did not start the skill",
        [GUEST_RUNNING] = "the guest did not end the skill at its deadline",
        [GUEST_OUTPUT] = "the guest did not hand over output.json",
        [GUEST_FILES] = "the guest did not hand over its files",
        [GUEST_ENDING] = "the guest did not finish",
    };

    return err_set(err, ETIMEDOUT, "%s", missing[s->decoder.stage]);
}

/* One wait for anything to happen, and its handling. */
static int turn(struct session *s, struct err *err)
{
    bool watch_cancel = s->plan->cancel_fd >= 0 && !s->report->cancelled;
    bool sending = s->out_at < s->out_len;
    struct pollfd p[3] = {
        {.fd = s->vm->vsock_fd, .events = (short)(POLLIN | (sending ? POLLOUT : 0))},
        {.fd = s->control_ended ? -1 : s->vm->control_fd, .events = POLLIN},
        {.fd = watch_cancel ? s->plan->cancel_fd : -1, .events = POLLIN},
    };
    int r;

    if (clock_monotonic_ns() >= s->deadline_ns)
        return timed_out(s, err);
    if (poll(p, 3, clock_timeout_ms(s->deadline_ns)) < 0 && errno != EINTR)
        return err_set_errno(err, errno, "cannot wait for the guest");
    if (p[1].revents)
        read_control(s);
    if (p[2].revents) {
        r = cancel(s, err);
        if (r < 0)
            return r;
    }
    if (p[0].revents & ~POLLOUT) {
        r = receive(s, err);
        if (r == -EPIPE && !s->control_ended && s->decoder.stage < GUEST_DONE) {
            /* The process tells its reason on the control socket, perhaps a moment later. */
            struct pollfd control = {.fd = s->vm->control_fd, .events = POLLIN};

            (void)poll(&control, 1, 100);
            read_control(s);
        }
        if (r == -EPIPE && s->decoder.stage < GUEST_DONE)
            return s->ended.code
                       ? err_set(err, s->ended.code, "%s", s->ended.message)
                       : err_set(err, EPIPE, "the guest closed the connection too early");
        if (r < 0)
            return r;
    } else if (s->control_ended) {
        /* Everything it left was read: the stream had nothing more. */
        return err_set(err, s->ended.code, "%s", s->ended.message);
    }
    return s->decoder.stage < GUEST_DONE && !s->only_ready ? send_frames(s, err) : 0;
}

static struct session *create(struct vm *vm, const struct guest_session_plan *plan,
                              struct guest_session_report *report)
{
    struct session *s = malloc(sizeof(*s));

    if (!s)
        return NULL;
    memset(s, 0, offsetof(struct session, in));
    s->vm = vm;
    s->plan = plan;
    s->report = report;
    s->files = input_stream_init(plan->files);
    guest_decoder_init(&s->decoder, &plan->limits);
    return s;
}

int guest_session_run(struct vm *vm, const struct guest_session_plan *plan,
                      const struct guest_session_events *events, void *ctx, uint64_t start_ns,
                      struct guest_session_report *report, struct err *err)
{
    struct session *s = create(vm, plan, report);
    int r = 0;

    *report = (struct guest_session_report){.times = {.start_ns = start_ns}};
    if (!s)
        return err_set(err, ENOMEM, "out of memory");
    s->events = events;
    s->ctx = ctx;
    s->deadline_ns = start_ns + CONNECT_GRACES * plan->grace_ms * MS;
    while (r == 0 && s->decoder.stage < GUEST_DONE)
        r = turn(s, err);
    input_stream_finish(&s->files);
    free(s);
    return r;
}

int guest_session_wait_ready(struct vm *vm, uint64_t deadline_ns, struct err *err)
{
    static const struct guest_session_plan nothing = {.cancel_fd = -1};
    struct guest_session_report report = {0};
    struct session *s = create(vm, &nothing, &report);
    int r = 0;

    if (!s)
        return err_set(err, ENOMEM, "out of memory");
    s->only_ready = true;
    s->deadline_ns = deadline_ns;
    while (r == 0 && s->decoder.stage == GUEST_CONNECTING)
        r = turn(s, err);
    input_stream_finish(&s->files);
    free(s);
    return r;
}
