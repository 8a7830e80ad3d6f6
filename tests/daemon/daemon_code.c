/* SPDX-License-Identifier: Apache-2.0 */
/* Code without a skill: by HTTP, as a tool, and from the command line. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect harness_expect

static struct harness h;
static char printed[65536]; /* both streams of the last command */

static int start(void **state)
{
    (void)state;
    setenv("SKILLVM_MACHINES_PARKED", "4", 1);
    harness_init(&h, "boot", "restore");
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    return harness_push(&h, "demo", "1.0", "print(1)") == 201 ? 0 : -1;
}

static int finish(void **state)
{
    int status = harness_stop(&h, SIGTERM);

    (void)state;
    harness_finish(&h);
    return status;
}

static struct answer call(const char *json)
{
    return harness_request(&h, "POST", "/v1/tools/call", "Content-Type: application/json\r\n",
                           json, strlen(json));
}

/* The digest of the skill in an answer, which it finishes. The caller frees it. */
static char *digest_of(struct answer a)
{
    char digest[65];

    if (a.status != 200)
        fail_msg("%d: %s", a.status, a.body);
    answer_text(&a, "digest", digest, sizeof(digest));
    answer_finish(&a);
    return strdup(digest);
}

/* RUN says the language (tag 1) and the entry (tag 3). */
static void code_is_a_script(void **state)
{
    (void)state;
    expect(harness_run(&h, "{\"code\":\"print(1)\"}"), 200, ":\"main.py\",");
    expect(harness_run(&h, "{\"code\":\"print(1)\",\"lang\":\"python\"}"), 200,
           ":\"main.py\",");
    expect(harness_run(&h, "{\"code\":\"echo 1\",\"lang\":\"bash\"}"), 200, ":\"main.sh\",");
    expect(harness_run(&h, "{\"code\":\"echo 1\",\"lang\":\"shell\"}"), 200, ":\"main.sh\",");
    expect(harness_run(&h, "{\"code\":\"#!/bin/bash\\necho 1\"}"), 200, ":\"main.sh\",");
    expect(harness_run(&h, "{\"code\":\"#!/usr/bin/env python3\\n1\",\"lang\":null}"), 200,
           ":\"main.py\",");
    /* Its own language counts before its first line. */
    expect(harness_run(&h, "{\"code\":\"#!/usr/bin/env node\\n1\",\"lang\":\"py\"}"), 200,
           ":\"main.py\",");
}

/* No name and no version: a skill has both. */
static void code_has_a_digest_alone(void **state)
{
    struct answer a = harness_run(&h, "{\"code\":\"print(1)\"}");
    char *one = digest_of(a), *other;
    char text[256], path[64];

    (void)state;
    snprintf(text, sizeof(text), "\"skill\":{\"name\":null,\"version\":null,\"digest\":\"%s\"}",
             one);
    a = harness_run(&h, "{\"code\":\"print(1)\",\"input\":[1.0]}");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, text));
    assert_non_null(strstr(a.body, "\"input\":[1.0]"));
    answer_execution_path(&a, path, sizeof(path));
    answer_finish(&a);
    expect(harness_get(&h, path), 200, text);
    expect(harness_get(&h, "/v1/executions?limit=1"), 200, text);
    /* The skill that it is made to is registered nowhere. */
    expect(harness_get(&h, "/v1/skills/code/latest"), 404, "not_found");
    other = digest_of(harness_run(&h, "{\"code\":\"print(2)\"}"));
    assert_string_not_equal(one, other);
    free(other);
    other = digest_of(harness_run(&h, "{\"code\":\"print(1)\",\"lang\":\"bash\"}"));
    assert_string_not_equal(one, other);
    free(other);
    free(one);
}

