/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/run_result.h"

#include "api/cli/cli.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const cJSON *get(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* *ret stays NULL where there is no text. */
static int copy_text(const cJSON *item, char **ret)
{
    const char *text = cJSON_GetStringValue(item);

    if (!text)
        return 0;
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

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

static int fill(const cJSON *json, struct run_result *out, struct err *err)
{
    const cJSON *code = get(json, "exit_code"), *sig = get(json, "signal");
    const cJSON *files = get(json, "files_list");

    if (parse_status(cJSON_GetStringValue(get(json, "status")), &out->status))
        return err_set(err, EPROTO, "the daemon's result has no status that is known");
    if (copy_text(get(json, "execution_id"), &out->execution_id) ||
        copy_text(get(json, "error"), &out->error) ||
        copy_text(get(get(json, "skill"), "name"), &out->skill_name))
        return err_set(err, ENOMEM, "out of memory");
    if (cJSON_IsNumber(code)) {
        out->has_exit_code = true;
        out->exit_code = code->valueint;
    }
    if (cJSON_IsNumber(sig) && sig->valueint > 0 && sig->valueint < NSIG)
        out->signal = sig->valueint;
    if (cJSON_IsArray(files))
        out->n_files = (size_t)cJSON_GetArraySize(files);
    const cJSON *warning;
    cJSON_ArrayForEach(warning, get(json, "warnings"))
    {
        const char *text = cJSON_GetStringValue(warning);
        if (text && skill_strings_add(&out->warnings, "%s", text))
            return err_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

int run_result_parse(const char *json, size_t len, struct run_result *ret, struct err *err)
{
    struct run_result out = {0};
    cJSON *root = cJSON_ParseWithLength(json, len);

    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return err_set(err, EPROTO, "the daemon's result is no JSON object");
    }
    int result = fill(root, &out, err);
    cJSON_Delete(root);
    if (result < 0)
        run_result_finish(&out);
    else
        *ret = out;
    return result;
}

void run_result_finish(struct run_result *result)
{
    free(result->execution_id);
    free(result->error);
    free(result->skill_name);
    skill_strings_finish(&result->warnings);
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
    if (result->has_exit_code && result->exit_code > 0 && result->exit_code < 256)
        return result->exit_code;
    /* Nothing that the skill did: its machine failed, or its result could not be kept. */
    return CLI_FAILED;
}
