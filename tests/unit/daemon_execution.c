/* SPDX-License-Identifier: Apache-2.0 */
/* An execution in memory: what its readers see, whenever they look. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/execution.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MANY   3600000 /* readers: a rest of an hour */
#define PIECES 20000

static struct execution *create(void)
{
    struct execution *e = execution_create("default", NULL);

    assert_non_null(e);
    return e;
}

static enum execution_news next(struct execution *e, struct execution_cursor *c, char *text,
                                size_t size, enum guest_stream *stream)
{
    size_t len = 0;
    enum execution_news news =
        execution_next(e, c, clock_monotonic_ns() + 1000000, stream, text, size - 1, &len);

    text[news == EXECUTION_LOG ? len : 0] = '\0';
    return news;
}

static void end(struct execution *e)
{
    struct buf result = buf_init(10);

    assert_int_equal(buf_append(&result, "{}\n", 3), 0);
    execution_end(e, NULL, &result, NULL);
}

/* A reader that looks only when everything is over sees all of it, in its order. */
static void a_late_reader_misses_nothing(void **state)
{
    struct execution *e = create();
    struct execution_cursor c = {0};
    enum guest_stream stream = GUEST_STDOUT;
    char text[16];

    (void)state;
    execution_set_state(e, EXECUTION_RUNNING);
    execution_append_log(e, GUEST_STDOUT, "ab", 2);
    execution_append_log(e, GUEST_STDOUT, "c", 1);
    execution_append_log(e, GUEST_STDERR, "d", 1);
    execution_set_state(e, EXECUTION_COLLECTING);
    end(e);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_STATE);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_LOG);
    assert_string_equal(text, "abc");
    assert_int_equal(stream, GUEST_STDOUT);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_LOG);
    assert_string_equal(text, "d");
    assert_int_equal(stream, GUEST_STDERR);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_RESULT);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_RESULT);
    execution_unref(e);
}

static void a_reader_follows(void **state)
{
    struct execution *e = create();
    struct execution_cursor c = {0};
    enum guest_stream stream = GUEST_STDOUT;
    char text[3];

    (void)state;
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_NOTHING);
    execution_set_state(e, EXECUTION_RUNNING);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_STATE);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_NOTHING);
    execution_append_log(e, GUEST_STDERR, "xyz", 3);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_LOG);
    assert_string_equal(text, "xy");
    execution_append_log(e, GUEST_STDERR, "!", 1);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_LOG);
    assert_string_equal(text, "z!");
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_NOTHING);
    end(e);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_RESULT);
    execution_unref(e);
}

static long switches(void)
{
    struct rusage usage = {.ru_nvcsw = PIECES};

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* How often it was woken; very often where something else is wrong. */
static void *wait_for_end(void *e)
{
    const long before = switches();

    return (void *)(execution_wait(e) ? switches() - before : PIECES);
}

static void *follow_to_end(void *e)
{
    struct execution_cursor c = {.told_ran = true};
    enum guest_stream stream = GUEST_STDOUT;
    size_t len = 0;
    char text[PIECES];
    const long before = switches();

    execution_rest(e, &c);
    return (void *)(execution_next(e, &c, UINT64_MAX, &stream, text, sizeof(text), &len) ==
                            EXECUTION_LOG
                        ? switches() - before
                        : PIECES);
}

/* Pieces of a log wake neither who waits for the end nor who has a rest. */
static void pieces_wake_who_follows(void **state)
{
    struct execution *e = create();
    pthread_t threads[2];
    void *woken;

    (void)state;
    for (int i = 1; i < MANY; i++)
        (void)execution_ref(e);
    execution_set_state(e, EXECUTION_RUNNING);
    assert_int_equal(pthread_create(&threads[0], NULL, wait_for_end, e), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, follow_to_end, e), 0);
    /* With time for each to be woken. */
    for (int i = 0; i < PIECES; i++) {
        execution_append_log(e, GUEST_STDOUT, "a", 1);
        sched_yield();
    }
    end(e);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &woken), 0);
        assert_true((long)woken < PIECES / 100);
    }
    for (int i = 0; i < MANY; i++)
        execution_unref(e);
}

static void *end_it(void *e)
{
    end(e);
    return NULL;
}