/* A machine waits for its next run once it was put back, which is after the answer. */
static void the_same_code_finds_its_machine_again(void **state)
{
    static const char first[] = "{\"code\":\"'a'\",\"env\":{\"FAKE\":\"who\"}}";
    static const char second[] = "{\"code\":\"'b'\",\"env\":{\"FAKE\":\"who\"}}";
    bool reused = false;

    (void)state;
    expect(harness_run(&h, first), 200, "\"machine\":\"fresh\"");
    for (int i = 0; i < 1500 && !reused; i++) {
        struct answer a = harness_run(&h, first);

        reused = answer_has(&a, "\"machine\":\"reused\"");
        answer_finish(&a);
        usleep(20000);
    }
    assert_true(reused);
    expect(harness_run(&h, second), 200, "\"machine\":\"fresh\"");
    expect(harness_run(&h, "{\"code\":\"'a'\",\"fresh\":true}"), 200, "\"machine\":\"fresh\"");
}

static void every_option_goes_with_code(void **state)
{
    static const char form[] =
        "--part\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n"
        "{\"code\":\"x\"}\r\n--part--\r\n";
    struct answer a;
    char json[256], id[38];

    (void)state;
    a = harness_request(&h, "POST", "/v1/files?name=in.csv", "Content-Type: text/csv\r\n",
                        "a,b\n", 4);
    assert_int_equal(a.status, 201);
    answer_text(&a, "id", id, sizeof(id));
    answer_finish(&a);
    snprintf(json, sizeof(json),
             "{\"code\":\"x\",\"files\":[{\"id\":\"%s\",\"path\":\"d/e\"}]}", id);
    expect(harness_run(&h, json), 200, "d/e");
    expect(harness_run(&h, "{\"code\":\"x\",\"args\":[\"one\"],\"env\":{\"A\":\"b\"},"
                           "\"timeout\":\"7s\",\"limits\":{\"memory\":\"64Mi\",\"pids\":5}}"),
           200, ":\"A=b\",");
    expect(harness_run(&h, "{\"code\":\"x\",\"args\":[\"one\"]}"), 200, ":\"one\",");
    expect(harness_run(&h, "{\"code\":\"x\",\"async\":true}"), 202, "\"status\":\"accepted\"");
    expect(harness_request(&h, "POST", "/v1/executions",
                           "Content-Type: application/json\r\nAccept: text/event-stream\r\n",
                           "{\"code\":\"x\"}", 12),
           200, "event: result");
    expect(harness_request(&h, "POST", "/v1/executions",
                           "Content-Type: multipart/form-data; boundary=part\r\n", form,
                           sizeof(form) - 1),
           200, ":\"main.py\",");
    a = harness_run(&h, "{\"code\":\"x\",\"idempotency_key\":\"c1\"}");
    assert_int_equal(a.status, 200);
    answer_text(&a, "execution_id", id, sizeof(id));
    answer_finish(&a);
    expect(harness_run(&h, "{\"code\":\"x\",\"idempotency_key\":\"c1\"}"), 200, id);
    expect(harness_run(&h, "{\"code\":\"y\",\"idempotency_key\":\"c1\"}"), 409, "conflict");
}

