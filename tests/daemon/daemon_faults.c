/* SPDX-License-Identifier: Apache-2.0 */
/* Guests and VMMs that break, daemons that stop or die: nothing is left, everything is told. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect harness_expect

#define FOR(s, mode)  "{\"skill\":\"demo\",\"timeout\":" s ",\"env\":{\"FAKE\":\"" mode "\"}}"
#define FAKE(mode)    FOR("60", mode)
#define ENDLESS(mode) FOR("1", mode)

/* A daemon of its own for each test. */
static void begin(struct harness *h, const char *kernel, const char *image,
                  const char *const *extra)
{
    harness_init(h, kernel, image);
    harness_start(h, extra);
    assert_int_equal(harness_push(h, "demo", "1", "print(1)"), 201);
}

static void end(struct harness *h)
{
    harness_assert_clean(h);
    assert_int_equal(harness_stop(h, SIGTERM), 0);
    assert_int_equal(access(h->socket, F_OK), -1);
    harness_finish(h);
}

static void guests_that_break_fail(void **state)
{
    static const char *const cases[][2] = {
        {FAKE("hostile-length"), "the guest broke the protocol"},
        {FAKE("hostile-type"), "frame type 0x7f"},
        {FAKE("hostile-order"), "the guest broke the protocol"},
        {FAKE("hostile-exit"), "an EXIT that cannot be"},
        {FAKE("hostile-output"), "more bytes than it was allowed"},
        {FAKE("hostile-files"), "\"status\":\"failed\""},
        {FAKE("hostile-after"), "the guest broke the protocol"},
        {FAKE("hostile-deep"), "\"output\":null"},
        {FAKE("before"), "the guest broke the protocol"},
        {FAKE("fail"), "the guest could not run the skill: no ?[31minterpreter?"},
        {FAKE("die"), "the microVM's process ended"},
        {FAKE("die"), "\"stdout\":\"last words\\n\""},
        {FAKE("vmm-failed"), "the microVM failed: KVM_RUN: made up"},
        {FAKE("guest-exited"),
         "the guest stopped before it had finished (while the skill ran)"},
        {FAKE("restart"), "the guest stopped before it had finished (while the skill ran)"},
        {FAKE("close"), "closed the connection too early"},
        {ENDLESS("hang"), "\"status\":\"timeout\""},
        {ENDLESS("deaf"), "timed out after 1 s, and the guest did not end the skill"},
    };
    struct harness h;
    unsigned fds, objects;

    (void)state;
    begin(&h, "boot", "restore", NULL);
    harness_wait_ready(&h);
    fds = harness_count_fds(&h);
    objects = harness_count_files(&h, "objects");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(harness_run(&h, cases[i][0]), 200, cases[i][1]);
    harness_assert_clean(&h);
    assert_int_equal(harness_count_files(&h, "objects"), objects);
    harness_until(harness_count_fds(&h) <= fds + 1);
    end(&h);
}

static void machines_that_do_not_restore_fail(void **state)
{
    static const char *const cases[][2] = {
        {"restore=die", "the microVM's process ended"},
        {"restore=failed", "the microVM failed: state: made-up refusal"},
        {"restore=version", "the guest speaks protocol 99"},
        {"restore=silent", "the guest did not answer after it was restored"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct harness h;

        begin(&h, "boot", cases[i][0], NULL);
        expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, cases[i][1]);
        end(&h);
    }
}

static void a_working_set_is_not_needed(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "boot", "restore=norecord", NULL);
    for (int i = 0; i < 2; i++) {
        expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
        assert_int_equal(harness_stop(&h, SIGTERM), 0);
        harness_start(&h, NULL);
    }
    end(&h);
}

static void without_a_snapshot_nothing_runs(void **state)
{
    struct harness h;
    struct answer a;

    (void)state;
    begin(&h, "boot=failed", "restore", NULL);
    expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "no KVM today");
    a = harness_get(&h, "/ready");
    assert_int_equal(a.status, 503);
    assert_true(answer_has(&a, "\"status\":\"failed\""));
    assert_non_null(strstr(a.body, "no KVM today"));
    answer_finish(&a);
    end(&h);
}

static void executions_wait_for_the_snapshot(void **state)
{
    struct harness h;
    struct answer a;

    (void)state;
    begin(&h, "boot=wait", "restore", NULL);
    expect(harness_get(&h, "/health"), 200, "ok");
    a = harness_get(&h, "/ready");
    for (int i = 0; i < 1500 && strstr(a.body, "reading kernel and image"); i++) {
        answer_finish(&a);
        usleep(10000);
        a = harness_get(&h, "/ready");
    }
    expect(a, 503, "booting the guest once");
    harness_write(&h, "vmlinux", "boot");
    expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    end(&h);
}

