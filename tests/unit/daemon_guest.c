/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to a guest, by itself: guests that take nothing, or take their time. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/guest.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/frame_header.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 250u
/* Of a guest that must come to its files first, on a machine that stands still now and then. */
#define PATIENT_MS 1500u
#define MS         1000000ull

struct fixture {
    struct vm vm;
    int guest_fd;   /* the guest's end */
    int control_fd; /* the process's end */
    int cancel_fd;
    struct job job;
    enum guest_stage cancel_at;
    unsigned grace_ms;
    struct guest_report report;
};

static void say(const struct fixture *f, uint8_t type, const void *data, size_t len)
{
    uint8_t header[PROTO_HEADER_SIZE];

    frame_header_write(header, type, len);
    assert_int_equal(fd_write_full(f->guest_fd, header, sizeof(header)), 0);
    assert_int_equal(fd_write_full(f->guest_fd, data, len), 0);
}

static int setup(void **state)
{
    static const uint8_t ready[] = {PROTO_VERSION, 0, 0, 0};
    static struct fixture f;
    int stream[2], control[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
    assert_int_equal(fd_set_nonblock(stream[0], true), 0);
    f = (struct fixture){.vm = vm_init(),
                         .guest_fd = stream[1],
                         .control_fd = control[1],
                         .cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                         .job = job_init(),
                         .grace_ms = GRACE_MS};
    f.vm.vsock_fd = stream[0];
    f.vm.control_fd = control[0];
    f.job.timeout_ms = 60000;
    assert_int_equal(buf_append(&f.job.run, "x", 1), 0);
    say(&f, PROTO_READY, ready, sizeof(ready));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    job_finish(&f->job);
    vm_finish(&f->vm);
    close(f->guest_fd);
    close(f->control_fd);
    close(f->cancel_fd);
    return 0;
}

/* The wish to cancel comes as soon as a stage begins. */
static void on_stage(void *ctx, enum guest_stage stage)
{
    const struct fixture *f = ctx;

    if (stage == f->cancel_at)
        assert_int_equal(eventfd_write(f->cancel_fd, 1), 0);
}

static int run(struct fixture *f, struct err *err)
{
    const struct guest_sink sink = {.ctx = f, .stage = on_stage};
    struct guest *guest = guest_open(&f->vm, clock_monotonic_ns(), f->grace_ms);
    int r;

    assert_non_null(guest);
    r = guest_run(guest, &f->job, &sink, f->cancel_fd, &f->report, err);
    guest_close(guest);
    return r;
}

/* Reads no more, and says nothing. Who waits for it until the deadline sleeps meanwhile. */
static void a_guest_that_takes_nothing_costs_nothing(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    uint64_t cpu_ns = clock_thread_cpu_ns();

    assert_int_equal(shutdown(f->guest_fd, SHUT_RD), 0);
    assert_int_equal(run(f, &err), -ETIMEDOUT);
    assert_string_equal(err.message, "the guest did not start the skill");
    assert_true(clock_thread_cpu_ns() - cpu_ns < 2 * GRACE_MS * MS);
}

/* Takes what it is given, and ends the skill. */
static void end_skill(const struct fixture *f)
{
    static const uint8_t exit_payload[PROTO_EXIT_SIZE];
    uint8_t header[PROTO_HEADER_SIZE], payload[256];

    do {
        assert_int_equal(fd_read_full(f->guest_fd, header, sizeof(header)), sizeof(header));
        assert_int_equal(fd_read_full(f->guest_fd, payload, header[0]), header[0]);
    } while (header[4] != PROTO_FILES_IN);
    say(f, PROTO_STARTED, NULL, 0);
    say(f, PROTO_EXIT, exit_payload, sizeof(exit_payload));
}

/* Says nothing more then. */
static void *end_and_wait(void *ctx)
{
    end_skill(ctx);
    return NULL;
}

/* Hands over much, and the last of it when a guest without files would be late. */
static void *end_slowly(void *ctx)
{
    static const uint8_t piece[PROTO_CHUNK_MAX];
    const struct fixture *f = ctx;
    const struct timespec late = {.tv_sec = 13 * f->grace_ms / 1000,
                                  .tv_nsec = 13 * f->grace_ms % 1000 * MS};

    end_skill(f);
    say(f, PROTO_OUTPUT, NULL, 0);
    for (size_t sent = 0; sent < 16u << 20; sent += sizeof(piece))
        say(f, PROTO_FILES, piece, sizeof(piece));
    (void)nanosleep(&late, NULL);
    say(f, PROTO_FILES, NULL, 0);
    say(f, PROTO_DONE, NULL, 0);
    return NULL;
}

static void files_have_the_time_that_they_take(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    pthread_t guest;

    f->grace_ms = PATIENT_MS;
    assert_int_equal(pthread_create(&guest, NULL, end_slowly, f), 0);
    if (run(f, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(pthread_join(guest, NULL), 0);
}

/* Files of so many frames with a byte each, whose end does not come. */
#define DRIBBLES (2u << 20)

static void *dribble(void *ctx)
{
    enum { FRAME = PROTO_HEADER_SIZE + 1, MANY = 4096 };
    static uint8_t frames[MANY * FRAME];
    const struct fixture *f = ctx;
    bool is_heard = true;

    for (size_t i = 0; i < MANY; i++)
        frame_header_write(frames + i * FRAME, PROTO_FILES, 1);
    end_skill(f);
    say(f, PROTO_OUTPUT, NULL, 0);
    for (size_t sent = 0; sent < DRIBBLES && is_heard; sent += MANY)
        for (size_t at = 0; at < sizeof(frames) && is_heard;) {
            ssize_t n = send(f->guest_fd, frames + at, sizeof(frames) - at, MSG_NOSIGNAL);

            is_heard = n > 0;
            at += n > 0 ? (size_t)n : 0;
        }
    return NULL;
}

static void headers_of_frames_buy_no_time(void **state)
{
    /* A KiB buys a millisecond: with their headers they were nine times what they are. */
    const uint64_t with_headers_ns = DRIBBLES / 1024u * (PROTO_HEADER_SIZE + 1) * MS;
    struct fixture *f = *state;
    uint64_t begin_ns = clock_monotonic_ns();
    struct err err = {0};
    pthread_t guest;

    /* No more: what all of it takes is measured. */
    f->grace_ms = 2 * GRACE_MS;
    assert_int_equal(pthread_create(&guest, NULL, dribble, f), 0);
    assert_int_equal(run(f, &err), -ETIMEDOUT);
    assert_true(clock_monotonic_ns() - begin_ns < with_headers_ns);
    assert_string_equal(err.message, "the guest did not hand over its files");
    assert_int_equal(shutdown(f->guest_fd, SHUT_RDWR), 0);
    assert_int_equal(pthread_join(guest, NULL), 0);
}

static void cancel_shortens_collection(struct fixture *f, enum guest_stage at)
{
    uint64_t begin_ns = clock_monotonic_ns();
    struct err err = {0};
    pthread_t guest;

    f->cancel_at = at;
    /* Two graces rather than twelve. */
    f->grace_ms = PATIENT_MS;
    assert_int_equal(pthread_create(&guest, NULL, end_and_wait, f), 0);
    assert_int_equal(run(f, &err), -ETIMEDOUT);
    assert_int_equal(pthread_join(guest, NULL), 0);
    assert_string_equal(err.message, "the guest did not hand over output.json");
    assert_true(f->report.cancelled);
    assert_true(clock_monotonic_ns() - begin_ns < 10 * f->grace_ms * MS);
}

static void a_cancel_before_the_end_shortens_collection(void **state)
{
    cancel_shortens_collection(*state, GUEST_RUNNING);
}

static void a_cancel_after_the_end_shortens_collection(void **state)
{
    cancel_shortens_collection(*state, GUEST_OUTPUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_guest_that_takes_nothing_costs_nothing),
        TEST(files_have_the_time_that_they_take),
        TEST(headers_of_frames_buy_no_time),
        TEST(a_cancel_before_the_end_shortens_collection),
        TEST(a_cancel_after_the_end_shortens_collection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
