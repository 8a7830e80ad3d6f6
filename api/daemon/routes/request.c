/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/request.h"

#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"
#include "api/skill/duration.h"
#include "api/skill/names.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX      16u
#define MEMBER_BYTES_MAX (1024u * 1024u) /* of every value but the input */

bool request_name_valid(const char *name, size_t max_bytes)
{
    size_t len = strlen(name);

    if (len == 0 || len > max_bytes || name[0] == '.' || name[0] == ' ' || name[len - 1] == ' ')
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];

        /* '@' parts a name from its version on the command line, '"' ends it in a log line. */
        if (c < 0x20 || c == 0x7f || c == '/' || c == '\\' || c == '@' || c == '"')
            return false;
    }
    return true;
}

int request_file_name(const char *raw, char ret_name[REQUEST_FILE_NAME_SIZE], struct err *err)
{
    char clean[NAMES_PATH_MAX + 1];

    if (names_clean(raw, clean, NULL) < 0 || !clean[0] || strchr(raw, '/') ||
        strlen(clean) >= REQUEST_FILE_NAME_SIZE)
        return err_set(err, EINVAL,
                       "a file's name is UTF-8 of up to %u bytes, no path, without control "
                       "characters",
                       REQUEST_FILE_NAME_SIZE - 1);
    memcpy(ret_name, clean, strlen(clean) + 1);
    return 0;
}

static int take_string(const cJSON *json, const char *key, size_t max, char **ret,
                       struct err *err)
{
    if (!cJSON_IsString(json))
        return err_set(err, EINVAL, "\"%s\" must be a string", key);
    if (strlen(json->valuestring) > max)
        return err_set(err, EINVAL, "\"%s\" is longer than %zu bytes", key, max);
    *ret = strdup(json->valuestring);
    return *ret ? 0 : err_no_memory(err);
}

static int take_name(const cJSON *json, const char *key, size_t max, char **ret,
                     struct err *err)
{
    int r = take_string(json, key, max, ret, err);

    if (r == 0 && !request_name_valid(*ret, max))
        return err_set(err, EINVAL, "\"%s\" is no valid %s", key,
                       strcmp(key, "skill") == 0 ? "skill name" : "version");
    return r;
}

static int take_version(const cJSON *json, struct request *q, struct err *err)
{
    int r = take_name(json, "version", LIMIT_VERSION_BYTES, &q->version, err);

    if (r == 0 && strcmp(q->version, "latest") == 0) {
        free(q->version);
        q->version = NULL;
    }
    return r;
}

/* A name that the guest sets itself, or that would change what runs. */
static bool is_reserved(const char *name)
{
    static const char *const prefixes[] = {"LD_", "PYTHON", "NODE_", "SANDBOX_", "SKILL_"};

    if (strcmp(name, "PATH") == 0 || strcmp(name, "HOME") == 0)
        return true;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

static bool is_env_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                  "0123456789";

    return *name && !isdigit((unsigned char)*name) && !name[strspn(name, allowed)];
}

static int take_env(const cJSON *json, struct request *q, struct err *err)
{
    const cJSON *item;
    size_t bytes = 0;

    if (!cJSON_IsObject(json))
        return err_set(err, EINVAL, "\"env\" must be an object of strings");
    cJSON_ArrayForEach(item, json) {
        const char *name = item->string;

        if (q->env.len == LIMIT_ENV_COUNT)
            return err_set(err, EFBIG, "\"env\" has more than %u entries", LIMIT_ENV_COUNT);
        if (!is_env_name(name))
            return err_set(err, EINVAL, "\"%.64s\" is no name for an environment variable",
                           name);
        if (is_reserved(name))
            return err_set(err, EINVAL, "the environment variable %.64s may not be set", name);
        if (!cJSON_IsString(item))
            return err_set(err, EINVAL, "the environment variable %.64s must be a string",
                           name);
        for (size_t i = 0; i < q->env.len; i++) {
            if (strncmp(q->env.items[i], name, strlen(name)) == 0 &&
                q->env.items[i][strlen(name)] == '=')
                return err_set(err, EINVAL, "the environment variable %.64s comes twice", name);
        }
        bytes += strlen(name) + strlen(item->valuestring) + 2;
        if (bytes > LIMIT_ENV_BYTES)
            return err_set(err, EFBIG, "\"env\" is larger than %u bytes", LIMIT_ENV_BYTES);
        if (skill_strings_add(&q->env, "%s=%s", name, item->valuestring) < 0)
            return err_no_memory(err);
    }
    return 0;
}

static int take_args(const cJSON *json, struct request *q, struct err *err)
{
    const cJSON *item;
    size_t bytes = 0;

    if (!cJSON_IsArray(json))
        return err_set(err, EINVAL, "\"args\" must be an array of strings");
    cJSON_ArrayForEach(item, json) {
        if (!cJSON_IsString(item))
            return err_set(err, EINVAL, "\"args\" must be an array of strings");
        bytes += strlen(item->valuestring) + 1;
        if (q->args.len == LIMIT_ARGS_COUNT || bytes > LIMIT_ARGS_BYTES)
            return err_set(err, EFBIG, "\"args\" is larger than %u bytes or %u entries",
                           LIMIT_ARGS_BYTES, LIMIT_ARGS_COUNT);
        if (skill_strings_add(&q->args, "%s", item->valuestring) < 0)
            return err_no_memory(err);
    }
    return 0;
}