static void stopping_while_it_boots(void **state)
{
    struct harness h;
    uint64_t start_ns;

    (void)state;
    begin(&h, "boot=wait", "restore", NULL);
    start_ns = clock_monotonic_ns();
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    /* It has 20 seconds to boot. */
    assert_true(clock_monotonic_ns() - start_ns < 15000000000u);
    assert_int_equal(harness_count_files(&h, "snapshots"), 0);
    harness_finish(&h);
}

struct client {
    struct harness *h;
    const char *json;
    struct answer answer;
    bool is_answered; /* atomic */
    pthread_t thread;
};

static void *run_client(void *arg)
{
    struct client *c = arg;

    c->answer = harness_run(c->h, c->json);
    __atomic_store_n(&c->is_answered, true, __ATOMIC_RELEASE);
    return NULL;
}

static void start_client(struct client *c, struct harness *h, const char *json)
{
    c->h = h;
    c->json = json;
    c->is_answered = false;
    assert_int_equal(pthread_create(&c->thread, NULL, run_client, c), 0);
}

/* Waits until the only execution there is runs; its path. */
static void find_running(const struct harness *h, char *path, size_t size)
{
    struct answer a;

    harness_wait_executions(h, "running", 1);
    a = harness_get(h, "/v1/executions");
    answer_execution_path(&a, path, size);
    answer_finish(&a);
}

/* Waits until so many have their answer. */
static void wait_answered(const struct client *clients, size_t n, unsigned wanted)
{
    unsigned answered = 0;

    for (int i = 0; i < 4500 && answered < wanted; i++) {
        usleep(10000);
        answered = 0;
        for (size_t k = 0; k < n; k++)
            answered += __atomic_load_n(&clients[k].is_answered, __ATOMIC_ACQUIRE);
    }
    assert_true(answered >= wanted);
}

/* One runs, one waits, and whoever else comes is told to come again. */
static void overload_is_429(void **state)
{
    static const char *const extra[] = {"--max-running", "1", "--max-queued", "1", NULL};
    struct client running, others[5];
    struct harness h;
    unsigned refused = 0;
    char path[64];

    (void)state;
    begin(&h, "boot", "restore", extra);
    harness_wait_ready(&h);
    start_client(&running, &h,
                 "{\"skill\":\"demo\",\"timeout\":600,\"env\":{\"FAKE\":\"ticks\"}}");
    find_running(&h, path, sizeof(path));
    for (size_t i = 0; i < 5; i++)
        start_client(&others[i], &h, "{\"skill\":\"demo\"}");
    wait_answered(others, 5, 4);
    expect(harness_request(&h, "DELETE", path, "", NULL, 0), 202, "\"status\":\"cancelling\"");
    for (size_t i = 0; i < 5; i++) {
        struct answer *a = &others[i].answer;

        pthread_join(others[i].thread, NULL);
        if (a->status == 429) {
            refused++;
            assert_non_null(strstr(a->headers, "Retry-After: 1"));
            assert_true(answer_has(a, "\"error\":\"overloaded\""));
        } else {
            assert_true(answer_has(a, "\"status\":\"success\""));
        }
        answer_finish(a);
    }
    assert_int_equal(refused, 4);
    pthread_join(running.thread, NULL);
    expect(running.answer, 200, "\"status\":\"cancelled\"");
    end(&h);
}

static void stopping_cancels_what_runs(void **state)
{
    static const char *const extra[] = {"--max-running", "1", "--stop-timeout", "0", NULL};
    static const char ticks[] =
        "{\"skill\":\"demo\",\"timeout\":60,\"env\":{\"FAKE\":\"ticks\"}}";
    struct client running, queued;
    struct harness h;

    (void)state;
    begin(&h, "boot", "restore", extra);
    harness_wait_ready(&h);
    start_client(&running, &h, ticks);
    harness_wait_executions(&h, "running", 1);
    start_client(&queued, &h, ticks);
    harness_wait_executions(&h, "accepted", 1);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    pthread_join(running.thread, NULL);
    pthread_join(queued.thread, NULL);
    expect(running.answer, 200, "\"status\":\"cancelled\"");
    expect(queued.answer, 200, "the daemon stopped before this execution ran");
    assert_int_equal(harness_count_files(&h, "tmp"), 0);
    harness_finish(&h);
}

