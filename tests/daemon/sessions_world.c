/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/sessions_world.h"

#include <stdio.h>
#include <string.h>

#define JSON "Content-Type: application/json\r\n"

struct answer request(const struct harness *h, const char *more, const char *method,
                      const char *path, const char *json)
{
    char headers[128];

    snprintf(headers, sizeof(headers), "%s%s", more, json ? JSON : "");
    return harness_request(h, method, path, headers, json, json ? strlen(json) : 0);
}

/* An execution of a skill that a tenant has, in a session. */
struct answer session_run_as(const struct harness *h, const char *more, const char *session,
                             const char *how, const char *data)
{
    char json[512];

    snprintf(json, sizeof(json),
             "{\"code\":\"print(1)\",\"session_id\":\"%s\",\"env\":{\"FAKE\":\"%s\",\"FAKE_"
             "DATA\":\"%s\"}}",
             session, how, data);
    return request(h, more, "POST", "/v1/executions", json);
}

struct answer run(const struct harness *h, const char *session, const char *how,
                  const char *data)
{
    return session_run_as(h, "", session, how, data);
}

/* Members of one object of the answer, and of the same or another. */
void expect_both(struct answer a, const char *one, const char *other)
{
    if (a.status != 200 || !answer_has(&a, one) || !answer_has(&a, other))
        fail_msg("got %d %s, expected %s and %s", a.status, a.body, one, other);
    answer_finish(&a);
}

void expect_status(struct answer a, int status)
{
    if (a.status != status)
        fail_msg("got %d %s, expected %d", a.status, a.body, status);
    answer_finish(&a);
}

void forget(const struct harness *h, const char *session)
{
    char path[200];

    snprintf(path, sizeof(path), "/v1/sessions/%s", session);
    expect_status(request(h, "", "DELETE", path, NULL), 204);
}

struct answer remove_file(const struct harness *h, const char *more, const char *session,
                          const char *path)
{
    char whole[400];

    snprintf(whole, sizeof(whole), "/v1/sessions/%s/files/%s", session, path);
    return request(h, more, "DELETE", whole, NULL);
}
