/* SPDX-License-Identifier: Apache-2.0 */
/* Skills as tools, through a real daemon: definitions in every shape, and calls. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tools_world.h"
#include "tests/unit/database.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__ /* which keeps what is freed */
#define HELD_KIB LONG_MAX
#else
#define HELD_KIB 16384
#endif
#define FRONT(name, version, more)                                                             \
    "---\nname: " name "\ndescription: Does " name ".\nversion: \"" version "\"\n" more        \
    "---\nBody.\n"

/* What the stand-in's guest says of a parser: see fake_vmm.c. */
#define PROBE(text) "import argparse\n#probe:" text "\n"
#define PARSER(actions)                                                                        \
    "{\"version\":1,\"doc\":\"Own "                                                            \
    "words.\",\"parser\":{\"description\":null,\"actions\":[" actions "]}}"
#define COUNT                                                                                  \
    "{\"kind\":\"store\",\"dest\":\"count\",\"options\":[\"--count\"],\"nargs\":null,"         \
    "\"type\":\"integer\",\"required\":false,\"help\":\"how often\"}"
#define SOURCE                                                                                 \
    "{\"kind\":\"store\",\"dest\":\"source\",\"options\":[],\"nargs\":null,"                   \
    "\"type\":\"string\",\"required\":true,\"help\":null}"

/* The argument that every tool has, unless it has an own one of that name. */
#define FILES                                                                                  \
    "\"files\":{\"type\":\"array\",\"description\":\"Files that the script finds in "          \
    "/sandbox/in, each by its name; the content is text, base64, or the uri of a file that "   \
    "an earlier call left\",\"items\":{\"type\":\"object\",\"properties\":{\"name\":{"         \
    "\"type\":\"string\"},\"text\":{\"type\":\"string\"},\"base64\":{\"type\":\"string\"},"    \
    "\"uri\":{\"type\":\"string\"}}}}"

/* How what says nothing about itself is described. */
#define OPEN "{\"type\":\"object\",\"properties\":{\"args\":{\"type\":\"array\","

static void expect_absent(const char *path, const char *text)
{
    struct answer a = harness_get(&h, path);

    assert_int_equal(a.status, 200);
    if (strstr(a.body, text))
        fail_msg("%s is in %s", text, a.body);
    answer_finish(&a);
}

static void nothing_yet(void **state)
{
    (void)state;
    /* There is no skill but what runs code. */
    harness_expect(harness_get(&h, "/v1/tools"), 200, "\"name\":\"run_code\"");
    expect_absent("/v1/tools", "},{\"type\":\"function\"");
    expect_absent("/v1/tools?format=anthropic", "},{\"name\"");
    expect_absent("/v1/tools?format=mcp", "},{\"name\"");
    harness_expect(harness_get(&h, "/v1/tools?format=xml"), 400, "openai, anthropic or mcp");
}

static void schema_of_the_front_matter(void **state)
{
    static const char *const schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                                      "\"integer\"}," FILES "},\"required\":[\"n\"]}";
    const struct harness_file files[] = {
        {"SKILL.md", FRONT("plain", "1",
                           "input_schema:\n  type: object\n  properties:\n"
                           "    n: {type: integer}\n  required: [n]\n")},
        {"main.py", PROBE("=die")},
        {NULL, NULL}};
    char text[1024];

    (void)state;
    push(files);
    snprintf(text, sizeof(text),
             "{\"type\":\"function\",\"function\":{\"name\":\"plain\",\"description\":"
             "\"Does plain.\",\"parameters\":%s}}",
             schema);
    harness_expect(harness_get(&h, "/v1/tools"), 200, text);
    harness_expect(harness_get(&h, "/v1/tools?format=openai"), 200, text);
    snprintf(text, sizeof(text),
             "{\"name\":\"plain\",\"description\":\"Does plain.\",\"input_schema\":%s}",
             schema);
    harness_expect(harness_get(&h, "/v1/tools?format=anthropic"), 200, text);
    snprintf(text, sizeof(text),
             "{\"name\":\"plain\",\"description\":\"Does plain.\",\"inputSchema\":%s}", schema);
    harness_expect(harness_get(&h, "/v1/tools?format=mcp"), 200, text);
    /* Numbers arrive as they were written. */
    harness_expect(call("{\"name\":\"plain\",\"arguments\":{\"n\": 12345678901234567890}}"),
                   200, "\"input\":{\"n\":12345678901234567890}");
    harness_expect(call("{\"name\":\"plain\",\"arguments\":\"{\\\"n\\\": 7}\"}"), 200,
                   "\"input\":{\"n\":7}");
    harness_expect(call("{\"name\":\"plain\",\"arguments\":{}}"), 400, "\\\"n\\\" is missing");
    harness_expect(call("{\"name\":\"plain\"}"), 400, "\\\"n\\\" is missing");
    harness_expect(call("{\"name\":\"plain\",\"arguments\":{\"n\":\"1\"}}"), 400,
                   "\\\"n\\\" must be of type");
}