/* Whose request comes whole only when the daemon stops. */
static void who_is_late_is_told_when_to_come(void **state)
{
    static const char *const extra[] = {"--max-running", "1", "--stop-timeout", "10m", NULL};
    static const char body[] = "{\"skill\":\"demo\"}";
    static const char head[] =
        "POST /v1/executions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 16\r\n"
        "Expect: 100-continue\r\n\r\n";
    char text[64] = "";
    struct answer a;
    struct harness h;
    int fd;

    (void)state;
    begin(&h, "boot", "restore", extra);
    harness_wait_ready(&h);
    a = harness_run(&h, "{\"skill\":\"demo\",\"timeout\":600,\"env\":{\"FAKE\":\"ticks\"},"
                        "\"async\":true}");
    harness_expect(a, 202, "accepted");
    harness_wait_executions(&h, "running", 1);
    fd = harness_connect(&h);
    assert_int_equal(write(fd, head, strlen(head)), strlen(head));
    for (size_t n = 0; n < sizeof(text) - 1 && !strstr(text, "100 Continue\r\n\r\n"); n++)
        assert_int_equal(read(fd, text + n, 1), 1);
    assert_int_equal(kill(h.pid, SIGTERM), 0);
    while (access(h.socket, F_OK) == 0)
        usleep(10000);
    assert_int_equal(write(fd, body, strlen(body)), strlen(body));
    a = harness_read_answer(fd);
    assert_non_null(a.headers);
    if (!strstr(a.headers, "\r\nRetry-After: "))
        fail_msg("got %s%s", a.headers, a.body);
    harness_expect(a, 503, "\"error\":\"stopping\"");
    close(fd);
    /* Twice: what runs is not waited for. */
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

static void a_killed_daemon_leaves_no_machine(void **state)
{
    struct client running;
    struct harness h;
    char path[64];
    pid_t machine;

    (void)state;
    begin(&h, "boot", "restore", NULL);
    harness_wait_ready(&h);
    start_client(&running, &h, "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"hang\"}}");
    find_running(&h, path, sizeof(path));
    harness_wait_children(&h, 1);
    machine = harness_first_child(&h);
    expect(harness_get(&h, path), 200, "\"status\":\"");
    assert_int_equal(harness_stop(&h, SIGKILL), -1);
    pthread_join(running.thread, NULL);
    answer_finish(&running.answer);
    for (int i = 0; i < 4500 && kill(machine, 0) == 0; i++)
        usleep(10000);
    assert_int_equal(kill(machine, 0), -1);
    /* The socket's name is stale now, and the next daemon takes it. */
    assert_int_equal(access(h.socket, F_OK), 0);
    harness_start(&h, NULL);
    expect(harness_get(&h, path), 200, "the daemon stopped while this execution ran");
    expect(harness_get(&h, path), 200, "\"status\":\"failed\"");
    harness_wait_ready(&h);
    end(&h);
}

static void cancel_ends_what_runs_and_what_waits(void **state)
{
    static const char *const extra[] = {"--max-running", "1", NULL};
    static const char ticks[] =
        "{\"skill\":\"demo\",\"timeout\":60,\"env\":{\"FAKE\":\"ticks\"}}";
    struct client running, queued;
    struct harness h;
    char path[64];

    (void)state;
    begin(&h, "boot", "restore", extra);
    harness_wait_ready(&h);
    start_client(&running, &h, ticks);
    find_running(&h, path, sizeof(path));
    start_client(&queued, &h, ticks);
    harness_wait_executions(&h, "accepted", 1);
    expect(harness_request(&h, "DELETE", path, "", NULL, 0), 202, "\"status\":\"cancelling\"");
    pthread_join(running.thread, NULL);
    expect(running.answer, 200, "\"status\":\"cancelled\"");
    expect(harness_request(&h, "DELETE", path, "", NULL, 0), 409, "has ended already");
    expect(harness_request(&h, "DELETE", "/v1/executions/exec_00000000000000000000000000000000",
                           "", NULL, 0),
           404, "not_found");
    harness_wait_children(&h, 1);
    assert_int_equal(harness_stop(&h, SIGKILL), -1);
    pthread_join(queued.thread, NULL);
    answer_finish(&queued.answer);
    harness_finish(&h);
}

/* The daemon has read the EXIT of the fake that hangs after it. */
static void wait_collecting(const struct harness *h)
{
    char path[64], name[32] = "";

    for (int i = 0; i < 6000 && strcmp(name, "collecting\n") != 0; i++) {
        usleep(10000);
        snprintf(path, sizeof(path), "/proc/%d/comm", harness_first_child(h));
        (void)fd_read_text(path, name, sizeof(name));
    }
    assert_string_equal(name, "collecting\n");
}

/* Once the skill has ended there is nothing left to cancel. */
static void cancel_comes_too_late(void **state)
{
    struct client running;
    struct harness h;
    char path[64];

    (void)state;
    begin(&h, "boot", "restore", NULL);
    harness_wait_ready(&h);
    start_client(&running, &h, ENDLESS("hang-collect"));
    find_running(&h, path, sizeof(path));
    wait_collecting(&h);
    expect(harness_request(&h, "DELETE", path, "", NULL, 0), 409, "has ended already");
    expect(harness_get(&h, path), 200, "\"status\":\"running\"");
    assert_int_equal(harness_stop(&h, SIGKILL), -1);
    pthread_join(running.thread, NULL);
    answer_finish(&running.answer);
    harness_finish(&h);
}

static int run_second(const struct harness *h, const char *socket_path, const char *data)
{
    char command[1024];

    snprintf(command, sizeof(command),
             "'%s' --socket '%s' --data '%s' --share '%s' --vmm '%s' 2>/dev/null", SKILLVMD,
             socket_path, data, h->dir, FAKE_VMM);
    return WEXITSTATUS(system(command));
}

static void one_daemon_at_a_time(void **state)
{
    struct harness h;
    char other[256];

    (void)state;
    begin(&h, "boot", "restore", NULL);
    snprintf(other, sizeof(other), "%s/other", h.dir);
    assert_int_equal(run_second(&h, other, h.data), 1);
    assert_int_equal(run_second(&h, h.socket, other), 1);
    expect(harness_get(&h, "/health"), 200, "ok");
    harness_wait_ready(&h);
    end(&h);
}

/* Listens until somebody else but this process has looked whether it does. */
static void *listen_until_looked(void *data)
{
    int *fd = data;
    struct ucred peer = {.pid = getpid()};
    socklen_t size = sizeof(peer);

    while (peer.pid == getpid()) {
        _cleanup_fd_ int look = accept(*fd, NULL, NULL);

        assert_int_equal(getsockopt(look, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    }
    fd_close(fd);
    return NULL;
}

/* A killed daemon's socket may live until the last child that it was starting is past exec. */
static void a_socket_that_is_soon_free_is_waited_for(void **state)
{
    struct harness h;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int old = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;

    (void)state;
    harness_init(&h, "boot", "restore");
    memcpy(address.sun_path, h.socket, strlen(h.socket) + 1);
    assert_int_equal(bind(old, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(old, 10), 0);
    assert_int_equal(pthread_create(&thread, NULL, listen_until_looked, &old), 0);
    harness_start(&h, NULL);
    pthread_join(thread, NULL);
    harness_wait_listening(&h);
    expect(harness_get(&h, "/health"), 200, "ok");
    end(&h);
}

/* Readers that never read and senders that never send hold up nobody. */
static void idle_clients_are_harmless(void **state)
{
    struct harness h;
    int fds[100];
    unsigned before;

    (void)state;
    begin(&h, "boot", "restore", NULL);
    harness_wait_ready(&h);
    before = harness_count_fds(&h);
    for (size_t i = 0; i < 100; i++) {
        static const char json[] = FAKE("flood");
        char head[256];

        fds[i] = harness_connect(&h);
        assert_true(fds[i] >= 0);
        snprintf(head, sizeof(head),
                 "POST /v1/executions HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 strlen(json), i % 10 == 0 ? json : "");
        if (i % 3)
            assert_int_equal(fd_write_full(fds[i], head, strlen(head)), 0);
    }
    for (int i = 0; i < 5; i++)
        expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    for (size_t i = 0; i < 100; i++)
        close(fds[i]);
    harness_assert_clean(&h);
    harness_until(harness_count_fds(&h) <= before + 1);
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guests_that_break_fail),
        cmocka_unit_test(machines_that_do_not_restore_fail),
        cmocka_unit_test(a_working_set_is_not_needed),
        cmocka_unit_test(without_a_snapshot_nothing_runs),
        cmocka_unit_test(executions_wait_for_the_snapshot),
        cmocka_unit_test(stopping_while_it_boots),
        cmocka_unit_test(overload_is_429),
        cmocka_unit_test(stopping_cancels_what_runs),
        cmocka_unit_test(who_is_late_is_told_when_to_come),
        cmocka_unit_test(a_killed_daemon_leaves_no_machine),
        cmocka_unit_test(cancel_ends_what_runs_and_what_waits),
        cmocka_unit_test(cancel_comes_too_late),
        cmocka_unit_test(one_daemon_at_a_time),
        cmocka_unit_test(a_socket_that_is_soon_free_is_waited_for),
        cmocka_unit_test(idle_clients_are_harmless),
    };

    /* Much here hangs until it is over. */
    setenv("SKILLVM_GRACE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
