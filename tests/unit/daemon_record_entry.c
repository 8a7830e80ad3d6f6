/* SPDX-License-Identifier: Apache-2.0 */
/* The record of an execution, as it is written and as it is read of a stranger. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/record_entry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789abcdef0123456789abcdef"
#define ID     ID_EXECUTION DIGITS
#define DIGEST DIGITS DIGITS

static struct record accepted(void)
{
    struct record r = {.id = ID,
                       .tenant = "ten_" DIGITS,
                       .instance = DIGITS,
                       .skill_digest = DIGEST,
                       .request_digest = DIGEST,
                       .accepted_ns = INT64_MAX,
                       .seen = INT64_MAX,
                       .is_cancelled = true};

    memset(r.node, 'n', sizeof(r.node) - 1);
    memset(r.skill_name, '"', sizeof(r.skill_name) - 1);
    memset(r.skill_version, '9', sizeof(r.skill_version) - 1);
    memset(r.idempotency_key, 1, sizeof(r.idempotency_key) - 1);
    return r;
}

static struct record ended(const char *result)
{
    struct record r = accepted();

    (void)strcpy(r.status, "cancelled");
    r.finished_ns = INT64_MAX;
    r.cpu_ms = RECORD_CPU_MS_MAX;
    r.artifact_bytes = RECORD_ARTIFACT_BYTES_MAX;
    (void)strcpy(r.artifact_digest, DIGEST);
    r.result = result;
    r.result_bytes = strlen(result);
    return r;
}

static void expect_back(const struct record *record)
{
    struct record back;
    enum node_refusal why;
    struct buf text;

    assert_int_equal(record_entry_write(record, &text), 0);
    assert_int_equal(record_entry_parse(record->id, buf_cstr(&text), text.len, &back, &why), 0);
    if (record->result)
        assert_memory_equal(record->result, back.result, record->result_bytes);
    back.result = record->result;
    assert_int_equal(record->request_bytes, back.request_bytes);
    if (record->request)
        assert_memory_equal(record->request, back.request, record->request_bytes);
    back.request = record->request;
    assert_memory_equal(record, &back, sizeof(back));
    buf_finish(&text);
}

/* The largest that there can be fits, and comes back as it was. */
static void what_is_written_is_read(void **state)
{
    static char request[RECORD_REQUEST_MAX];
    struct record r = accepted();
    char *result = malloc(RECORD_RESULT_MAX + 1);

    (void)state;
    expect_back(&r);
    memset(result, 'x', RECORD_RESULT_MAX);
    memcpy(result, "{\"a\":\"", 6);
    memcpy(result + RECORD_RESULT_MAX - 2, "\"}", 2);
    result[RECORD_RESULT_MAX] = '\0';
    r = ended(result);
    expect_back(&r);
    free(result);
    r = ended("");
    r.result = NULL;
    r.result_bytes = RECORD_RESULT_BYTES_MAX;
    (void)strcpy(r.result_digest, DIGEST);
    expect_back(&r);
    r = accepted();
    r.waits = true;
    (void)strcpy(r.request_object, DIGEST);
    (void)strcpy(r.request_image, "data");
    expect_back(&r);
    r.waits = false;
    r.retries = LIMIT_RETRIES;
    expect_back(&r);
    r.waits = true;
    r.was_begun = true;
    expect_back(&r);
    r.was_begun = false;
    memset(r.request_object, 0, sizeof(r.request_object));
    r.request = request;
    r.request_bytes = sizeof(request);
    memset(request, 'x', sizeof(request));
    request[0] = request[sizeof(request) - 1] = '"';
    expect_back(&r);
}

#define BASE                                                                                   \
    "{\"schema\":1,\"tenant\":\"default\",\"node\":\"n\",\"instance\":\"" DIGITS "\","         \
    "\"skill\":\"s\",\"version\":\"\",\"digest\":\"\",\"key\":\"\",\"request\":\"\","          \
    "\"accepted_ns\":1,\"seen\":1,\"cancel\":false"
#define ENDED ",\"finished_ns\":2,\"cpu_ms\":3,\"artifact_digest\":\"\",\"artifact_bytes\":0"

static int parse(const char *key, const char *text, enum node_refusal *ret_why)
{
    struct record r;

    return record_entry_parse(key, text, strlen(text), &r, ret_why);
}