/* Below its heading; the parser is not looked at then. */
static void schema_of_the_instructions(void **state)
{
    const struct harness_file files[] = {
        {"SKILL.md", FRONT("shown", "1", "") "## Input schema\n\n```json\n{\"properties\": "
                                             "{\"n\": {\"type\": \"integer\"}}}\n```\n"},
        {"main.py", PROBE(PARSER(COUNT))},
        {NULL, NULL}};

    (void)state;
    push(files);
    harness_expect(harness_get(&h, "/v1/tools?format=anthropic"), 200,
                   "{\"name\":\"shown\",\"description\":\"Does shown.\",\"input_schema\":"
                   "{\"properties\":{\"n\":{\"type\":\"integer\"}," FILES
                   "},\"type\":\"object\"}}");
    harness_expect(call("{\"name\":\"shown\",\"arguments\":{\"n\":\"1\"}}"), 400,
                   "\\\"n\\\" must be of type");
}

static void a_parser_of_the_entry(void **state)
{
    const struct harness_file files[] = {{"SKILL.md", FRONT("parsed", "1", "")},
                                         {"main.py", PROBE(PARSER(SOURCE "," COUNT))},
                                         {NULL, NULL}};

    (void)state;
    push(files);
    harness_expect(
        harness_get(&h, "/v1/tools?format=anthropic"), 200,
        "{\"name\":\"parsed\",\"description\":\"Does parsed.\\n\\nOwn words.\","
        "\"input_schema\":{\"type\":\"object\",\"properties\":{\"source\":{\"type\":"
        "\"string\"},\"count\":{\"type\":\"integer\",\"description\":\"how often\"}," FILES "},"
        "\"required\":[\"source\"],\"additionalProperties\":false}}");
    /* RUN: two arguments, and no more input than there always is. */
    harness_expect(call("{\"name\":\"parsed\",\"arguments\":{\"source\":\"a b\",\"count\":4}}"),
                   200, ":\"--count=4\",");
    harness_expect(call("{\"name\":\"parsed\",\"arguments\":{\"source\":\"a b\"}}"), 200,
                   "\"input\":{}");
    harness_expect(call("{\"name\":\"parsed\",\"arguments\":{\"count\":4}}"), 400,
                   "\\\"source\\\" is missing");
    harness_expect(
        call("{\"name\":\"parsed\",\"arguments\":{\"source\":\"\",\"count\":\"x\"}}"), 400,
        "\\\"count\\\" must be a whole number");
    harness_expect(call("{\"name\":\"parsed\",\"arguments\":{\"source\":\"\",\"odd\":1}}"), 400,
                   "no argument \\\"odd\\\"");
    /* What was found once is known from now on, also to a daemon that starts anew. */
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    harness_expect(call("{\"name\":\"parsed\",\"arguments\":{\"source\":\"-x\"}}"), 200,
                   ":\"--\",");
}

