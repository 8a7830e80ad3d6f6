/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What answers take in memory while they are made: of lists of tools one description at a time,
 * of skills some at once, and the rest is counted.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tenants_world.h"
#include "tests/unit/make_archive.h"

#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define expect    harness_expect
#define MIB       (1u << 20)
#define UNREAD    30
#define LOGS      80u          /* of one MiB each */
#define LOG_TAKEN (640 * 1024) /* of each, in events */

static struct world w;

static int start(void **state)
{
    (void)state;
    begin(&w, "4", "0");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    end(&w);
    return 0;
}

static void push(const struct member *members)
{
    int archive = make_archive(TAR_GZ, members);
    size_t len = (size_t)lseek(archive, 0, SEEK_END);
    char headers[384], *data = malloc(len);

    assert_non_null(data);
    assert_int_equal(fd_pread_full(archive, data, len, 0), len);
    close(archive);
    snprintf(headers, sizeof(headers), "Content-Type: application/octet-stream\r\n%s",
             strstr(w.a.headers, "Authorization"));
    expect(harness_request(&w.h, "POST", "/v1/skills", headers, data, len), 201, "\"digest\"");
    free(data);
}

/* A connection that has asked, the caller's to close. */
static int send_get(const char *path)
{
    return harness_send(&w.h, "GET", path, w.a.headers, NULL, 0);
}

/* The most memory that the daemon had so far, in KiB. */
#define PEAK "VmHWM:"

/* From now on, where the kernel can: proc_pid_clear_refs(5). */
static void forget_peak(void)
{
    char path[64];
    _cleanup_fd_ int fd = -1;

    snprintf(path, sizeof(path), "/proc/%d/clear_refs", w.h.pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        assert_int_equal(write(fd, "5", 1), 1);
}

#define GROWERS     24u
#define ACTIONS     70u
#define CHOICES     200u
#define GROWN_BYTES (64u * 1024u)

/* A script of which little text describes much. */
static void write_grower(char text[GROWN_BYTES])
{
    size_t len = (size_t)sprintf(text, "import argparse\n#probe:{\"version\":1,\"doc\":"
                                       "\"Grown.\",\"parser\":{\"description\":null,"
                                       "\"actions\":[");

    for (unsigned i = 0; i < ACTIONS; i++) {
        len += (size_t)sprintf(text + len,
                               "%s{\"kind\":\"store\",\"dest\":\"a%u\",\"options\":[\"--a%u\"],"
                               "\"nargs\":null,\"type\":\"integer\",\"required\":false,"
                               "\"help\":null,\"choices\":[0",
                               i > 0 ? "," : "", i, i);
        for (unsigned k = 1; k < CHOICES; k++)
            len += (size_t)sprintf(text + len, ",%u", k % 10);
        len += (size_t)sprintf(text + len, "]}");
    }
    (void)sprintf(text + len, "]}}\n");
}

static unsigned count_grown(void)
{
    struct answer a = as(&w, &w.a, "GET", "/v1/tools", "");
    unsigned n = 0;

    assert_int_equal(a.status, 200);
    for (const char *at = a.body; (at = strstr(at, "Grown.")); at++)
        n++;
    answer_finish(&a);
    return n;
}

/* What a description takes in memory is many times its text: a list has one at a time. */
static void large_descriptions_are_not_in_memory_together(void **state)
{
    static const char front[] = "---\nname: grows\ndescription: Grows.\nversion: \"1\"\n---\n";
    struct member members[GROWERS + 2] = {{.path = "SKILL.md", .content = front}};
    char names[GROWERS][32], *text = malloc(GROWN_BYTES);
    const long before = harness_status(&w.h, PEAK);
    unsigned n = 0;

    (void)state;
    assert_non_null(text);
    write_grower(text);
    for (unsigned i = 0; i < GROWERS; i++) {
        snprintf(names[i], sizeof(names[i]), "scripts/g%u.py", i);
        members[i + 1] = (struct member){.path = names[i], .content = text};
    }
    push(members);
    free(text);
    for (int i = 0; i < 100 && n < GROWERS; i++)
        n = count_grown();
    assert_int_equal(n, GROWERS);
    print_message("a list took %ld KiB\n", harness_status(&w.h, PEAK) - before);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
    assert_in_range(harness_status(&w.h, PEAK) - before, 0, 16 * 1024);
#endif
}

#define ENTRIES 15000u
#ifdef __SANITIZE_ADDRESS__ /* where memory is not looked at */
#define TOGETHER 16u
#else
#define TOGETHER 48u
#endif
#define AGAIN 12u /* more than there are turns */

/* Of which more is known than its archive has bytes; its files' names are of that letter. */
static void push_wide(const char *name, char letter, unsigned n)
{
    char front[80];
    struct member *members = calloc(n + 2, sizeof(*members));
    char(*names)[920] = calloc(n, sizeof(*names));

    assert_non_null(members);
    assert_non_null(names);
    snprintf(front, sizeof(front), "---\nname: %s\ndescription: Wide.\nversion: \"1\"\n---\n",
             name);
    members[0] = (struct member){.path = "SKILL.md", .content = front};
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < 4; k++) {
            memset(names[i] + k * 220, letter, 219);
            names[i][k * 220 + 219] = '/';
        }
        (void)sprintf(names[i] + 880, "%u", i);
        members[i + 1].path = names[i];
    }
    push(members);
    free(names);
    free(members);
}

