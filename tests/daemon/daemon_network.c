/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skills and hosts: who may reach which, what is told of it, and guests that reach for more
 * than that. The host is a server in this process, which the daemon knows by a name.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"
#include "tests/daemon/tenants_world.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define expect harness_expect

static struct world w;
static int listener;
static unsigned port;
static char reaches[64]; /* "here.test:PORT" */

static void open_listener(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(here);

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    port = ntohs(here.sin_port);
    (void)snprintf(reaches, sizeof(reaches), "here.test:%u", port);
}

static void push(const char *name, const char *network)
{
    char text[512];
    struct harness_file files[] = {{"SKILL.md", text}, {"main.py", "pass"}, {NULL, NULL}};

    (void)snprintf(text, sizeof(text), "---\nname: %s\ndescription: x\nnetwork: %s\n---\n",
                   name, network);
    expect(harness_push_files(&w.h, files), 201, "\"digest\"");
}

static int start(void **state)
{
    char list[96];

    (void)state;
    open_listener();
    setenv("SKILLVM_NETWORK_ALLOW_PRIVATE", "here.test=127.0.0.1 there.test=127.0.0.1", 1);
    setenv("SKILLVM_NETWORK_POLICY", "declared", 1);
    setenv("SKILLVM_NETWORK_CONNECTIONS", "50", 1);
    begin(&w, "4", "1s");
    (void)snprintf(list, sizeof(list), "[\"%s\", inner.test]", reaches);
    push("net", list);
    push("plain", "none");
    return 0;
}

static int finish(void **state)
{
    (void)state;
    end(&w);
    close(listener);
    unsetenv("SKILLVM_NETWORK_ALLOW_PRIVATE");
    unsetenv("SKILLVM_NETWORK_POLICY");
    unsetenv("SKILLVM_NETWORK_CONNECTIONS");
    return 0;
}

static void *echo_once(void *ctx)
{
    char data[16];
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ssize_t n;

    (void)ctx;
    while ((n = recv(fd, data, sizeof(data), 0)) > 0)
        (void)fd_write_full(fd, data, (size_t)n);
    close(fd);
    return NULL;
}

/* Runs the skill with a guest of this kind; more are members of the request. */
static struct answer run(const char *fake, const char *data, const char *more)
{
    char json[512];

    (void)snprintf(
        json, sizeof(json),
        "{\"skill\":\"net\",\"timeout\":60,\"env\":{\"FAKE\":\"%s\",\"FAKE_DATA\":\"%s\"}%s}",
        fake, data, more);
    return harness_run(&w.h, json);
}

static void expect_echo(const char *more)
{
    pthread_t peer;
    char row[160];
    struct answer a;

    assert_int_equal(pthread_create(&peer, NULL, echo_once, NULL), 0);
    a = run("net", "here.test 0", more);
    assert_int_equal(pthread_join(peer, NULL), 0);
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"stdout\":\"hello\""));
    (void)snprintf(row, sizeof(row),
                   "{\"host\":\"here.test\",\"port\":%u,\"count\":1,\"bytes_sent\":5,"
                   "\"bytes_received\":5,\"refused\":null}",
                   port);
    if (!strstr(a.body, row))
        fail_msg("%s", a.body);
    assert_true(answer_has(&a, "\"warnings\":[]"));
    answer_finish(&a);
}

static void nobody_came(void)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};

    assert_int_equal(poll(&p, 1, 0), 0);
}

static void expect_nobody(const char *name, const char *more, const char *why)
{
    struct answer a = run("net", name, more);

    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"stdout\":\"nobody\""));
    if (!strstr(a.body, why))
        fail_msg("%s: %s", why, a.body);
    answer_finish(&a);
    nobody_came();
}

static void a_declared_host_is_reached_and_told_of(void **state)
{
    char part[128];

    (void)state;
    expect_echo("");
    (void)snprintf(part, sizeof(part), "%s 1 connections, 5 bytes sent, 5 received", reaches);
    expect(harness_get(&w.h, "/v1/admin/audit"), 200, part);
    expect_nobody("there.test", "", "there.test is not among the hosts that it declares");
    expect(harness_get(&w.h, "/v1/admin/audit"), 200, "there.test refused 1 times");
}

