/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvmd as a service: what it tells the manager, watermarks, SIGHUP, and how it stops. The
 * manager is a socket of the test's; microVMs are the stand-in's.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect  harness_expect
#define WAIT_MS 90000

struct service {
    struct harness h;
    char config[128];
    int manager; /* its end of the notify socket; -1: none */
};

static void open_manager(struct service *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%.60s/notify", s->h.dir);
    s->manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(s->manager >= 0);
    assert_int_equal(bind(s->manager, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

/* Waits for a message with this in it. */
static void hear(const struct service *s, const char *part)
{
    uint64_t deadline = clock_monotonic_ns() + WAIT_MS * 1000000ull;
    char text[2048];

    for (;;) {
        struct pollfd p = {.fd = s->manager, .events = POLLIN};
        ssize_t n;

        if (poll(&p, 1, clock_timeout_ms(deadline)) <= 0)
            fail_msg("the manager never heard \"%s\"", part);
        n = recv(s->manager, text, sizeof(text) - 1, 0);
        assert_true(n > 0);
        text[n] = '\0';
        if (strstr(text, part))
            return;
    }
}

static void begin(struct service *s, const char *config, const char *const *extra)
{
    const char *args[16] = {"--config", s->config};
    size_t n = 2;

    harness_init(&s->h, "boot", "restore");
    snprintf(s->config, sizeof(s->config), "%.60s/skillvmd.yaml", s->h.dir);
    harness_write(&s->h, "skillvmd.yaml", config);
    s->manager = -1;
    open_manager(s);
    while (extra && *extra)
        args[n++] = *extra++;
    harness_start(&s->h, args);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    harness_wait_ready(&s->h);
    assert_int_equal(harness_push(&s->h, "demo", "1.0", "print(1)"), 201);
}

static void end(struct service *s)
{
    harness_assert_clean(&s->h);
    assert_int_equal(harness_stop(&s->h, SIGTERM), 0);
    fd_close(&s->manager);
    harness_finish(&s->h);
}

/* Waits until an answer of /ready has this status and part. */
static void wait_answer(const struct service *s, int status, const char *part)
{
    harness_wait_answer(&s->h, "/ready", status, part);
}

static void the_manager_is_told(void **state)
{
    struct service s;

    (void)state;
    setenv("WATCHDOG_USEC", "600000", 1);
    begin(&s, "", NULL);
    hear(&s, "READY=1");
    hear(&s, "WATCHDOG=1");
    hear(&s, "STATUS=0 running, 0 waiting");
    hear(&s, "WATCHDOG=1");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    hear(&s, "RELOADING=1\nMONOTONIC_USEC=");
    hear(&s, "READY=1");
    hear(&s, "STATUS=0 running, 0 waiting");
    assert_int_equal(kill(s.h.pid, SIGTERM), 0);
    hear(&s, "STOPPING=1");
    assert_int_equal(waitpid(s.h.pid, NULL, 0), s.h.pid);
    s.h.pid = -1;
    fd_close(&s.manager);
    harness_finish(&s.h);
}

static void every_check_is_named(void **state)
{
    struct service s;
    struct answer a;

    (void)state;
    begin(&s, "", NULL);
    a = harness_get(&s.h, "/ready");
    /* Of the layers this process may lack a cgroup of its own. */
    expect(a, 200,
           strstr(a.body, "\"isolation\":\"no limits (")
               ? "{\"status\":\"ready\",\"checks\":{\"snapshot\":\"ok\",\"pool\":\"ok\","
                 "\"disk\":\"ok\",\"memory\":\"ok\",\"isolation\":\"no limits ("
               : "{\"status\":\"ready\",\"checks\":{\"snapshot\":\"ok\",\"pool\":\"ok\","
                 "\"disk\":\"ok\",\"memory\":\"ok\",\"isolation\":\"ok\"}}");
    end(&s);
}

/* Below a watermark nothing new is taken, what runs goes on, and a reload can lift it. */
static void a_watermark_refuses_what_is_new(void **state)
{
    static const struct {
        const char *config;
        const char *check;
        const char *reason;
    } cases[] = {
        {"watermarks: {disk_free: 100%}\n", "\"disk\":\"", "disk space are free"},
        {"watermarks: {memory_free: 512TiB}\n", "\"memory\":\"", "memory are free"},
    };
    struct service s;
    struct answer a, slow;

    (void)state;
    begin(&s, "watermarks: {disk_free: 0, memory_free: 0}\n", NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[64];

        slow = harness_run(&s.h, "{\"skill\":\"demo\",\"timeout\":2,\"async\":true,"
                                 "\"env\":{\"FAKE\":\"hang\"}}");
        assert_int_equal(slow.status, 202);
        answer_execution_path(&slow, path, sizeof(path));
        answer_finish(&slow);
        harness_write(&s.h, "skillvmd.yaml", cases[i].config);
        assert_int_equal(kill(s.h.pid, SIGHUP), 0);
        wait_answer(&s, 503, cases[i].check);
        expect(harness_get(&s.h, "/ready"), 503, "{\"status\":\"not_ready\"");
        a = harness_run(&s.h, "{\"skill\":\"demo\"}");
        assert_non_null(strstr(a.headers, "Retry-After: 5"));
        assert_non_null(strstr(a.body, cases[i].reason));
        expect(a, 503, "\"error\":\"overloaded\"");
        assert_int_equal(harness_push(&s.h, "other", "1.0", "print(1)"), 503);
        hear(&s, "STATUS=accepting nothing new");
        harness_wait_answer(&s.h, path, 200, "\"status\":\"timeout\"");
        harness_write(&s.h, "skillvmd.yaml",
                      "watermarks: {disk_free: 1KiB, memory_free: 1KiB}\n");
        assert_int_equal(kill(s.h.pid, SIGHUP), 0);
        wait_answer(&s, 200, "ready");
        expect(harness_run(&s.h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    }
    end(&s);
}

/* A large answer is in memory where the disk has no room for it, and is refused where neither
 * has. */
static void a_large_answer_stops_at_the_watermarks(void **state)
{
    static const size_t large = 1u << 20;
    struct buf json = buf_init(2 * large);
    struct service s;
    struct answer a;
    char path[64];

    (void)state;
    begin(&s, "watermarks: {disk_free: 0, memory_free: 0}\n", NULL);
    buf_printf(&json, "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"echo\"},\"input\":\"");
    assert_int_equal(buf_reserve(&json, large), 0);
    memset(json.data + json.len, 'x', large);
    json.len += large;
    assert_int_equal(buf_printf(&json, "\"}"), 0);
    a = harness_run(&s.h, buf_cstr(&json));
    buf_finish(&json);
    assert_int_equal(a.status, 200);
    answer_execution_path(&a, path, sizeof(path));
    answer_finish(&a);
    harness_write(&s.h, "skillvmd.yaml", "watermarks: {disk_free: 100%, memory_free: 0}\n");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    wait_answer(&s, 503, "disk space are free");
    a = harness_get(&s.h, path);
    assert_true(a.len > large);
    expect(a, 200, "\"status\":\"success\"");
    harness_write(&s.h, "skillvmd.yaml",
                  "watermarks: {disk_free: 100%, memory_free: 512TiB}\n");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    wait_answer(&s, 503, "memory are free");
    expect(harness_get(&s.h, path), 503, "there is no room for the answer now");
    expect(harness_get(&s.h, "/v1/executions"), 200, "\"status\":\"success\"");
    end(&s);
}

/* By the settings that it starts with as by those of a reload. */
static void the_snapshot_is_made_anew(void **state)
{
    struct service s;

    (void)state;
    begin(&s, "snapshots: {max_uses: 2, renew: 0}\n", NULL);
    harness_wait_metrics(&s.h, "\nskillvm_snapshots_made_total{result=\"ok\"} 1\n", true);
    expect(harness_run(&s.h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    assert_true(harness_metrics_have(&s.h, "\nskillvm_snapshot_uses 1\n"));
    expect(harness_run(&s.h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    harness_wait_metrics(&s.h, "\nskillvm_snapshots_made_total{result=\"ok\"} 2\n", true);
    harness_wait_metrics(&s.h, "\nskillvm_snapshot_uses 0\n", true);
    harness_write(&s.h, "skillvmd.yaml", "snapshots: {max_uses: 0, renew: 1ms}\n");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    harness_wait_metrics(&s.h, "\nskillvm_snapshots_made_total{result=\"ok\"} 2\n", false);
    /* Until there is a moment in which none is being made. */
    harness_write(&s.h, "skillvmd.yaml", "snapshots: {max_uses: 0, renew: 0}\n");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    end(&s);
}

static void a_bad_file_is_refused_whole(void **state)
{
    struct service s;

    (void)state;
    begin(&s, "watermarks: {disk_free: 0, memory_free: 0}\n", NULL);
    /* The first key of it is good and must not count. */
    harness_write(&s.h, "skillvmd.yaml",
                  "watermarks:\n  disk_free: 100%\nlimits:\n  max_queued: -1\n");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    hear(&s, "RELOADING=1");
    hear(&s, "READY=1");
    hear(&s, "0 waiting; settings not reloaded: ");
    expect(harness_get(&s.h, "/ready"), 200, "ready");
    unlink(s.config);
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    hear(&s, "not reloaded: cannot open");
    expect(harness_get(&s.h, "/ready"), 200, "ready");
    harness_write(&s.h, "skillvmd.yaml", "");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    hear(&s, "RELOADING=1");
    hear(&s, "STATUS=0 running, 0 waiting");
    end(&s);
}

/* What needs a restart stays as it is; the rest of the same file counts. */
static void what_cannot_change_stays(void **state)
{
    struct service s;
    struct answer running, waiting;
    char path[64];

    (void)state;
    begin(&s, "limits: {max_running: 1, max_queued: 8}\n", NULL);
    harness_write(&s.h, "skillvmd.yaml",
                  "limits: {max_running: 4, max_queued: 1}\nsocket: {path: /nowhere}\n");
    assert_int_equal(kill(s.h.pid, SIGHUP), 0);
    hear(&s, "RELOADING=1");
    hear(&s, "READY=1");
    running = harness_run(&s.h, "{\"skill\":\"demo\",\"timeout\":600,\"async\":true,"
                                "\"env\":{\"FAKE\":\"ticks\"}}");
    answer_execution_path(&running, path, sizeof(path));
    expect(running, 202, "accepted");
    harness_wait_executions(&s.h, "running", 1);
    waiting = harness_run(&s.h, "{\"skill\":\"demo\",\"async\":true}");
    expect(waiting, 202, "accepted");
    expect(harness_run(&s.h, "{\"skill\":\"demo\",\"async\":true}"), 429, "waiting already");
    harness_wait_children(&s.h, 1);
    expect(harness_request(&s.h, "DELETE", path, "", "", 0), 202, "\"status\":\"cancelling\"");
    end(&s);
}

/* What waits is ended with the reason and what runs may end: both are on disk afterwards. */
static void stopping_loses_nothing(void **state)
{
    static const char *const extra[] = {"--max-running", "1", "--stop-timeout", "300", NULL};
    char running[64], waiting[64], log[72];
    struct service s;
    struct answer a;

    (void)state;
    begin(&s, "", extra);
    a = harness_run(&s.h, "{\"skill\":\"demo\",\"timeout\":600,\"async\":true,"
                          "\"env\":{\"FAKE\":\"told\"}}");
    answer_execution_path(&a, running, sizeof(running));
    expect(a, 202, "accepted");
    snprintf(log, sizeof(log), "%s/logs", running);
    harness_wait_answer(&s.h, log, 200, "waits");
    a = harness_run(&s.h, "{\"skill\":\"demo\",\"async\":true}");
    answer_execution_path(&a, waiting, sizeof(waiting));
    expect(a, 202, "accepted");
    assert_int_equal(kill(s.h.pid, SIGTERM), 0);
    hear(&s, "STATUS=stopping: 1 executions may go on for 300 s");
    harness_tell_children(&s.h);
    assert_int_equal(harness_stop(&s.h, 0), 0);
    harness_start(&s.h, NULL);
    expect(harness_get(&s.h, running), 200, "\"status\":\"success\"");
    expect(harness_get(&s.h, waiting), 200, "the daemon stopped before this execution ran");
    end(&s);
}

static void a_second_signal_shortens(void **state)
{
    static const char *const extra[] = {"--stop-timeout", "300", NULL};
    struct service s;
    struct answer a;
    char path[64];
    uint64_t start;

    (void)state;
    begin(&s, "", extra);
    a = harness_run(&s.h, "{\"skill\":\"demo\",\"timeout\":200,\"async\":true,"
                          "\"env\":{\"FAKE\":\"ticks\"}}");
    answer_execution_path(&a, path, sizeof(path));
    expect(a, 202, "accepted");
    harness_wait_executions(&s.h, "running", 1);
    start = clock_monotonic_ns();
    assert_int_equal(kill(s.h.pid, SIGTERM), 0);
    hear(&s, "STATUS=stopping: 1 executions may go on for 300 s");
    hear(&s, "WATCHDOG=1");
    assert_int_equal(waitpid(s.h.pid, NULL, WNOHANG), 0);
    assert_int_equal(harness_stop(&s.h, SIGTERM), 0);
    assert_true(clock_monotonic_ns() - start < 60ull * 1000000000);
    harness_start(&s.h, NULL);
    expect(harness_get(&s.h, path), 200, "\"status\":\"cancelled\"");
    end(&s);
}

/* Several machines in a row that do not start are more than one execution's bad luck. */
static void a_host_that_starts_no_machine_is_not_ready(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "boot", "restore=failed");
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    assert_int_equal(harness_push(&h, "demo", "1.0", "print(1)"), 201);
    for (int i = 0; i < 3; i++) {
        expect(harness_get(&h, "/ready"), 200, "\"pool\":\"ok\"");
        expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "made-up refusal");
    }
    expect(harness_get(&h, "/ready"), 503,
           "\"pool\":\"the last 3 machines did not start: the microVM failed");
    /* It is still tried: nothing that was asked for is refused for it. */
    expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "made-up refusal");
    harness_assert_clean(&h);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

/* Archives are held to the settings: as they come, unpacked, and in number. */
static void archives_have_their_limits(void **state)
{
    static const char type[] = "Content-Type: application/octet-stream\r\n";
    struct service s;
    size_t len;
    char *script, *tar;

    (void)state;
    begin(&s, "limits: {archive_bytes: 1MiB, archive_entries: 2}\n", NULL);
    script = malloc(2u << 20);
    assert_non_null(script);
    memset(script, '#', 2u << 20);
    script[(2u << 20) - 1] = '\0';
    tar = harness_skill("large", "1.0", script, &len);
    expect(harness_request(&s.h, "POST", "/v1/skills", type, tar, len), 413,
           "larger than 1 MiB");
    free(tar);
    harness_write(&s.h, "skillvmd.yaml", "limits: {expanded_bytes: 1MiB}\n");
    assert_int_equal(harness_stop(&s.h, SIGTERM), 0);
    harness_start(&s.h, (const char *const[]){"--config", s.config, NULL});
    harness_wait_ready(&s.h);
    tar = harness_skill("large", "1.0", script, &len);
    expect(harness_request(&s.h, "POST", "/v1/skills", type, tar, len), 413,
           "expands to more than 1048576 bytes");
    free(tar);
    free(script);
    harness_write(&s.h, "skillvmd.yaml", "limits: {archive_entries: 1}\n");
    assert_int_equal(harness_stop(&s.h, SIGTERM), 0);
    harness_start(&s.h, (const char *const[]){"--config", s.config, NULL});
    harness_wait_ready(&s.h);
    tar = harness_skill("many", "1.0", "print(1)", &len);
    expect(harness_request(&s.h, "POST", "/v1/skills", type, tar, len), 413, "too_large");
    free(tar);
    /* What was registered under other limits still runs. */
    expect(harness_run(&s.h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    end(&s);
}

static int listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static int listen_tcp(struct sockaddr_in *ret)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(*ret);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &len), 0);
    return fd;
}

/* Starts the daemon as a manager does that holds its sockets; it is not told of any itself. */
static void start_activated(struct harness *h, int unix_fd, int tcp_fd)
{
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0) {
        char pid[16];

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unix_fd = fcntl(unix_fd, F_DUPFD, 10);
        tcp_fd = fcntl(tcp_fd, F_DUPFD, 10);
        dup2(unix_fd, 3);
        dup2(tcp_fd, 4);
        snprintf(pid, sizeof(pid), "%d", getpid());
        setenv("LISTEN_PID", pid, 1);
        setenv("LISTEN_FDS", "2", 1);
        execl(SKILLVMD, "skillvmd", "--data", h->data, "--share", h->dir, "--vmm", FAKE_VMM,
              NULL);
        _exit(127);
    }
}

static struct answer ask(int fd, const char *path)
{
    char text[256];
    int n = snprintf(text, sizeof(text),
                     "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);

    assert_int_equal(fd_write_full(fd, text, (size_t)n), 0);
    return harness_read_answer(fd);
}

static int connect_tcp(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
    return fd;
}

/* Sockets outlive the daemon: who comes while none runs is served by the next one. */
static void sockets_can_be_handed_over(void **state)
{
    struct service s = {.manager = -1};
    struct sockaddr_in address;
    int unix_fd, tcp_fd, early, fd;

    (void)state;
    harness_init(&s.h, "boot", "restore");
    unix_fd = listen_unix(s.h.socket);
    tcp_fd = listen_tcp(&address);
    early = harness_connect(&s.h);
    start_activated(&s.h, unix_fd, tcp_fd);
    expect(ask(early, "/health"), 200, "ok");
    close(early);
    harness_wait_ready(&s.h);
    fd = connect_tcp(&address);
    expect(ask(fd, "/health"), 200, "ok");
    close(fd);
    fd = connect_tcp(&address);
    expect(ask(fd, "/v1/skills"), 401, "unauthorized");
    close(fd);
    assert_int_equal(harness_push(&s.h, "demo", "1.0", "print(1)"), 201);
    expect(harness_run(&s.h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    assert_int_equal(harness_stop(&s.h, SIGTERM), 0);
    early = harness_connect(&s.h);
    assert_true(early >= 0);
    start_activated(&s.h, unix_fd, tcp_fd);
    expect(ask(early, "/health"), 200, "ok");
    close(early);
    assert_int_equal(harness_stop(&s.h, SIGTERM), 0);
    close(unix_fd);
    close(tcp_fd);
    harness_finish(&s.h);
}

/* Runs the daemon for its exit status and what it says. */
static int run_daemon(const char *arguments, char *text, size_t size)
{
    char command[512];
    size_t n;
    FILE *f;
    int status;

    snprintf(command, sizeof(command), "%s %s 2>&1", SKILLVMD, arguments);
    f = popen(command, "re");
    assert_non_null(f);
    n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void settings_are_checked_and_printed(void **state)
{
    struct service s = {.manager = -1};
    char line[256], text[4096];

    (void)state;
    harness_init(&s.h, "boot", "restore");
    snprintf(s.config, sizeof(s.config), "%.60s/skillvmd.yaml", s.h.dir);
    harness_write(&s.h, "skillvmd.yaml", "limits:\n  max_running: 3\n");
    snprintf(line, sizeof(line), "--config %s --check-config --max-queued 7", s.config);
    assert_int_equal(run_daemon(line, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "the settings are good"));
    snprintf(line, sizeof(line), "--config %s --print-config --max-queued 7", s.config);
    assert_int_equal(run_daemon(line, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "  max_running: 3\n  max_queued: 7\n"));
    harness_write(&s.h, "skillvmd.yaml", "limits:\n  max_runing: 3\n");
    assert_int_equal(run_daemon(line, text, sizeof(text)), 2);
    assert_non_null(strstr(text, "skillvmd.yaml:2: unknown key limits.max_runing"));
    assert_int_equal(run_daemon("--data /nonexistent", text, sizeof(text)), 2);
    assert_non_null(strstr(text, "nowhere to listen"));
    assert_int_equal(run_daemon("--socket /nonexistent/s", text, sizeof(text)), 2);
    assert_non_null(strstr(text, "no data folder"));
    assert_int_equal(run_daemon("--max-running", text, sizeof(text)), 2);
    assert_int_equal(run_daemon("--nonsense", text, sizeof(text)), 2);
    assert_int_equal(run_daemon("stray", text, sizeof(text)), 2);
    assert_int_equal(run_daemon("--version --nonsense", text, sizeof(text)), 0);
    assert_non_null(strstr(text, "skillvmd "));
    harness_finish(&s.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manager_is_told),
        cmocka_unit_test(every_check_is_named),
        cmocka_unit_test(a_watermark_refuses_what_is_new),
        cmocka_unit_test(a_large_answer_stops_at_the_watermarks),
        cmocka_unit_test(the_snapshot_is_made_anew),
        cmocka_unit_test(a_bad_file_is_refused_whole),
        cmocka_unit_test(what_cannot_change_stays),
        cmocka_unit_test(stopping_loses_nothing),
        cmocka_unit_test(a_second_signal_shortens),
        cmocka_unit_test(a_host_that_starts_no_machine_is_not_ready),
        cmocka_unit_test(archives_have_their_limits),
        cmocka_unit_test(sockets_can_be_handed_over),
        cmocka_unit_test(settings_are_checked_and_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