/* Pieces come together to one of many, what ends it at once. */
static void a_reader_among_many_rests(void **state)
{
    struct execution *e = create();
    struct execution_cursor c = {0};
    enum guest_stream stream = GUEST_STDOUT;
    size_t len = 0;
    pthread_t other;
    char text[16];

    (void)state;
    execution_set_state(e, EXECUTION_RUNNING);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_STATE);
    execution_append_log(e, GUEST_STDOUT, "a", 1);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_LOG);
    assert_string_equal(text, "a");
    /* Some milliseconds for each of them. */
    for (int i = 1; i < MANY; i++)
        (void)execution_ref(e);
    execution_rest(e, &c);
    execution_append_log(e, GUEST_STDOUT, "b", 1);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_NOTHING);
    execution_append_log(e, GUEST_STDOUT, "c", 1);
    /* An hour, if it were not for the end. */
    assert_int_equal(pthread_create(&other, NULL, end_it, e), 0);
    assert_int_equal(execution_next(e, &c, UINT64_MAX, &stream, text, sizeof(text), &len),
                     EXECUTION_LOG);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(len, 2);
    assert_memory_equal(text, "bc", 2);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_RESULT);
    for (int i = 1; i < MANY; i++)
        execution_unref(e);
    execution_unref(e);
}

/* And one alone for so short that he sees no rest. */
static void a_rest_ends(void **state)
{
    struct execution *e = create();
    struct execution_cursor c = {.told_ran = true};
    enum guest_stream stream = GUEST_STDOUT;
    size_t len = 0;
    char text[16];

    (void)state;
    execution_set_state(e, EXECUTION_RUNNING);
    execution_append_log(e, GUEST_STDOUT, "a", 1);
    execution_rest(e, &c);
    assert_int_equal(execution_next(e, &c, UINT64_MAX, &stream, text, sizeof(text), &len),
                     EXECUTION_LOG);
    assert_int_equal(len, 1);
    end(e);
    execution_unref(e);
}

/* A reader who comes again, after any byte, sees what is behind it and nothing twice. */
static void a_reader_comes_again_where_it_was(void **state)
{
    static const char log[] = "abcde";
    struct execution *e = create();

    (void)state;
    execution_append_log(e, GUEST_STDOUT, "ab", 2);
    execution_append_log(e, GUEST_STDERR, "cd", 2);
    execution_append_log(e, GUEST_STDOUT, "e", 1);
    for (size_t at = 0; at <= sizeof(log); at++) {
        struct execution_cursor c = {.told_ran = true};
        enum guest_stream stream = GUEST_STDOUT;
        char text[16], seen[16] = "";

        execution_seek(e, at, &c);
        while (next(e, &c, text, sizeof(text), &stream) == EXECUTION_LOG) {
            assert_int_equal(stream, strpbrk(text, "cd") ? GUEST_STDERR : GUEST_STDOUT);
            (void)strcat(seen, text);
        }
        assert_string_equal(seen, at < 5 ? log + at : "");
        assert_true(c.told_ran);
    }
    /* The last piece may grow. */
    {
        struct execution_cursor c = {0};
        enum guest_stream stream = GUEST_STDERR;
        char text[16];

        execution_seek(e, LIMIT_LOG_BYTES, &c);
        execution_append_log(e, GUEST_STDOUT, "f", 1);
        assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_LOG);
        assert_string_equal(text, "f");
        assert_int_equal(stream, GUEST_STDOUT);
    }
    execution_unref(e);
}

/* What never ran is not said to have run. */
static void what_never_ran(void **state)
{
    struct execution *e = create();
    struct execution_cursor c = {0};
    enum guest_stream stream = GUEST_STDOUT;
    char text[4];

    (void)state;
    end(e);
    assert_int_equal(next(e, &c, text, sizeof(text), &stream), EXECUTION_RESULT);
    execution_unref(e);
}

static void the_log_is_bounded(void **state)
{
    struct execution *e = create();
    char *block = calloc(1, LIMIT_LOG_BYTES);

    (void)state;
    assert_non_null(block);
    execution_append_log(e, GUEST_STDOUT, block, LIMIT_LOG_BYTES - 1);
    assert_false(e->log_clipped);
    execution_append_log(e, GUEST_STDERR, block, 2);
    assert_true(e->log_clipped);
    assert_int_equal(e->log.len, LIMIT_LOG_BYTES);
    execution_append_log(e, GUEST_STDOUT, block, 1);
    assert_int_equal(e->log.len, LIMIT_LOG_BYTES);
    free(block);
    execution_unref(e);
}