static int ask_to_show(void)
{
    return send_get("/v1/skills/wide/1");
}

/* Nothing is begun: the file that it wants is looked for when all of the skill is known. */
static int ask_to_run(void)
{
    static const char json[] =
        "{\"skill\":\"wide\",\"files\":[{\"name\":\"a\",\"uri\":"
        "\"execution://exec_00000000000000000000000000000000/files/a\"}]}";

    return harness_send(&w.h, "POST", "/v1/executions", w.a.headers, json, strlen(json));
}

/* It has no tool, which is known when it was looked at. */
static int ask_to_call(void)
{
    static const char json[] = "{\"name\":\"wide\"}";

    return harness_send(&w.h, "POST", "/v1/tools/call", w.a.headers, json, strlen(json));
}

/* Whether it was answered, with this status, or told no. */
static bool take_answer(int fd, int status)
{
    struct answer a = harness_read_answer(fd);
    bool is_answered = a.status == status;

    assert_true(is_answered || a.status == 429);
    answer_finish(&a);
    close(fd);
    return is_answered;
}

/* However many ask at once, some are answered at once, and the others wait or are told no. */
static void ask_together(int (*ask_for)(void), int status)
{
    long before;
    int fds[TOGETHER];
    unsigned n = 0;

    forget_peak();
    before = harness_status(&w.h, PEAK);
    for (unsigned i = 0; i < TOGETHER; i++)
        fds[i] = ask_for();
    for (unsigned i = 0; i < TOGETHER; i++)
        n += take_answer(fds[i], status);
    assert_true(n > 0);
    print_message("%u of %u answered, which took %ld KiB\n", n, TOGETHER,
                  harness_status(&w.h, PEAK) - before);
#ifndef __SANITIZE_ADDRESS__
    assert_in_range(harness_status(&w.h, PEAK) - before, 0, 256 * 1024);
#endif
    /* Nobody has kept a turn. */
    for (unsigned i = 0; i < AGAIN; i++)
        assert_true(take_answer(ask_for(), status));
}

static void large_skills_are_not_in_memory_together(void **state)
{
    (void)state;
    push_wide("wide", 'x', ENTRIES);
    ask_together(ask_to_run, 400);
    ask_together(ask_to_call, 404);
    ask_together(ask_to_show, 200);
}

/* Each byte of its names is two in the answer. */
static void what_is_accepted_can_be_shown(void **state)
{
    (void)state;
    push_wide("quoted", '"', 19900);
    assert_true(take_answer(send_get("/v1/skills/quoted/1"), 200));
}

/* Skills without an entry, whose tools take more than a list may without being counted. */
static void push_many(void)
{
    char names[64][32], front[1200], text[1001];
    struct member members[66] = {{.path = "SKILL.md", .content = front}};

    memset(text, 'x', 1000);
    text[1000] = '\0';
    for (unsigned i = 0; i < 64; i++) {
        snprintf(names[i], sizeof(names[i]), "scripts/s%u.sh", i);
        members[i + 1] = (struct member){.path = names[i], .content = "true\n"};
    }
    for (unsigned i = 0; i < 16; i++) {
        snprintf(front, sizeof(front),
                 "---\nname: tools%u\ndescription: %s\nversion: \"1\"\n---\n", i, text);
        push(members);
    }
}