/* Each differs in one thing from what is taken. */
static void what_is_none_is_refused(void **state)
{
    static const char *const malformed[] = {
        BASE ",\"status\":\"running\"" ENDED ",\"result_digest\":\"\",\"result\":{}}",
        BASE ",\"status\":\"failed\"" ENDED ",\"result_digest\":\"\",\"result\":[]}",
        BASE ",\"status\":\"failed\"" ENDED ",\"result_digest\":\"\",\"result_bytes\":1}",
        BASE ",\"status\":\"failed\"" ENDED ",\"result_digest\":\"" DIGEST "\",\"result\":{}}",
        BASE ",\"status\":\"failed\"" ENDED ",\"result_digest\":\"x\",\"result_bytes\":1}",
        BASE ",\"status\":\"failed\",\"finished_ns\":0,\"cpu_ms\":3,\"artifact_digest\":\"\","
             "\"artifact_bytes\":0,\"result_digest\":\"\",\"result\":{}}",
        BASE ",\"status\":\"failed\"" ENDED ",\"result_digest\":\"\",\"result\":{\n}}",
        BASE ",\"status\":\"failed\"}",
        BASE ",\"waits\":true}",
        BASE ",\"waits\":{\"object\":\"\"}}",
        BASE ",\"waits\":{\"object\":\"" DIGEST "\",\"retries\":6}}",
        BASE ",\"waits\":{\"object\":\"" DIGEST "\",\"retries\":\"1\"}}",
        BASE ",\"again\":{\"object\":\"" DIGEST "\"}}",
        BASE ",\"again\":{\"object\":\"" DIGEST "\",\"retries\":0}}",
        BASE ",\"again\":{\"object\":\"" DIGEST "\",\"retries\":1,\"begun\":true}}",
        BASE ",\"waits\":{\"object\":\"" DIGEST "\",\"begun\":true}}",
        BASE ",\"waits\":{\"object\":\"" DIGEST "\",\"retries\":1,\"begun\":1}}",
        BASE ",\"again\":{\"object\":\"\",\"retries\":1}}",
        BASE ",\"again\":1}",
        BASE ",\"waits\":{\"object\":\"0\"}}",
        BASE ",\"waits\":{\"object\":\"" DIGEST "\",\"image\":1}}",
        BASE ",\"waits\":{\"object\":\"" DIGEST "\",\"image\":\"\\u0007\"}}",
        BASE ",\"waits\":{\"object\":\"\",\"request\":{}}}",
        BASE ",\"waits\":{\"object\":\"" DIGEST "\",\"request\":\"{}\"}}",
        "{\"schema\":1}",
        "[]",
        "",
    };
    enum node_refusal why;

    (void)state;
    assert_int_equal(parse(ID, BASE "}", &why), 0);
    assert_int_equal(
        parse(ID, BASE ",\"status\":\"failed\"" ENDED ",\"result_digest\":\"\",\"result\":{}}",
              &why),
        0);
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        why = NODE_TOO_MANY;
        if (parse(ID, malformed[i], &why) == 0)
            fail_msg("%s is taken", malformed[i]);
        assert_int_equal(why, NODE_MALFORMED);
    }
    assert_int_equal(parse("exec_1", BASE "}", &why), -EINVAL);
    assert_int_equal(why, NODE_WRONG_NAME);
    assert_int_equal(parse(ID, "{\"schema\":2}", &why), -EINVAL);
    assert_int_equal(why, NODE_NEWER);
}

/* What a row or a result could not have held. */
static void words_are_checked(void **state)
{
    static const char *const parts[][2] = {
        {"\"tenant\":\"default\"", "\"tenant\":\"ten_1\""},
        {"\"node\":\"n\"", "\"node\":\"a.b\""},
        {"\"node\":\"n\"", "\"node\":\"\""},
        {"\"instance\":\"" DIGITS "\"", "\"instance\":\"0\""},
        {"\"skill\":\"s\"", "\"skill\":\"a\\nb\""},
        {"\"digest\":\"\"", "\"digest\":\"0\""},
        {"\"key\":\"\"", "\"key\":\"k\""},
        {"\"request\":\"\"", "\"request\":\"" DIGEST "\""},
        {"\"accepted_ns\":1", "\"accepted_ns\":-1"},
        {"\"seen\":1", "\"seen\":1.5"},
        {"\"cancel\":false", "\"cancel\":0"},
    };
    enum node_refusal why;

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        static const char base[] = BASE "}";
        const char *at = strstr(base, parts[i][0]);
        char text[1024];

        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - base), base, parts[i][1],
                 at + strlen(parts[i][0]));
        if (parse(ID, text, &why) == 0)
            fail_msg("%s is taken", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(words_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
