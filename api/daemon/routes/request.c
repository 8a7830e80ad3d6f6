/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/request.h"

#include "api/daemon/routes/request_files.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_walk.h"
#include "api/skill/code.h"
#include "api/skill/duration.h"
#include "api/skill/file_names.h"
#include "base/host_pattern.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER_BYTES_MAX (1024u * 1024u) /* of what is none of content */
/* In one of these. A few too many are told of by name. */
#define VALUES_MAX (LIMIT_ARGS_COUNT + 64u)

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

static int take_skill(const cJSON *json, struct request *q, struct err *err)
{
    return take_name(json, "skill", LIMIT_NAME_BYTES, &q->skill, err);
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

/* How an interpreter says what it does: what such a variable cannot change is what runs. */
static bool is_habit(const char *name)
{
    static const char *const habits[] = {
        "NODE_DEBUG",
        "NODE_DISABLE_COLORS",
        "NODE_ENV",
        "NODE_NO_WARNINGS",
        "PYTHONASYNCIODEBUG",
        "PYTHONDEVMODE",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONFAULTHANDLER",
        "PYTHONHASHSEED",
        "PYTHONINTMAXSTRDIGITS",
        "PYTHONIOENCODING",
        "PYTHONNODEBUGRANGES",
        "PYTHONOPTIMIZE",
        "PYTHONTRACEMALLOC",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
        "PYTHONWARNINGS",
    };

    for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
        if (strcmp(name, habits[i]) == 0)
            return true;
    }
    return false;
}