static void what_is_no_code_is_refused(void **state)
{
    static const char *const cases[][2] = {
        {"{\"code\":7}", "\\\"code\\\" must be a string"},
        {"{\"code\":\"\"}", "not empty"},
        {"{\"code\":null}", "or give \\\"code\\\""},
        {"{\"code\":\"a\\u0000b\"}", "NUL"},
        {"{\"code\":\"x\",\"skill\":\"demo\"}", "exclude each other"},
        {"{\"code\":\"x\",\"version\":\"1\"}", "exclude each other"},
        {"{\"code\":\"x\",\"script\":\"a.py\"}", "does not go with"},
        {"{\"code\":\"x\",\"module\":\"a\"}", "does not go with"},
        {"{\"skill\":\"demo\",\"lang\":\"python\"}", "\\\"lang\\\" is of \\\"code\\\""},
        {"{\"code\":\"x\",\"lang\":\"cobol\"}", "no language that is known"},
        {"{\"code\":\"x\",\"lang\":\"typescript\"}", "TypeScript, which does not run here"},
        {"{\"code\":\"x\",\"lang\":\"lua\"}", "write it in Python, bash or JavaScript"},
        {"{\"code\":\"#!/usr/bin/env -S ruby -w\\nx\"}", "in Ruby"},
        {"{\"code\":\"x\",\"lang\":[]}", "\\\"lang\\\" must be a string"},
        {"{\"code\":\"x\",\"code\":\"y\"}", "twice"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(harness_run(&h, cases[i][0]), 400, cases[i][1]);
}

static void code_has_a_size(void **state)
{
    enum { MAX = 256 * 1024 };
    char *json = malloc(MAX + 64);
    size_t len;

    (void)state;
    assert_non_null(json);
    strcpy(json, "{\"code\":\"");
    len = strlen(json);
    memset(json + len, '#', MAX + 1);
    strcpy(json + len + MAX, "\"}");
    expect(harness_run(&h, json), 200, ":\"main.py\",");
    memset(json + len, '#', MAX + 1);
    strcpy(json + len + MAX + 1, "\"}");
    expect(harness_run(&h, json), 413, "larger than 256 KiB");
    free(json);
}

/* Code of 250 KiB for a tenant, which runs for a minute. Its status; id gets what it began. */
static int run_long(char id[38])
{
    enum { SIZE = 250 * 1024 };
    static const char headers[] = "X-Tenant-ID: small\r\nContent-Type: application/json\r\n";
    struct buf json = buf_init(SIZE + 256);
    struct answer a;
    int status;

    buf_printf(&json, "{\"async\":true,\"env\":{\"FAKE\":\"sleep\",\"FAKE_DATA\":\"60000\"},"
                      "\"code\":\"");
    assert_int_equal(buf_reserve(&json, SIZE), 0);
    memset(json.data + json.len, '#', SIZE);
    json.len += SIZE;
    buf_printf(&json, "\"}");
    a = harness_request(&h, "POST", "/v1/executions", headers, json.data, json.len);
    status = a.status;
    if (status == 202)
        answer_text(&a, "execution_id", id, 38);
    else
        assert_non_null(strstr(a.body, "storage_bytes: "));
    answer_finish(&a);
    buf_finish(&json);
    return status;
}

/* What is made of code is on disk as long as the execution waits or runs. */
static void code_that_waits_counts(void **state)
{
    static const char tenant[] = "{\"name\":\"small\",\"limits\":{\"storage_bytes\":1300000}}";
    char ids[8][38], path[64];
    size_t n = 0;
    int status = 0;

    (void)state;
    expect(harness_request(&h, "POST", "/v1/admin/tenants",
                           "Content-Type: application/json\r\n", tenant, sizeof(tenant) - 1),
           201, "ten_");
    while (n < 8 && (status = run_long(ids[n])) == 202)
        n++;
    assert_int_equal(status, 429);
    assert_in_range(n, 2, 4);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "/v1/executions/%.37s", ids[i]);
        expect(harness_request(&h, "DELETE", path, "X-Tenant-ID: small\r\n", NULL, 0), 202, "");
    }
    for (int i = 0; i < 1500 && (status = run_long(ids[0])) != 202; i++)
        usleep(20000);
    assert_int_equal(status, 202);
    snprintf(path, sizeof(path), "/v1/executions/%.37s", ids[0]);
    expect(harness_request(&h, "DELETE", path, "X-Tenant-ID: small\r\n", NULL, 0), 202, "");
}