static void the_caller_only_narrows(void **state)
{
    char more[128];

    (void)state;
    (void)snprintf(more, sizeof(more), ",\"network\":[\"%s\"]", reaches);
    expect_echo(more);
    expect_nobody("here.test", ",\"network\":[\"inner.test\"]", "leaves it out");
    expect_nobody("there.test", ",\"network\":[\"there.test\"]", "not among the hosts");
    /* Without a network there are no connections to speak of. */
    expect(run("net", "here.test 0", ",\"network\":[]"), 200,
           "a connection where it may have none");
    expect(run("net", "here.test 0", ",\"network\":false"), 200,
           "a connection where it may have none");
    expect(run("exit", "0", ",\"network\":true"), 400, "must be a list of hosts");
    expect(run("exit", "0", ",\"network\":[\"10.0.0.1\"]"), 400, "is an address");
    expect(run("exit", "0", ",\"network\":[\"*\"]"), 400, "every host");
    expect(run("exit", "0", ",\"network\":[1]"), 400, "list of strings");
    nobody_came();
}

static void one_without_a_network_is_told_so(void **state)
{
    static const char form[] = "{\"skill\":\"%s\",\"env\":{\"FAKE\":\"stderr\",\"FAKE_DATA\":"
                               "\"curl: (6) Could not resolve host: a.example\"}%s}";
    char json[256];

    (void)state;
    (void)snprintf(json, sizeof(json), form, "plain", "");
    expect(harness_run(&w.h, json), 200, "it looked for a host and has no network");
    (void)snprintf(json, sizeof(json), form, "net", "");
    expect(harness_run(&w.h, json), 200, "\"warnings\":[]");
}

static void code_reaches_what_its_request_names(void **state)
{
    static const char form[] =
        "{\"code\":\"1\",\"network\":[\"%s\"],\"env\":{\"FAKE\":\"net\",\"FAKE_DATA\":\"%s\"}}";
    char json[256];
    pthread_t peer;

    (void)state;
    (void)snprintf(json, sizeof(json), form, reaches, "here.test 0");
    assert_int_equal(pthread_create(&peer, NULL, echo_once, NULL), 0);
    expect(harness_run(&w.h, json), 200, "\"stdout\":\"hello\"");
    assert_int_equal(pthread_join(peer, NULL), 0);
    (void)snprintf(json, sizeof(json), form, reaches, "there.test 0");
    expect(harness_run(&w.h, json), 200, "\"stdout\":\"nobody\"");
}

/* A call of a tool. more are members beside its arguments, which are members too. */
static struct answer call(const char *name, const char *more, const char *arguments,
                          const char *data)
{
    char json[512];

    (void)snprintf(json, sizeof(json),
                   "{\"name\":\"%s\"%s,\"arguments\":{%s},"
                   "\"env\":{\"FAKE\":\"net\",\"FAKE_DATA\":\"%s\"}}",
                   name, more, arguments, data);
    return harness_request(&w.h, "POST", "/v1/tools/call", "", json, strlen(json));
}

static void a_call_of_a_tool_only_narrows(void **state)
{
    char network[96];
    pthread_t peer;

    (void)state;
    (void)snprintf(network, sizeof(network), ",\"network\":[\"%s\"]", reaches);
    assert_int_equal(pthread_create(&peer, NULL, echo_once, NULL), 0);
    expect(call("net", network, "", "here.test 0"), 200, "\"stdout\":\"hello\"");
    assert_int_equal(pthread_join(peer, NULL), 0);
    expect(call("net", ",\"network\":[\"inner.test\"]", "", "here.test 0"), 200,
           "\"stdout\":\"nobody\"");
    expect(call("net", ",\"network\":false", "", "here.test 0"), 200,
           "a connection where it may have none");
    nobody_came();
}