static void cancelling_is_seen(void **state)
{
    struct execution *e = create();
    struct pollfd p = {.fd = e->cancel_fd, .events = POLLIN};

    (void)state;
    assert_int_equal(poll(&p, 1, 0), 0);
    execution_cancel(e);
    execution_cancel(e);
    assert_int_equal(poll(&p, 1, 0), 1);
    execution_unref(e);
}

/* Whoever still reads the log keeps the execution, but not megabytes of result in memory. */
static void large_results_are_in_a_file(void **state)
{
    const size_t size = 1u << 20;
    struct execution *e = create();
    struct buf result = buf_init(size);
    struct data_folder folder = {.tmp_fd = AT_FDCWD};
    struct store *store;
    char text[8];

    (void)state;
    folder.objects_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(store_create(&folder, NULL, NULL, &store, NULL), 0);
    assert_int_equal(buf_reserve(&result, size), 0);
    memset(result.data, 'x', size);
    memcpy(result.data + size - 4, "end\n", 4);
    result.len = size;
    execution_end(e, store, &result, NULL);
    assert_true(e->result_fd >= 0);
    assert_null(e->result.data);
    assert_int_equal(e->result_len, size);
    assert_int_equal(execution_read_result(e, size - 5, text, 5), 0);
    assert_memory_equal(text, "xend\n", 5);
    assert_int_equal(execution_read_result(e, size - 4, text, 5), -EIO);
    assert_int_equal(execution_read_result(e, size + 1, text, 0), -EIO);
    execution_unref(e);
    store_destroy(store);
    close(folder.objects_fd);
}

/* Each change of the stream is an event for every reader, however few bytes it has. */
static void streams_take_turns_so_often(void **state)
{
    struct execution *e = execution_create("default", NULL);
    (void)state;

    assert_non_null(e);
    for (unsigned i = 0; i < LIMIT_LOG_PARTS; i++)
        execution_append_log(e, i % 2 ? GUEST_STDERR : GUEST_STDOUT, "x", 1);
    assert_false(e->log_clipped);
    execution_append_log(e, GUEST_STDERR, "x", 1);
    assert_false(e->log_clipped);
    execution_append_log(e, GUEST_STDOUT, "x", 1);
    assert_true(e->log_clipped);
    /* Nor of the stream that was last. */
    execution_append_log(e, GUEST_STDERR, "x", 1);
    assert_int_equal(e->log.len, LIMIT_LOG_PARTS + 1);
    execution_unref(e);
}

/* What counts for it counts no longer before it goes, and once. */
struct holding {
    int fd;
    unsigned given_back;
};

static void give_back(void *ctx)
{
    struct holding *holding = ctx;

    assert_true(fcntl(holding->fd, F_GETFD) >= 0);
    holding->given_back++;
}

static void what_it_was_given_goes_before_its_readers(void **state)
{
    struct execution *e = create();
    struct holding holding = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};

    (void)state;
    e->job.skill.fd = holding.fd;
    e->holding = &holding;
    e->give_back = give_back;
    execution_let_go(e);
    assert_int_equal(holding.given_back, 1);
    assert_int_equal(fcntl(holding.fd, F_GETFD), -1);
    execution_unref(e);
    assert_int_equal(holding.given_back, 1);
    /* Also of one that never ran. */
    e = create();
    holding.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    e->job.skill.fd = holding.fd;
    e->holding = &holding;
    e->give_back = give_back;
    execution_unref(e);
    assert_int_equal(holding.given_back, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_take_turns_so_often),
        cmocka_unit_test(a_late_reader_misses_nothing),
        cmocka_unit_test(a_reader_follows),
        cmocka_unit_test(pieces_wake_who_follows),
        cmocka_unit_test(a_reader_among_many_rests),
        cmocka_unit_test(a_rest_ends),
        cmocka_unit_test(a_reader_comes_again_where_it_was),
        cmocka_unit_test(what_never_ran),
        cmocka_unit_test(what_it_was_given_goes_before_its_readers),
        cmocka_unit_test(the_log_is_bounded),
        cmocka_unit_test(cancelling_is_seen),
        cmocka_unit_test(large_results_are_in_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