static void a_tool_runs_code(void **state)
{
    static const char *const shapes[][2] = {
        {"/v1/tools",
         "\"name\":\"run_code\",\"description\":\"Runs a Python, bash or JavaScript"},
        {"/v1/tools?format=anthropic", "\"input_schema\":{\"type\":\"object\",\"properties\":"
                                       "{\"code\":{\"type\":\"string\","},
        {"/v1/tools?format=mcp", "{\"tools\":[{\"name\":\"run_code\","},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct answer a = harness_get(&h, shapes[i][0]);

        assert_int_equal(a.status, 200);
        if (!strstr(a.body, shapes[i][1]))
            fail_msg("%s is not in %s", shapes[i][1], a.body);
        answer_finish(&a);
    }
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":\"print(1)\"}}"), 200,
           ":\"main.py\",");
    expect(call("{\"name\":\"run_code\",\"arguments\":\"{\\\"code\\\":\\\"ls\\\","
                "\\\"lang\\\":\\\"bash\\\",\\\"input\\\":{\\\"n\\\":1.0}}\"}"),
           200, "\"input\":{\"n\":1.0}");
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":\"x\",\"args\":[\"-v\"],"
                "\"timeout\":5},\"env\":{\"A\":\"b\"}}"),
           200, ":\"-v\",");
    expect(call("{\"name\":\"run_code\",\"arguments\":{}}"), 400, "\\\"code\\\" is missing");
    expect(call("{\"name\":\"run_code\"}"), 400, "\\\"code\\\" is missing");
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":1}}"), 400, "must be of type");
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":\"x\",\"lang\":\"ruby\"}}"),
           400, "lang");
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":\"x\",\"skill\":\"demo\"}}"),
           400, "skill");
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":\"x\",\"timeout\":5},"
                "\"timeout\":6}"),
           400, "an argument and an option");
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":\"x\",\"c\\u006fde\":\"y\"}}"),
           400, "bad_request");
}

/* Who calls run_code never runs a skill, whatever skills are called. */
static void a_skill_of_that_name_has_another(void **state)
{
    struct answer a;
    const char *at;
    char name[32], json[64];

    (void)state;
    assert_int_equal(harness_push(&h, "run_code", "1", "print(1)"), 201);
    a = harness_get(&h, "/v1/tools?format=mcp");
    at = strstr(a.body, "\"run_code_");
    assert_non_null(at);
    snprintf(name, sizeof(name), "%.17s", at + 1);
    assert_null(strstr(at + 1, "\"run_code\""));
    answer_finish(&a);
    snprintf(json, sizeof(json), "{\"name\":\"%s\"}", name);
    expect(call(json), 200, "\"name\":\"run_code\",\"version\":\"1\"");
    expect(call("{\"name\":\"run_code\",\"arguments\":{\"code\":\"x\"}}"), 200,
           "\"name\":null,");
    expect(harness_request(&h, "DELETE", "/v1/skills/run_code/1", "", NULL, 0), 204, "");
}

/* Runs `skillvm …` in the harness's folder. */
static void skillvm(const char *arguments, int status, const char *part)
{
    char command[2048];
    size_t len;
    FILE *f;
    int got;

    snprintf(command, sizeof(command), "cd '%s' && '%s' --socket '%s' --data '%s' %s 2>&1",
             h.dir, SKILLVM, h.socket, h.data, arguments);
    f = popen(command, "r");
    assert_non_null(f);
    len = fread(printed, 1, sizeof(printed) - 1, f);
    printed[len] = '\0';
    got = pclose(f);
    if (!WIFEXITED(got) || WEXITSTATUS(got) != status || !strstr(printed, part))
        fail_msg("skillvm %s: %d: %s; expected %d with %s", arguments, WEXITSTATUS(got),
                 printed, status, part);
}

static void write_script(const char *name, const char *text, size_t len)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", h.dir, name);
    fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, len), 0);
    close(fd);
}