/* Which a model writes, and its caller may speak in its place. */
static void a_tool_of_code_reaches_what_it_names(void **state)
{
    char arguments[128];
    pthread_t peer;

    (void)state;
    (void)snprintf(arguments, sizeof(arguments), "\"code\":\"1\",\"network\":[\"%s\"]",
                   reaches);
    assert_int_equal(pthread_create(&peer, NULL, echo_once, NULL), 0);
    expect(call("run_code", "", arguments, "here.test 0"), 200, "\"stdout\":\"hello\"");
    assert_int_equal(pthread_join(peer, NULL), 0);
    expect(call("run_code", "", arguments, "there.test 0"), 200, "\"stdout\":\"nobody\"");
    expect(call("run_code", ",\"network\":false", arguments, "here.test 0"), 400,
           "is an argument and an option of the call");
    expect(call("run_code", ",\"network\":false", "\"code\":\"1\"", "here.test 0"), 200,
           "a connection where it may have none");
    nobody_came();
}

/* What the command line sends. The status of its end. */
static int skillvm(const char *arguments)
{
    char *command;
    int status;

    assert_true(asprintf(&command, "SKILLVM_SOCKET=%s " SKILLVM " %s >%s/said 2>&1", w.h.socket,
                         arguments, w.h.dir) > 0);
    status = system(command);
    free(command);
    return WEXITSTATUS(status);
}

static void the_command_line_narrows_too(void **state)
{
    char arguments[256];
    pthread_t peer;

    (void)state;
    (void)snprintf(
        arguments, sizeof(arguments),
        "run net --network %s --network inner.test -e FAKE=net -e 'FAKE_DATA=here.test "
        "0' --json | grep -q '\"stdout\":\"hello\"'",
        reaches);
    assert_int_equal(pthread_create(&peer, NULL, echo_once, NULL), 0);
    assert_int_equal(skillvm(arguments), 0);
    assert_int_equal(pthread_join(peer, NULL), 0);
    assert_int_equal(skillvm("run net --no-network -e FAKE=net -e 'FAKE_DATA=here.test 0'"),
                     125);
    assert_int_equal(skillvm("run net --no-network --network here.test"), 2);
    assert_int_equal(skillvm("run net --network 10.0.0.1"), 125);
    assert_int_equal(skillvm("mcp --no-network </dev/null"), 0);
    nobody_came();
}

static void set_policy(const char *policy)
{
    char json[160];

    (void)snprintf(json, sizeof(json), "{\"limits\":{\"network\":%s}}", policy);
    expect(admin(&w.h, "PATCH", "/v1/admin/tenants/default", json), 200, "\"limits\"");
}

static void a_tenants_policy_decides(void **state)
{
    char policy[64];

    (void)state;
    set_policy("\"off\"");
    expect(run("net", "here.test 0", ""), 200, "a connection where it may have none");
    expect(run("exit", "0", ""), 200, "the network is off: it may reach none of here.test");
    set_policy("\"other.test\"");
    expect_nobody("here.test", "", "is not permitted by the tenant's policy");
    (void)snprintf(policy, sizeof(policy), "\"*.test:%u\"", port);
    set_policy(policy);
    expect_echo("");
    set_policy("\"declared\"");
    expect_echo("");
    expect(admin(&w.h, "PATCH", "/v1/admin/tenants/default",
                 "{\"limits\":{\"network\":\"http://x\"}}"),
           400, "a list of hosts");
    set_policy("null");
    expect(admin(&w.h, "GET", "/v1/admin/tenants/default", ""), 200, "\"network\":\"\"");
    expect_echo("");
}