/* "file_…", or an object of it and the path the skill finds it at. */
static int take_file(const cJSON *json, struct request_file *ret, struct err *err)
{
    const cJSON *item, *id = json, *path = NULL;
    char clean[NAMES_PATH_MAX + 1];

    if (cJSON_IsObject(json)) {
        id = NULL;
        cJSON_ArrayForEach(item, json) {
            if (strcmp(item->string, "id") == 0)
                id = item;
            else if (strcmp(item->string, "path") == 0)
                path = cJSON_IsNull(item) ? NULL : item;
            else
                return err_set(err, EINVAL, "unknown key \"files.%.64s\"", item->string);
        }
    }
    if (!id || !cJSON_IsString(id) || (path && !cJSON_IsString(path)))
        return err_set(err, EINVAL, "\"files\" must be an array of ids, or {id, path}");
    if (!ids_valid(ID_FILE, id->valuestring))
        return err_set(err, EINVAL, "there is no file %.64s", id->valuestring);
    if (path) {
        int r = names_clean(path->valuestring, clean, err);

        if (r < 0)
            return r;
        if (!clean[0])
            return err_set(err, EINVAL, "the path of a file is empty");
        ret->path = strdup(clean);
    }
    ret->id = strdup(id->valuestring);
    return ret->id && (ret->path || !path) ? 0 : err_no_memory(err);
}

static int take_files(const cJSON *json, struct request *q, struct err *err)
{
    const cJSON *item;
    int n = cJSON_GetArraySize(json), r = 0;

    if (q->files)
        return err_set(err, EINVAL, "\"files\" and \"input_files\" exclude each other");
    if (!cJSON_IsArray(json))
        return err_set(err, EINVAL, "\"files\" must be an array of ids, or {id, path}");
    if (n > (int)LIMIT_INPUT_FILES)
        return err_set(err, EFBIG, "\"files\" has more than %u entries", LIMIT_INPUT_FILES);
    q->files = calloc((size_t)n + 1, sizeof(*q->files));
    if (!q->files)
        return err_no_memory(err);
    cJSON_ArrayForEach(item, json) {
        r = take_file(item, &q->files[q->n_files++], err);
        if (r < 0)
            break;
    }
    return r;
}

static int take_timeout(const cJSON *json, struct request *q, struct err *err)
{
    uint64_t ms = 0;

    if (cJSON_IsString(json)) {
        if (duration_parse(json->valuestring, &ms) < 0)
            return err_set(err, EINVAL, "\"timeout\": \"%.64s\" is no duration such as \"30s\"",
                           json->valuestring);
    } else if (cJSON_IsNumber(json) && isfinite(json->valuedouble) && json->valuedouble >= 0) {
        double seconds = json->valuedouble;

        ms = seconds > LIMIT_TIMEOUT_MS / 1000 ? LIMIT_TIMEOUT_MS
                                               : (uint64_t)ceil(seconds * 1000);
    } else {
        return err_set(err, EINVAL,
                       "\"timeout\" must be seconds or a duration such as \"30s\"");
    }
    if (ms == 0)
        return err_set(err, EINVAL, "\"timeout\" must be more than zero");
    q->timeout_ms = ms;
    return 0;
}

static int take_memory(const cJSON *json, struct request *q, struct err *err)
{
    if (cJSON_IsString(json) && size_parse(json->valuestring, &q->memory_bytes) == 0 &&
        q->memory_bytes > 0)
        return 0;
    if (cJSON_IsNumber(json) && json->valuedouble >= 1 && json->valuedouble <= 1e15) {
        q->memory_bytes = (uint64_t)json->valuedouble;
        return 0;
    }
    return err_set(err, EINVAL, "\"limits.memory\" must be bytes or a size such as \"256Mi\"");
}