static void scripts_of_a_skill_without_an_entry(void **state)
{
    const struct harness_file files[] = {{"SKILL.md", FRONT("many tools", "1", "")},
                                         {"helpers/inner.py", "pass\n"},
                                         {"scripts/__init__.py", ""},
                                         {"scripts/count.py", PROBE(PARSER(COUNT))},
                                         {"scripts/count.sh", "echo\n"},
                                         {"scripts/open.py", "print(1)\n"},
                                         {NULL, NULL}};
    struct answer a;

    (void)state;
    push(files);
    a = harness_get(&h, "/v1/tools?format=mcp");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"name\":\"many_tools__open\",\"description\":\"Runs "
                               "scripts/open.py of the skill many tools: Does many tools.\","
                               "\"inputSchema\":" OPEN));
    assert_non_null(
        strstr(a.body, "\"description\":\"Own words.\\n\\nRuns scripts/count.py of"));
    /* Two that would be called the same. */
    assert_false(answer_has(&a, "\"many_tools__count\""));
    assert_true(answer_has(&a, "\"many_tools__count_"));
    assert_null(strstr(a.body, "inner"));
    assert_null(strstr(a.body, "init"));
    answer_finish(&a);
    /* Nobody reads its skill again to see that. */
    assert_int_equal(database_number(h.data,
                                     "SELECT COUNT(*) FROM tool_schemas WHERE schema IS NULL"
                                     " AND script = 'scripts/open.py'"),
                     1);
    harness_expect(call("{\"name\":\"many_tools__open\",\"arguments\":{\"a\":[1]}}"), 200,
                   "\"input\":{\"a\":[1]}");
    harness_expect(call("{\"name\":\"many_tools__open\"}"), 200, ":\"scripts/open.py\",");
    harness_expect(call("{\"name\":\"many_tools\"}"), 404, "no tool named many_tools");
    harness_expect(call("{\"name\":\"many tools\"}"), 404, "no tool named");
}

static void the_latest_version_counts(void **state)
{
    const struct harness_file first[] = {
        {"SKILL.md", FRONT("twice", "1", "input_schema: {properties: {old: {}}}\n")},
        {"main.py", "pass\n"},
        {NULL, NULL}};
    const struct harness_file second[] = {
        {"SKILL.md", FRONT("twice", "2", "input_schema: {properties: {new: {}}}\n")},
        {"main.py", "pass\n"},
        {NULL, NULL}};

    (void)state;
    push(first);
    push(second);
    harness_expect(harness_get(&h, "/v1/tools"), 200, "{\"new\":{}," FILES "}");
    expect_absent("/v1/tools", "\"old\"");
    harness_expect(call("{\"name\":\"twice\"}"), 200, "\"version\":\"2\"");
    harness_expect(harness_request(&h, "DELETE", "/v1/skills/twice/2", "", NULL, 0), 204, "");
    harness_expect(harness_get(&h, "/v1/tools"), 200, "{\"old\":{}," FILES "}");
    harness_expect(harness_request(&h, "DELETE", "/v1/skills/twice/1", "", NULL, 0), 204, "");
    expect_absent("/v1/tools", "twice");
    harness_expect(call("{\"name\":\"twice\"}"), 404, "no tool");
}

/* Whatever a guest says, there is a definition. */
static void hostile_descriptions(void **state)
{
    static const char *const lies[] = {
        "{",
        "[]",
        "null",
        "\"text\"",
        "{\"version\":1,\"parser\":{\"actions\":[7]}}",
        "{\"version\":1,\"doc\":\"\\u0000\",\"parser\":null}",
        "=timeout",
        "=die",
        PARSER("{\"kind\":\"store\",\"dest\":\"x\",\"options\":[\"; rm\"],\"type\":\"string\","
               "\"required\":true}"),
    };
    char name[32], front[256], script[1024], text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct harness_file files[] = {{"SKILL.md", front}, {"main.py", script}, {NULL, NULL}};

        snprintf(name, sizeof(name), "liar-%zu", i);
        snprintf(front, sizeof(front), "---\nname: %s\ndescription: Lies.\n---\n", name);
        snprintf(script, sizeof(script), "import argparse\n#probe:%s\n", lies[i]);
        push(files);
        snprintf(text, sizeof(text),
                 "\"name\":\"%s\",\"description\":\"Lies.\",\"parameters\":%s", name, OPEN);
        harness_expect(harness_get(&h, "/v1/tools"), 200, text);
        snprintf(text, sizeof(text), "{\"name\":\"%s\",\"arguments\":{\"a\":1}}", name);
        harness_expect(call(text), 200, "\"input\":{\"a\":1}");
    }
}