/* What ends an execution, and reaches nothing. */
static void guests_that_ask_for_more_are_ended(void **state)
{
    static const char *const ways[][2] = {
        {"net-unasked", "to what it was not told of"},
        {"net-port", "to what it was not told of"},
        {"net-twice", "number that is in use"},
        {"net-early", "not open"},
        {"net-flood", "more bytes than it was given room for"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        expect(run(ways[i][0], "here.test 0", ""), 200, ways[i][1]);
    /* Those that it may reach it did. */
    while (poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 0) > 0)
        close(accept(listener, NULL, NULL));
}

/* As many as an execution may begin. */
static void *close_fifty(void *ctx)
{
    for (int i = 0; i < 50; i++)
        close(accept(listener, NULL, NULL));
    return ctx;
}

static void ten_thousand_opens_are_fifty(void **state)
{
    unsigned before = harness_count_fds(&w.h);
    struct answer a;
    pthread_t peer;

    (void)state;
    assert_int_equal(pthread_create(&peer, NULL, close_fifty, NULL), 0);
    a = run("net-ten-thousand", "here.test 0", "");
    assert_true(answer_has(&a, "\"stdout\":\"refused 9950\""));
    assert_true(answer_has(&a, "\"refused\":\"more than 50 connections in one execution\""));
    answer_finish(&a);
    assert_int_equal(pthread_join(peer, NULL), 0);
    harness_until(harness_count_fds(&w.h) <= before + 8);
}

/* Its cancel is heard, and its connections end with it. */
static void one_that_holds_connections_is_cancelled(void **state)
{
    char id[40] = "", path[96];
    char data[1];
    struct answer a;
    int fd;

    (void)state;
    a = run("net-hold", "here.test 0", ",\"async\":true");
    assert_int_equal(a.status, 202);
    memcpy(id, strstr(a.body, "exec_"), 37);
    answer_finish(&a);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)snprintf(path, sizeof(path), "/v1/executions/%s", id);
    expect(harness_request(&w.h, "DELETE", path, "", NULL, 0), 202, "cancelling");
    assert_true(recv(fd, data, 1, 0) <= 0);
    close(fd);
    harness_wait_executions(&w.h, "cancelled", 1);
    while (poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 0) > 0)
        close(accept(listener, NULL, NULL));
}

/* Waits until an execution's text, which is one of its resources or itself, has a part. */
static void wait_text(const char *id, const char *resource, const char *part)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "/v1/executions/%s%s", id, resource);
    for (bool said = false; !said; usleep(10000)) {
        struct answer a = harness_get(&w.h, path);

        assert_int_equal(a.status, 200);
        said = strstr(a.body, part) != NULL;
        answer_finish(&a);
    }
}

/* Its peer reads nothing before the skill has ended, and then finds all of it. */
static void what_a_skill_sent_last_arrives(void **state)
{
    static char data[1u << 16];
    char id[40] = "", path[96], sent[64];
    unsigned long got = 0;
    struct answer a;
    ssize_t n;
    int fd;

    (void)state;
    a = run("net-all", "here.test 0", ",\"async\":true");
    assert_int_equal(a.status, 202);
    memcpy(id, strstr(a.body, "exec_"), 37);
    answer_finish(&a);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    wait_text(id, "/logs", "said ");
    while ((n = recv(fd, data, sizeof(data), 0)) > 0)
        got += (unsigned long)n;
    assert_int_equal(n, 0);
    close(fd);
    (void)snprintf(sent, sizeof(sent), "\"stdout\":\"said %lu\"", got);
    (void)snprintf(path, sizeof(path), "/v1/executions/%s", id);
    wait_text(id, "", "\"status\":\"success\"");
    expect(harness_get(&w.h, path), 200, sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_declared_host_is_reached_and_told_of),
        cmocka_unit_test(the_caller_only_narrows),
        cmocka_unit_test(one_without_a_network_is_told_so),
        cmocka_unit_test(code_reaches_what_its_request_names),
        cmocka_unit_test(a_call_of_a_tool_only_narrows),
        cmocka_unit_test(a_tool_of_code_reaches_what_it_names),
        cmocka_unit_test(the_command_line_narrows_too),
        cmocka_unit_test(a_tenants_policy_decides),
        cmocka_unit_test(guests_that_ask_for_more_are_ended),
        cmocka_unit_test(ten_thousand_opens_are_fifty),
        cmocka_unit_test(one_that_holds_connections_is_cancelled),
        cmocka_unit_test(what_a_skill_sent_last_arrives),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