static void the_command_line_runs_code(void **state)
{
    char line[64];

    (void)state;
    skillvm("run --json --code 'print(1)'", 0, ":\"main.py\",");
    skillvm("run --json -c 'echo 1' --lang bash", 0, ":\"main.sh\",");
    skillvm("run --json -c x --input '[1.0]' -e A=b -- one two", 0, ":\"two\",");
    skillvm("run -c x -e FAKE=exit -e FAKE_DATA=3", 3, "skillvm: the code: failed: ");
    skillvm("run --json --code - <<'END'\n#!/bin/sh\necho 1\nEND\ntrue", 0, "main.sh");
    skillvm("exec list -n 1", 0, "(code)");
    skillvm("exec list -n 1 -o json", 0, "\"name\":null");
    assert_non_null(strstr(printed, "exec_"));
    snprintf(line, sizeof(line), "exec show %.37s", strstr(printed, "exec_"));
    skillvm(line, 0, "skill      (code)");
    skillvm("run", 2, "or a script, or give --code");
    skillvm("run --code x demo", 2, "give --code or \"demo\", not both");
    skillvm("run --code x --script a.py", 2, "--script is for skills");
    skillvm("run --code x --module a", 2, "--module is for skills");
    skillvm("run --code x --lang perl", 2,
            "--lang is python, bash, shell or node, not \"perl\"");
    skillvm("run --code - --input -", 2, "cannot both be read from standard input");
    skillvm("run --code ''", 125, "\"code\" must be a string that is not empty");
    skillvm("run demo --lang python", 2, "\"demo\" is no script");
    skillvm("run --code - </dev/zero", 125, "code has up to 256 KiB");
    skillvm("tools call run_code '{\"code\":\"x\",\"lang\":\"bash\"}' -o json", 0, "main.sh");
    skillvm("tools list", 0,
            "run_code  code [lang] [input] [args] [files] [session_id] [network] [timeout]");
}

static void the_command_line_runs_scripts(void **state)
{
    static const struct {
        const char *name, *text;
        const char *entry; /* NULL: it is refused with the problem */
        const char *problem;
    } cases[] = {
        {"a.py", "print(1)\n", "main.py", NULL},
        {"a.sh", "echo 1\n", "main.sh", NULL},
        {"a.bash", "echo 1\n", "main.sh", NULL},
        {"plain", "#!/usr/bin/env bash\necho 1\n", "main.sh", NULL},
        {"dotted.tool", "#!/usr/bin/python3.11 -u\n", "main.py", NULL},
        {"a.ts", "let a: number\n", NULL, "a.ts is in TypeScript, which does not run here"},
        {"a.rb", "puts 1\n", NULL, "a.rb is in Ruby"},
        {"a.go", "package main\n", NULL, "a.go is in Go"},
        {"a.js", "1\n", "main.js", NULL},
        {"a.cjs", "exports.a = 1\n", "main.js", NULL},
        {"a.mjs", "import 'fs'\n", "main.mjs", NULL},
        {"perly", "#!/usr/bin/perl\n1;\n", NULL, "perly is in Perl"},
        {"odd", "#!/opt/odd\n", NULL, "odd: its language is unknown"},
        {"latin.py", "# \xe4\n", NULL, "latin.py: code is text in UTF-8"},
        {"notes.txt", "hello\n", NULL, "neither a zip nor a tar archive"},
    };
    char line[128], entry[64];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_script(cases[i].name, cases[i].text, strlen(cases[i].text));
        snprintf(line, sizeof(line), "run %s --json", cases[i].name);
        snprintf(entry, sizeof(entry), ":\"%s\",", cases[i].entry ? cases[i].entry : "");
        skillvm(line, cases[i].entry ? 0 : 125, cases[i].entry ? entry : cases[i].problem);
    }
    write_script("nul.py", "a\0b", 3);
    skillvm("run nul.py", 125, "nul.py: code is text in UTF-8");
    skillvm("run notes.txt --lang bash --json", 0, "main.sh");
    skillvm("run ./a.py --json -- one", 0, ":\"one\",");
    skillvm("run a.py --script b.py", 2, "\"a.py\" is a script; --script is for skills");
    /* The text counts and not the name. */
    {
        char *digest = digest_of(harness_run(&h, "{\"code\":\"print(1)\\n\"}"));

        skillvm("run a.py --json", 0, digest);
        free(digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_a_script),
        cmocka_unit_test(code_has_a_digest_alone),
        cmocka_unit_test(the_same_code_finds_its_machine_again),
        cmocka_unit_test(every_option_goes_with_code),
        cmocka_unit_test(what_is_no_code_is_refused),
        cmocka_unit_test(code_has_a_size),
        cmocka_unit_test(code_that_waits_counts),
        cmocka_unit_test(a_tool_runs_code),
        cmocka_unit_test(a_skill_of_that_name_has_another),
        cmocka_unit_test(the_command_line_runs_code),
        cmocka_unit_test(the_command_line_runs_scripts),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