static void every_way_to_call(void **state)
{
    const struct harness_file files[] = {
        {"SKILL.md", FRONT("ways", "1", "")}, {"main.py", "pass\n"}, {NULL, NULL}};
    struct answer a;
    char *id;

    (void)state;
    push(files);
    a = call("{\"name\":\"ways\",\"async\":true}");
    assert_int_equal(a.status, 202);
    assert_non_null(strstr(a.headers, "Location: /v1/executions/exec_"));
    answer_finish(&a);
    harness_expect(harness_request(&h, "POST", "/v1/tools/call",
                                   "Content-Type: application/json\r\n"
                                   "Accept: text/event-stream\r\n",
                                   "{\"name\":\"ways\"}", 15),
                   200, "event: result");
    harness_expect(call("{\"name\":\"ways\",\"timeout\":\"7s\",\"env\":{\"A\":\"b\"},"
                        "\"limits\":{\"pids\":5}}"),
                   200, ":\"A=b\",");
    harness_expect(call("{\"name\":\"ways\",\"env\":{\"PATH\":\"b\"}}"), 200,
                   "variable PATH is reserved");
    harness_expect(call("{\"name\":\"ways\",\"arguments\":\"\"}"), 200, "\"input\":{}");
    harness_expect(call("{\"name\":\"ways\",\"timeout\":[]}"), 400, "timeout");
    harness_expect(call("{\"name\":\"ways\",\"env\":{\"FAKE\":\"exit\",\"FAKE_DATA\":\"3\"}}"),
                   200, "\"exit_code\":3");
    /* The same call under a key is one execution, also when the skill is pushed anew. */
    a = call("{\"name\":\"ways\",\"arguments\":{\"a\":1},\"idempotency_key\":\"k\"}");
    assert_int_equal(a.status, 200);
    id = strndup(strstr(a.body, "exec_"), 37);
    answer_finish(&a);
    {
        const struct harness_file next[] = {
            {"SKILL.md", FRONT("ways", "2", "")}, {"main.py", "pass\n"}, {NULL, NULL}};

        push(next);
    }
    harness_expect(
        call("{\"name\":\"ways\",\"arguments\":{\"a\":1},\"idempotency_key\":\"k\"}"), 200, id);
    harness_expect(
        call("{\"name\":\"ways\",\"arguments\":{\"a\":2},\"idempotency_key\":\"k\"}"), 409,
        "conflict");
    free(id);
}

static void bad_calls(void **state)
{
    (void)state;
    harness_expect(call(""), 400, "bad_request");
    harness_expect(call("[]"), 400, "bad_request");
    harness_expect(call("{}"), 400, "\\\"name\\\" is missing");
    harness_expect(call("{\"name\":7}"), 400, "\\\"name\\\" must be");
    harness_expect(call("{\"name\":\"\"}"), 404, "not_found");
    harness_expect(call("{\"name\":\"../x\"}"), 404, "not_found");
    harness_expect(call("{\"name\":\"nobody\"}"), 404, "no tool named nobody");
    harness_expect(call("{\"name\":\"ways\",\"arguments\":[]}"), 400, "must be an object");
    harness_expect(call("{\"name\":\"ways\",\"arguments\":\"{\"}"), 400, "must be an object");
    harness_expect(call("{\"name\":\"ways\",\"arguments\":7}"), 400, "must be an object");
    harness_expect(call("{\"name\":\"ways\",\"input\":{}}"), 400, "unknown key \\\"input\\\"");
    harness_expect(call("{\"name\":\"ways\",\"script\":\"x\"}"), 400, "unknown key");
    harness_expect(harness_request(&h, "POST", "/v1/tools/call",
                                   "Content-Type: multipart/form-data; boundary=part\r\n",
                                   "--part--\r\n", 10),
                   415, "unsupported_type");
    harness_expect(
        harness_request(&h, "POST", "/v1/tools/call", "Content-Type: text/plain\r\n", "{}", 2),
        415, "unsupported_type");
    harness_expect(harness_get(&h, "/v1/tools/call"), 405, "method_not_allowed");
}

#define SLOW                                                                                   \
    "{\"kind\":\"store\",\"dest\":\"n\",\"options\":[\"--n\"],\"nargs\":null,"                 \
    "\"type\":\"integer\",\"required\":false,\"help\":\"how slow\"}"

/* A machine may have been slow. */
static void a_look_that_took_too_long_is_repeated(void **state)
{
    const struct harness_file files[] = {{"SKILL.md", FRONT("slow", "1", "")},
                                         {"main.py", PROBE("?" PARSER(SLOW))},
                                         {NULL, NULL}};
    bool is_read = false;

    (void)state;
    push(files);
    for (unsigned i = 0; !is_read && i < 5000; i++) {
        struct answer a = harness_get(&h, "/v1/tools");

        is_read = answer_has(&a, "how slow");
        answer_finish(&a);
        usleep(10000);
    }
    assert_true(is_read);
}

