/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/run_result.h"

#include "api/cli/verbs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

static int parse_status(const char *text, enum run_result_status *ret)
{
    static const char *const names[] = {"success", "failed", "timeout", "cancelled"};

    for (size_t i = 0; text && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum run_result_status)i;
            return 0;
        }
    }
    return -EPROTO;
}

int run_result_parse(const char *json, size_t len, struct run_result *ret, struct err *err)
{
    cJSON *root = cJSON_ParseWithLength(json, len);
    const cJSON *code = verbs_member(root, "exit_code"), *sig = verbs_member(root, "signal");
    struct run_result out = {
        .json = root,
        .execution_id = verbs_text(root, "execution_id"),
        .error = verbs_text(root, "error"),
        .skill_name = verbs_text(verbs_member(root, "skill"), "name"),
        .exit_code = cJSON_IsNumber(code) ? code->valueint : 0,
        .n_files = (size_t)cJSON_GetArraySize(verbs_member(root, "files_list")),
        .warnings = verbs_member(root, "warnings"),
    };
    int result = 0;

    if (cJSON_IsNumber(sig) && sig->valueint > 0 && sig->valueint < NSIG)
        out.signal = sig->valueint;
    if (!cJSON_IsObject(root))
        result = err_set(err, EPROTO, "the daemon's result is no JSON object");
    else if (parse_status(verbs_text(root, "status"), &out.status))
        result = err_set(err, EPROTO, "the daemon's result has no status that is known");
    if (result < 0)
        cJSON_Delete(root);
    else
        *ret = out;
    return result;
}

void run_result_finish(struct run_result *result)
{
    cJSON_Delete(result->json);
    *result = (struct run_result){0};
}

int run_result_exit_status(const struct run_result *result)
{
    switch (result->status) {
    case RUN_RESULT_SUCCESS:
        return CLI_OK;
    case RUN_RESULT_TIMEOUT:
        return CLI_TIMEOUT;
    case RUN_RESULT_CANCELLED:
        return 128 + SIGINT;
    case RUN_RESULT_FAILED:
        break;
    }
    if (result->signal)
        return 128 + result->signal;
    if (result->exit_code > 0 && result->exit_code < 256)
        return result->exit_code;
    /* Nothing that the skill did: its machine failed, or its result could not be kept. */
    return CLI_FAILED;
}