static int take_limits(const cJSON *json, struct request *q, struct err *err)
{
    const cJSON *item;
    int r = 0;

    if (!cJSON_IsObject(json))
        return err_set(err, EINVAL, "\"limits\" must be an object");
    cJSON_ArrayForEach(item, json) {
        if (strcmp(item->string, "memory") == 0) {
            r = take_memory(item, q, err);
        } else if (strcmp(item->string, "pids") == 0) {
            if (!cJSON_IsNumber(item) || item->valuedouble < 1 || item->valuedouble > 1e6 ||
                item->valuedouble != floor(item->valuedouble))
                r = err_set(err, EINVAL, "\"limits.pids\" must be a whole number");
            else
                q->pids = (uint32_t)item->valuedouble;
        } else {
            r = err_set(err, EINVAL, "unknown key \"limits.%.64s\"", item->string);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static int take_bool(const cJSON *json, const char *key, bool *ret, struct err *err)
{
    if (!cJSON_IsBool(json))
        return err_set(err, EINVAL, "\"%s\" must be true or false", key);
    *ret = cJSON_IsTrue(json);
    return 0;
}

static int take_key(const cJSON *json, struct request *q, struct err *err)
{
    int r = take_string(json, "idempotency_key", LIMIT_KEY_BYTES, &q->idempotency_key, err);

    if (r == 0 && !q->idempotency_key[0])
        return err_set(err, EINVAL, "\"idempotency_key\" is empty");
    return r;
}

static int take_member(const struct json_member *m, struct request *q, struct err *err)
{
    cJSON *json;
    int r;

    if (m->value.len > MEMBER_BYTES_MAX)
        return err_set(err, EFBIG, "\"%.*s\" is too large", (int)m->key.len, m->key.data);
    if (json_text_has_nul(m->value.data, m->value.len))
        return err_set(err, EINVAL, "\"%.*s\" holds a NUL character", (int)m->key.len,
                       m->key.data);
    json = cJSON_ParseWithLength(m->value.data, m->value.len);
    if (!json)
        return err_set(err, EINVAL, "\"%.*s\" cannot be read", (int)m->key.len, m->key.data);
    if (json_slice_is(m->key, "skill"))
        r = take_name(json, "skill", LIMIT_NAME_BYTES, &q->skill, err);
    else if (json_slice_is(m->key, "version"))
        r = take_version(json, q, err);
    else if (json_slice_is(m->key, "script"))
        r = take_string(json, "script", LIMIT_ENTRY_BYTES, &q->script, err);
    else if (json_slice_is(m->key, "module"))
        r = take_string(json, "module", LIMIT_ENTRY_BYTES, &q->module, err);
    else if (json_slice_is(m->key, "env"))
        r = take_env(json, q, err);
    else if (json_slice_is(m->key, "args"))
        r = take_args(json, q, err);
    else if (json_slice_is(m->key, "files") || json_slice_is(m->key, "input_files"))
        r = take_files(json, q, err);
    else if (json_slice_is(m->key, "timeout"))
        r = take_timeout(json, q, err);
    else if (json_slice_is(m->key, "async"))
        r = take_bool(json, "async", &q->is_async, err);
    else if (json_slice_is(m->key, "fresh"))
        r = take_bool(json, "fresh", &q->is_fresh, err);
    else if (json_slice_is(m->key, "idempotency_key"))
        r = take_key(json, q, err);
    else
        r = take_limits(json, q, err);
    cJSON_Delete(json);
    return r;
}

static bool is_known(struct json_slice key)
{
    static const char *const known[] = {
        "skill",  "version", "script",      "module", "env",   "args",           "timeout",
        "limits", "files",   "input_files", "async",  "fresh", "idempotency_key"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (json_slice_is(key, known[i]))
            return true;
    }
    return false;
}

static int take_members(const char *body, const struct json_member *members, size_t n,
                        struct request *q, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct json_member *m = &members[i];
        int r;

        if (json_slice_is(m->key, "input")) {
            if (m->value.len > LIMIT_INPUT_BYTES)
                return err_set(err, EFBIG, "\"input\" is larger than %llu MiB",
                               LIMIT_INPUT_BYTES / LIMIT_MIB);
            q->has_input = true;
            q->input_at = (uint64_t)(m->value.data - body);
            q->input_bytes = m->value.len;
            continue;
        }
        if (!is_known(m->key))
            return err_set(err, EINVAL, "unknown key \"%.*s\"",
                           (int)(m->key.len < 64 ? m->key.len : 64), m->key.data);
        /* null is the same as absent, as clients with optional fields send it. */
        if (json_slice_is(m->value, "null"))
            continue;
        r = take_member(m, q, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int parse(const char *body, size_t len, bool inline_skill, struct request *q,
                 struct err *err)
{
    struct json_member members[MEMBERS_MAX];
    size_t n = 0;
    int r = json_text_members(body, len, members, MEMBERS_MAX, &n, err);

    if (r < 0)
        return r;
    r = take_members(body, members, n, q, err);
    if (r < 0)
        return r;
    if (inline_skill && (q->skill || q->version))
        return err_set(err, EINVAL, "\"skill\" and an archive exclude each other");
    if (!inline_skill && !q->skill)
        return err_set(err, EINVAL, "\"skill\" is missing");
    if (q->script && q->module)
        return err_set(err, EINVAL, "\"script\" and \"module\" exclude each other");
    return 0;
}

int request_parse(const char *body, size_t len, bool inline_skill, struct request *ret,
                  struct err *err)
{
    struct request q = {0};
    int r = parse(body, len, inline_skill, &q, err);

    if (r < 0)
        request_finish(&q);
    else
        *ret = q;
    return r;
}

void request_finish(struct request *q)
{
    free(q->skill);
    free(q->version);
    free(q->script);
    free(q->module);
    free(q->idempotency_key);
    skill_strings_finish(&q->env);
    skill_strings_finish(&q->args);
    for (size_t i = 0; i < q->n_files; i++) {
        free(q->files[i].id);
        free(q->files[i].path);
    }
    free(q->files);
    *q = (struct request){0};
}