/* Nobody waits for a script that never asks for its arguments longer than that. */
static void a_script_that_hangs(void **state)
{
    const struct harness_file files[] = {
        {"SKILL.md", FRONT("hangs", "1", "")}, {"main.py", PROBE("=hang")}, {NULL, NULL}};
    struct answer a;
    time_t begin;

    (void)state;
    push(files);
    begin = time(NULL);
    a = harness_get(&h, "/v1/tools");
    assert_int_equal(a.status, 200);
    assert_in_range(time(NULL) - begin, 0, 30);
    assert_true(answer_has(&a, "\"hangs\""));
    answer_finish(&a);
    /* And the daemon ends although a machine is looking. */
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    harness_assert_clean(&h);
}

/* Fifty of them take no longer than one, for who asks; and a call does not guess. */
static void many_that_hang(void **state)
{
    static char paths[50][32];
    struct harness_file files[52] = {{"SKILL.md", FRONT("many", "1", "")}};
    struct answer a;
    time_t begin = time(NULL);

    (void)state;
    for (size_t i = 0; i < 50; i++) {
        snprintf(paths[i], sizeof(paths[i]), "scripts/s%02zu.py", i);
        files[i + 1] = (struct harness_file){paths[i], PROBE("=hang")};
    }
    push(files);
    a = harness_get(&h, "/v1/tools");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"many__s00\""));
    assert_true(answer_has(&a, "\"many__s49\""));
    answer_finish(&a);
    assert_true(harness_count_children(&h) <= 2);
    a = call("{\"name\":\"many__s49\",\"arguments\":{\"a\":1}}");
    assert_int_equal(a.status, 503);
    assert_true(answer_has(&a, "\"not_ready\""));
    assert_non_null(strcasestr(a.headers, "Retry-After:"));
    answer_finish(&a);
    assert_in_range(time(NULL) - begin, 0, 60);
    harness_expect(harness_request(&h, "DELETE", "/v1/skills/many/1", "", NULL, 0), 204, "");
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_start(&h, NULL);
    harness_assert_clean(&h);
}

static unsigned count_executions(const char *skill)
{
    char path[128];
    struct answer a;
    unsigned n;

    snprintf(path, sizeof(path), "/v1/executions?skill=%s", skill);
    a = harness_get(&h, path);
    n = answer_count(&a, "execution_id");
    answer_finish(&a);
    return n;
}

/* What a call says is not held in memory for as long as its execution waits and runs. */
static void large_calls_wait_on_disk(void **state)
{
    static const char head[] = "{\"name\":\"large\",\"env\":{\"FAKE\":\"ticks\"},"
                               "\"timeout\":3,\"arguments\":{\"text\":\"";
    const size_t size = 12u << 20, n = 4;
    char *body = malloc(size), *request = NULL;
    int fds[4], len;
    long before;

    (void)state;
    assert_int_equal(harness_push(&h, "large", "1", "pass"), 201);
    assert_non_null(body);
    memset(body, 'x', size);
    memcpy(body, head, sizeof(head) - 1);
    memcpy(body + size - 3, "\"}}", 3);
    len = asprintf(&request,
                   "POST /v1/tools/call HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                   size);
    assert_true(len > 0);
    before = harness_memory_kib(&h);
    for (size_t i = 0; i < n; i++) {
        fds[i] = harness_connect(&h);
        assert_int_equal(fd_write_full(fds[i], request, (size_t)len), 0);
        assert_int_equal(fd_write_full(fds[i], body, size), 0);
    }
    harness_until(count_executions("large") == n);
    harness_until(harness_memory_kib(&h) - before <= HELD_KIB);
    for (size_t i = 0; i < n; i++) {
        harness_expect(harness_read_answer(fds[i]), 200, "\"status\":\"timeout\"");
        close(fds[i]);
    }
    free(request);
    free(body);
}

/* How many archives of skills the daemon has open now. */
static unsigned count_archives(void)
{
    char path[64], target[512];
    struct dirent *entry;
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", h.pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        target[len > 0 ? len : 0] = '\0';
        /* The folder itself is open too. */
        n += strstr(target, "/objects/") != NULL;
    }
    closedir(dir);
    return n;
}