/* Begins an execution whose result is some 3.5 MiB, and says where that is. */
static void run_large(char path[64])
{
    const size_t n = 7 * MIB / 2;
    char *json = malloc(4 * MIB);
    struct answer a;
    int len;

    assert_non_null(json);
    len = sprintf(json, "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"echo\"},\"input\":\"");
    memset(json + len, 'x', n);
    memcpy(json + len + n, "\"}", 3);
    a = run_as(&w, &w.a, json);
    free(json);
    assert_int_equal(a.status, 200);
    answer_execution_path(&a, path, 64);
    answer_finish(&a);
}

/* Asks for it and takes nothing of the answer. */
static int ask(const char *path)
{
    struct pollfd pfd = {.fd = send_get(path), .events = POLLIN};

    assert_int_equal(poll(&pfd, 1, 60000), 1);
    return pfd.fd;
}

/* Where answers that nobody takes are all that a tenant may have, no list is made beside them.
 */
static void lists_count_like_answers(void **state)
{
    static const char call[] = "{\"name\":\"nobody\"}";
    char path[64];
    int fds[UNREAD];

    (void)state;
    push_many();
    expect(as(&w, &w.a, "POST", "/v1/tools/call", call), 404, "nobody");
    run_large(path);
    for (int i = 0; i < UNREAD; i++)
        fds[i] = ask(path);
    expect(as(&w, &w.a, "POST", "/v1/tools/call", call), 429, "lists of tools");
    expect(as(&w, &w.a, "GET", "/v1/tools", ""), 429, "lists of tools");
    expect(as(&w, &w.b, "GET", "/v1/tools", ""), 200, "run_code");
    for (int i = 0; i < UNREAD; i++)
        close(fds[i]);
}

enum taken { TAKEN, REFUSED, CUT_OFF };

/* Takes so much of an answer, or all of it: it may say that it is too much now, or be cut off
   for being read too late. */
static enum taken take(int fd, size_t bytes)
{
    char *data = calloc(1, bytes + 1);
    enum taken taken = TAKEN;
    ssize_t n;

    assert_non_null(data);
    n = recv(fd, data, bytes, MSG_WAITALL);
    if (strstr(data, "event: error\ndata: {\"error\":\"overloaded\""))
        taken = REFUSED;
    else if (n < (ssize_t)bytes && !strstr(data, "event: result\n"))
        taken = CUT_OFF;
    free(data);
    return taken;
}

/* A reader that is behind keeps the log of what has ended in memory: it counts like an answer.
 */
static void logs_of_what_has_ended_count_like_answers(void **state)
{
    static const char json[] = "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"flood\"}}";
    const double before = ended(&w, &w.a);
    char headers[512];
    unsigned n[3] = {0};
    enum taken taken[LOGS];
    int fds[LOGS];

    (void)state;
    snprintf(headers, sizeof(headers), "Accept: text/event-stream\r\n%s", w.a.headers);
    for (unsigned i = 0; i < LOGS; i++)
        fds[i] = harness_send(&w.h, "POST", "/v1/executions", headers, json, strlen(json));
    harness_until(ended(&w, &w.a) >= before + LOGS);
    /* More than waits in a socket: each of them comes to look how it is now. */
    for (unsigned i = 0; i < LOGS; i++)
        taken[i] = take(fds[i], LOG_TAKEN);
    for (unsigned i = 0; i < LOGS; i++) {
        if (taken[i] == TAKEN)
            taken[i] = take(fds[i], 4 * MIB);
        n[taken[i]]++;
        close(fds[i]);
    }
    print_message("%u of %u refused, %u cut off\n", n[REFUSED], LOGS, n[CUT_OFF]);
    /* No more than 64 fit of one MiB each. */
    assert_in_range(n[TAKEN], 2, 64);
    assert_int_not_equal(n[REFUSED], 0);
    expect(as(&w, &w.a, "GET", "/v1/tools", ""), 200, "run_code");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_descriptions_are_not_in_memory_together),
        cmocka_unit_test(large_skills_are_not_in_memory_together),
        cmocka_unit_test(what_is_accepted_can_be_shown),
        cmocka_unit_test(lists_count_like_answers),
        cmocka_unit_test(logs_of_what_has_ended_count_like_answers),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
