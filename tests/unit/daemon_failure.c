/* SPDX-License-Identifier: Apache-2.0 */
/* What an errno means to a caller. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/routes/failure.h"

#include <errno.h>
#include <string.h>

static void expect_reply(int code, const char *message, unsigned status, const char *text)
{
    struct http_reply reply = {0};
    struct err err = {0};

    if (message)
        (void)err_set(&err, code, "%s", message);
    failure_reply(&reply, -code, &err);
    assert_int_equal(reply.status, status);
    if (!strstr(buf_cstr(&reply.body), text))
        fail_msg("%s does not say %s", buf_cstr(&reply.body), text);
    assert_int_equal(reply.retry_after_s,
                     code == EBUSY || code == EADDRINUSE                      ? 1
                     : code == EAGAIN || code == EREMOTEIO || code == ENOBUFS ? 5
                                                                              : 0);
    buf_finish(&reply.body);
}

static void every_errno_has_its_status(void **state)
{
    (void)state;
    expect_reply(EINVAL, "m", 400, "\"bad_request\"");
    expect_reply(ENOENT, "m", 404, "\"not_found\"");
    expect_reply(EEXIST, "m", 409, "\"conflict\"");
    expect_reply(EFBIG, "m", 413, "\"too_large\"");
    expect_reply(E2BIG, "m", 413, "\"too_large\"");
    expect_reply(EDQUOT, "m", 413, "\"quota_exceeded\"");
    expect_reply(EADDRINUSE, "m", 409, "\"session_busy\"");
    expect_reply(EBUSY, "m", 429, "\"overloaded\"");
    expect_reply(EAGAIN, "m", 503, "\"cluster_unavailable\"");
    expect_reply(EREMOTEIO, "m", 503, "\"object_unavailable\"");
    expect_reply(ENOBUFS, "m", 503, "\"overloaded\"");
    expect_reply(EIO, "m", 500, "\"internal_error\"");
    expect_reply(ENOSPC, "m", 500, "\"internal_error\"");
}

static void says_what_it_knows(void **state)
{
    (void)state;
    expect_reply(EINVAL, "\"skill\" is missing", 400, "\\\"skill\\\" is missing");
    expect_reply(ENOMEM, NULL, 500, strerror(ENOMEM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_errno_has_its_status),
        cmocka_unit_test(says_what_it_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