/* However many ask at once for what all archives have to be read for, few of them read. */
static void many_lists_take_turns(void **state)
{
    static const char body[] = "{\"name\":\"nobody_has_this\"}";
    struct harness_file files[202] = {{NULL, NULL}};
    char names[200][16], front[128], request[256];
    unsigned most = 0;
    int fds[60];

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        snprintf(names[i], sizeof(names[i]), "data/%03u", i);
        files[i + 1] = (struct harness_file){names[i], "x"};
    }
    for (unsigned i = 0; i < 30; i++) {
        snprintf(front, sizeof(front), FRONT("many%u", "1", ""), i, i);
        files[0] = (struct harness_file){"SKILL.md", front};
        push(files);
    }
    snprintf(request, sizeof(request),
             "POST /v1/tools/call HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof(body) - 1, body);
    for (size_t i = 0; i < 60; i++) {
        fds[i] = harness_connect(&h);
        assert_int_equal(fd_write_full(fds[i], request, strlen(request)), 0);
    }
    for (size_t i = 0; i < 60; usleep(500)) {
        struct pollfd pfd = {.fd = fds[i], .events = POLLIN};
        unsigned n = count_archives();

        most = n > most ? n : most;
        i += poll(&pfd, 1, 0) > 0;
    }
    print_message("60 lists: up to %u archives open at once\n", most);
    assert_in_range(most, 1, 6);
    for (size_t i = 0; i < 60; i++) {
        struct answer a = harness_read_answer(fds[i]);

        assert_true(a.status == 404 || a.status == 429);
        answer_finish(&a);
        close(fds[i]);
    }
}

/* A tenant without CPU time left keeps nobody else's copy of a skill from being looked at. */
static void one_without_time_harms_nobody(void **state)
{
    static const char poor[] = "X-Tenant-ID: poor\r\nContent-Type: application/json\r\n";
    static const char push_poor[] =
        "X-Tenant-ID: poor\r\nContent-Type: application/octet-stream\r\n";
    static const char tenant[] = "{\"name\":\"poor\",\"limits\":{\"cpu_ms_per_day\":1}}";
    static const char burn[] =
        "{\"skill\":\"burner\",\"env\":{\"FAKE\":\"burn\",\"FAKE_DATA\":\"100\"}}";
    size_t burner_len = 0, shared_len = 0;
    char *burner = harness_skill("burner", "1", "pass", &burner_len);
    char *shared = harness_skill("shared", "1", PROBE(PARSER(COUNT)), &shared_len);

    (void)state;
    harness_expect(harness_request(&h, "POST", "/v1/admin/tenants",
                                   "Content-Type: application/json\r\n", tenant,
                                   sizeof(tenant) - 1),
                   201, "ten_");
    harness_expect(harness_request(&h, "POST", "/v1/skills", push_poor, burner, burner_len),
                   201, "burner");
    harness_expect(harness_request(&h, "POST", "/v1/executions", poor, burn, sizeof(burn) - 1),
                   200, "\"status\":\"success\"");
    harness_expect(harness_request(&h, "POST", "/v1/skills", push_poor, shared, shared_len),
                   201, "shared");
    harness_expect(harness_request(&h, "GET", "/v1/tools", poor, NULL, 0), 200,
                   "\"properties\":{\"args\":");
    harness_expect(harness_request(&h, "POST", "/v1/skills",
                                   "Content-Type: application/octet-stream\r\n", shared,
                                   shared_len),
                   201, "shared");
    harness_expect(harness_get(&h, "/v1/tools"), 200, "\"description\":\"how often\"");
    harness_expect(call("{\"name\":\"shared\",\"arguments\":{\"nothing\":1}}"), 400,
                   "there is no argument");
    free(burner);
    free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_yet),
        cmocka_unit_test(schema_of_the_front_matter),
        cmocka_unit_test(schema_of_the_instructions),
        cmocka_unit_test(a_parser_of_the_entry),
        cmocka_unit_test(scripts_of_a_skill_without_an_entry),
        cmocka_unit_test(the_latest_version_counts),
        cmocka_unit_test(hostile_descriptions),
        cmocka_unit_test(every_way_to_call),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(a_look_that_took_too_long_is_repeated),
        cmocka_unit_test(a_script_that_hangs),
        cmocka_unit_test(many_that_hang),
        cmocka_unit_test(large_calls_wait_on_disk),
        cmocka_unit_test(many_lists_take_turns),
        cmocka_unit_test(one_without_time_harms_nobody),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