/* A name that the guest sets itself, or that would change what runs. */
static bool is_reserved(const char *name)
{
    static const char *const prefixes[] = {"LD_", "PYTHON", "NODE_", "SANDBOX_", "SKILL_"};

    if (strcmp(name, "PATH") == 0 || strcmp(name, "HOME") == 0)
        return true;
    if (is_habit(name))
        return false;
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

        if (q->env.len + q->warnings.len == LIMIT_ENV_COUNT)
            return err_set(err, EFBIG, "\"env\" has more than %u entries", LIMIT_ENV_COUNT);
        if (!is_env_name(name))
            return err_set(err, EINVAL, "\"%.64s\" is no name for an environment variable",
                           name);
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
        if ((is_reserved(name)
                 ? skill_strings_add(&q->warnings,
                                     "the environment variable %s is reserved: it was left out",
                                     name)
                 : skill_strings_add(&q->env, "%s=%s", name, item->valuestring)) < 0)
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

static int take_pids(const cJSON *json, struct request *q, struct err *err)
{
    if (!cJSON_IsNumber(json) || json->valuedouble < 1 || json->valuedouble > 1e6 ||
        json->valuedouble != floor(json->valuedouble))
        return err_set(err, EINVAL, "\"limits.pids\" must be a whole number");
    q->pids = (uint32_t)json->valuedouble;
    return 0;
}

static int take_limit(const cJSON *json, struct request *q, struct err *err)
{
    bool is_memory = strcmp(json->string, "memory") == 0;

    if (!is_memory && strcmp(json->string, "pids") != 0)
        return err_set(err, EINVAL, "unknown key \"limits.%.64s\"", json->string);
    if (cJSON_IsNull(json))
        return 0;
    return is_memory ? take_memory(json, q, err) : take_pids(json, q, err);
}

static int take_limits(const cJSON *json, struct request *q, struct err *err)
{
    const cJSON *item;

    if (!cJSON_IsObject(json))
        return err_set(err, EINVAL, "\"limits\" must be an object");
    cJSON_ArrayForEach(item, json) {
        int r = take_limit(item, q, err);

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

static int take_retries(const cJSON *json, struct request *q, struct err *err)
{
    const double n = cJSON_IsNumber(json) ? json->valuedouble : -1;

    if (!(n >= 0 && n <= LIMIT_RETRIES) || n != (unsigned)n)
        return err_set(err, EINVAL, "\"retries\" must be a whole number from 0 to %u",
                       LIMIT_RETRIES);
    q->retries = (unsigned)n;
    return 0;
}

/* Clients with optional fields send an empty one. */
static int take_entry_point(const cJSON *json, struct request *q, struct err *err)
{
    if (q->entry_point)
        return err_set(err, EINVAL, "\"entry_point\" and \"entrypoint\" are the same");
    if (cJSON_IsString(json) && !*json->valuestring)
        return 0;
    return take_string(json, "entry_point", LIMIT_ENTRY_BYTES, &q->entry_point, err);
}

static int take_key(const cJSON *json, struct request *q, struct err *err)
{
    int r = take_string(json, "idempotency_key", LIMIT_KEY_BYTES, &q->idempotency_key, err);

    if (r == 0 && !q->idempotency_key[0])
        return err_set(err, EINVAL, "\"idempotency_key\" is empty");
    return r;
}

static int take_session(const cJSON *json, struct request *q, struct err *err)
{
    if (!cJSON_IsString(json) || !ids_session_valid(json->valuestring))
        return err_set(err, EINVAL,
                       "\"session_id\" must be up to %u letters, digits, \".\", \"_\", \":\" "
                       "and \"-\", the first of them a letter or a digit",
                       LIMIT_SESSION_ID_BYTES);
    q->session = strdup(json->valuestring);
    return q->session ? 0 : err_no_memory(err);
}

/* A list of hosts; an empty one, or false, is no network. */
static int take_network(const cJSON *json, struct request *q, struct err *err)
{
    _cleanup_buf_ struct buf list = buf_init(HOST_LIST_MAX * HOST_PATTERN_SIZE);
    const cJSON *item;

    if (!cJSON_IsArray(json) && !cJSON_IsFalse(json))
        return err_set(err, EINVAL,
                       "\"network\" must be a list of hosts such as \"api.example.com\", or "
                       "false");
    cJSON_ArrayForEach(item, json) {
        const char *text = cJSON_GetStringValue(item);
        int r;

        if (!text)
            return err_set(err, EINVAL, "\"network\" must be a list of strings");
        r = host_list_add(&list, text, strlen(text), false, err);
        if (r == -E2BIG)
            return err_set(err, EINVAL, "\"network\" is longer than %u hosts", HOST_LIST_MAX);
        if (r < 0) {
            err_prefix(err, "\"network\"");
            return r;
        }
    }
    q->network = strndup(list.len > 0 ? (const char *)list.data : "", list.len);
    return q->network ? 0 : err_no_memory(err);
}

static int take_code(const cJSON *json, struct request *q, struct err *err)
{
    if (!cJSON_IsString(json) || !json->valuestring[0])
        return err_set(err, EINVAL, "\"code\" must be a string that is not empty");
    if (strlen(json->valuestring) > CODE_BYTES_MAX)
        return err_set(err, EFBIG, "\"code\" is larger than %u KiB; give data as \"files\"",
                       CODE_BYTES_MAX / 1024);
    q->code = strdup(json->valuestring);
    return q->code ? 0 : err_no_memory(err);
}

/* "input", or text in its place as "stdin". */
static int take_input(const char *body, const struct json_member *m, struct request *q,
                      struct err *err)
{
    q->input_is_text = json_slice_is(m->key, "stdin");
    if (q->has_input)
        return err_set(
            err, EINVAL,
            "\"stdin\" and \"input\" exclude each other (what else is given to a tool "
            "is its input)");
    if (m->value.len > LIMIT_INPUT_BYTES)
        return err_set(err, EFBIG, "\"%.*s\" is larger than %llu MiB", (int)m->key.len,
                       m->key.data, LIMIT_INPUT_BYTES / LIMIT_MIB);
    if (q->input_is_text && !json_is_string(m->value))
        return err_set(err, EINVAL, "\"stdin\" must be a string");
    if (q->input_is_text && json_text_has_nul(m->value.data, m->value.len))
        return err_set(err, EINVAL, "\"stdin\" holds a NUL character");
    q->has_input = true;
    q->input_at = (uint64_t)(m->value.data - body);
    q->input_bytes = m->value.len;
    return 0;
}

struct key {
    const char *name;
    /* What may be large is not read but found. */
    int (*find)(const char *body, const struct json_member *m, struct request *q,
                struct err *err);
    int (*take)(const cJSON *json, struct request *q, struct err *err);
    /* Else it goes there: a string of so many bytes at most, or where that is 0 a boolean. */
    size_t at, max;
    bool may_be_empty; /* which is as if it were absent: clients with optional fields send it */
};

static const struct key keys[] = {
    {"skill", .take = take_skill},
    {"version", .take = take_version, .may_be_empty = true},
    {"code", .take = take_code},
    {"lang", .at = offsetof(struct request, lang), .max = LIMIT_NAME_BYTES},
    {"script", .at = offsetof(struct request, script), .max = LIMIT_ENTRY_BYTES},
    {"module", .at = offsetof(struct request, module), .max = LIMIT_ENTRY_BYTES},
    {"entry_point", .take = take_entry_point},
    {"entrypoint", .take = take_entry_point},
    {"image", .at = offsetof(struct request, image), .max = LIMIT_NAME_BYTES,
     .may_be_empty = true},
    {"env", .take = take_env},
    {"args", .take = take_args},
    {"input", .find = take_input},
    {"stdin", .find = take_input},
    {"files", .find = request_files_parse},
    {"input_files", .find = request_files_parse},
    {"timeout", .take = take_timeout},
    {"limits", .take = take_limits},
    {"network", .take = take_network},
    {"async", .at = offsetof(struct request, is_async)},
    {"retries", .take = take_retries},
    {"fresh", .at = offsetof(struct request, is_fresh)},
    {"idempotency_key", .take = take_key},
    {"session_id", .take = take_session, .may_be_empty = true},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct key *find_key(struct json_slice name)
{
    for (size_t i = 0; i < N_KEYS; i++)
        if (json_slice_is(name, keys[i].name))
            return &keys[i];
    return NULL;
}

static int take_value(const struct key *key, const cJSON *json, struct request *q,
                      struct err *err)
{
    void *at = (char *)q + key->at;

    if (key->may_be_empty && cJSON_IsString(json) && !*json->valuestring)
        return 0;
    if (key->take)
        return key->take(json, q, err);
    return key->max > 0 ? take_string(json, key->name, key->max, at, err)
                        : take_bool(json, key->name, at, err);
}

static int take_member(const char *body, const struct key *key, const struct json_member *m,
                       struct request *q, struct err *err)
{
    cJSON *json;
    int r;

    if (key->find)
        return key->find(body, m, q, err);
    if (m->value.len > MEMBER_BYTES_MAX || !json_fits(m->value, VALUES_MAX))
        return err_set(err, EFBIG, "\"%s\" is too large", key->name);
    if (json_text_has_nul(m->value.data, m->value.len))
        return err_set(err, EINVAL, "\"%s\" holds a NUL character", key->name);
    json = cJSON_ParseWithLength(m->value.data, m->value.len);
    if (!json)
        return err_set(err, EINVAL, "\"%s\" cannot be read", key->name);
    r = take_value(key, json, q, err);
    cJSON_Delete(json);
    return r;
}

static int take_members(const char *body, const struct json_member *members, size_t n,
                        struct request *q, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct json_member *m = &members[i];
        const struct key *key = find_key(m->key);
        int r;

        if (!key)
            return err_set(err, EINVAL, "unknown key \"%.*s\"",
                           (int)(m->key.len < 64 ? m->key.len : 64), m->key.data);
        /* null is the same as absent, as clients with optional fields send it. */
        if (json_slice_is(m->value, "null"))
            continue;
        r = take_member(body, key, m, q, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* One of a skill's name, an archive and code, and what goes with it. */
static int check_what(const struct request *q, bool inline_skill, struct err *err)
{
    if (inline_skill && (q->skill || q->version))
        return err_set(err, EINVAL, "\"skill\" and an archive exclude each other");
    if (q->code && (q->skill || q->version || inline_skill))
        return err_set(err, EINVAL, "\"code\" and %s exclude each other",
                       inline_skill ? "an archive" : "\"skill\"");
    if (!inline_skill && !q->skill && !q->code)
        return err_set(err, EINVAL,
                       "\"skill\" is missing: name one, or give \"code\" or an archive");
    if (q->lang && !q->code)
        return err_set(err, EINVAL, "\"lang\" is of \"code\"; a skill says its own");
    if (q->script && q->module)
        return err_set(err, EINVAL, "\"script\" and \"module\" exclude each other");
    if (q->entry_point && (q->script || q->module))
        return err_set(err, EINVAL, "\"entry_point\" and \"%s\" exclude each other",
                       q->script ? "script" : "module");
    if (q->code && (q->script || q->module || q->entry_point))
        return err_set(err, EINVAL, "\"%s\" is of a skill and does not go with \"code\"",
                       q->script   ? "script"
                       : q->module ? "module"
                                   : "entry_point");
    return 0;
}

/* What another node is to run it by. */
static int check_retries(const struct request *q, bool inline_skill, struct err *err)
{
    if (q->retries == 0)
        return 0;
    if (!q->is_async)
        return err_set(err, EINVAL,
                       "\"retries\" needs \"async\": who waits for the answer asks again");
    if (inline_skill || q->session)
        return err_set(err, EINVAL,
                       "\"retries\" and %s exclude each other: no other node has that",
                       inline_skill ? "an archive" : "\"session_id\"");
    return 0;
}

static int parse(const char *body, size_t len, bool inline_skill, struct request *q,
                 struct err *err)
{
    struct json_member members[N_KEYS];
    size_t n = 0;
    int r = json_text_members(body, len, members, N_KEYS, &n, err);

    if (r < 0)
        return r;
    r = take_members(body, members, n, q, err);
    if (r < 0)
        return r;
    r = check_what(q, inline_skill, err);
    if (r < 0)
        return r;
    r = check_retries(q, inline_skill, err);
    return r < 0 || !q->code
               ? r
               : code_language(q->lang, q->code, strlen(q->code), &q->code_lang, err);
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
    free(q->code);
    free(q->lang);
    free(q->script);
    free(q->module);
    free(q->entry_point);
    free(q->image);
    free(q->idempotency_key);
    free(q->session);
    free(q->network);
    skill_strings_finish(&q->env);
    skill_strings_finish(&q->warnings);
    skill_strings_finish(&q->args);
    for (size_t i = 0; i < q->n_files; i++) {
        free(q->files[i].id);
        free(q->files[i].path);
        free(q->files[i].left);
    }
    free(q->files);
    *q = (struct request){0};
}
