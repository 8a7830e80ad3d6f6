/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/tool_call.h"

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_walk.h"
#include "api/json/json_write.h"
#include "api/tools/arguments.h"
#include "api/tools/schema.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX        (TOOL_CALL_OPTIONS + 2u)
#define CODE_ARGUMENTS_MAX 16u

/* The text of the object that the arguments are. */
static int read_arguments(struct json_slice value, struct buf *ret, struct err *err)
{
    struct json_slice object;
    int r = 0;

    if (json_is_string(value))
        r = json_append_decoded(ret, value);
    else if (value.len > 0)
        r = buf_append(ret, value.data, value.len);
    /* Some models say nothing at all where there is nothing to say. */
    if (r == 0 && ret->len == 0)
        r = buf_append(ret, "{}", 2);
    if (r == -E2BIG)
        return err_set(err, EFBIG, "\"arguments\" is larger than %llu MiB",
                       LIMIT_INPUT_BYTES / LIMIT_MIB);
    if (r < 0)
        return err_set(err, -r, "out of memory");
    if (json_text_check((char *)ret->data, ret->len, &object, NULL) < 0 ||
        !json_is_object(object))
        return err_set(err, EINVAL, "\"arguments\" must be an object");
    return 0;
}

/* Only looked at: a call may wait for long, and what it says may be large. */
static int take_arguments(struct tool_call *call, struct json_slice value, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(LIMIT_INPUT_BYTES);

    call->arguments = value;
    return read_arguments(value, &text, err);
}

static int take_member(struct tool_call *call, const struct json_member *m, struct err *err)
{
    static const char *const passed[TOOL_CALL_OPTIONS] = {
        "async", "fresh",           "timeout", "limits",    "env",
        "files", "idempotency_key", "image",   "session_id"};

    if (json_slice_is(m->key, "name")) {
        /* A longer one is no tool's. */
        call->name = json_strdup(m->value, LIMIT_ENTRY_BYTES);
        return call->name ? 0 : err_set(err, EINVAL, "\"name\" must be the name of a tool");
    }
    if (json_slice_is(m->key, "arguments"))
        return json_slice_is(m->value, "null") ? 0 : take_arguments(call, m->value, err);
    for (size_t i = 0; i < TOOL_CALL_OPTIONS; i++) {
        if (json_slice_is(m->key, passed[i])) {
            call->options[call->n_options++] = *m;
            return 0;
        }
    }
    return err_set(err, EINVAL, "unknown key \"%.*s\"",
                   (int)(m->key.len < 64 ? m->key.len : 64), m->key.data);
}

int tool_call_parse(const char *body, size_t len, struct tool_call *ret, struct err *err)
{
    struct tool_call call = {0};
    struct json_member members[MEMBERS_MAX];
    size_t n = 0;
    int r = json_text_members(body, len, members, MEMBERS_MAX, &n, err);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = take_member(&call, &members[i], err);
    if (r == 0 && !call.name)
        r = err_set(err, EINVAL, "\"name\" is missing");
    if (r < 0)
        tool_call_finish(&call);
    else
        *ret = call;
    return r;
}

void tool_call_finish(struct tool_call *call)
{
    free(call->name);
    *call = (struct tool_call){0};
}

/* The command line that the arguments stand for, as "args". */
static int write_argv(struct json_writer *w, const struct parser *parser,
                      const struct buf *arguments, struct err *err)
{
    _cleanup_skill_strings_ struct skill_strings argv = {0};
    int r;

    if (arguments->len > LIMIT_ARGUMENTS)
        return err_set(err, EFBIG, "the arguments are larger than %llu MiB",
                       LIMIT_ARGUMENTS / LIMIT_MIB);
    r = arguments_to_argv(parser, (char *)arguments->data, arguments->len, &argv, err);
    json_write_strings(w, "args", argv.items, argv.len);
    return r;
}

static void write_member(struct json_writer *w, const struct json_member *m)
{
    char key[32];

    (void)snprintf(key, sizeof(key), "%.*s", (int)m->key.len, m->key.data);
    json_write_value(w, key, m->value);
}

/* Whether an argument is what every execution takes, and not the script's own. */
static bool is_plain(const struct tool *tool, struct json_slice key)
{
    if (json_slice_is(key, "files"))
        return tool_takes_files(tool);
    return !tool->schema && !tool_takes_argv(tool) &&
           (json_slice_is(key, "args") || json_slice_is(key, "stdin"));
}

/* Writes the plain ones of the members, and the others as one object to rest. */
static void divide(struct json_writer *w, const struct tool *tool,
                   const struct json_member *members, size_t n, struct buf *rest)
{
    (void)buf_append(rest, "{", 1);
    for (size_t i = 0; i < n; i++) {
        const struct json_member *m = &members[i];

        if (is_plain(tool, m->key)) {
            write_member(w, m);
            continue;
        }
        (void)buf_append(rest, ",", rest->len > 1);
        (void)buf_append(rest, m->key.data - 1, m->key.len + 2);
        (void)buf_append(rest, ":", 1);
        (void)buf_append(rest, m->value.data, m->value.len);
    }
    (void)buf_append(rest, "}", 1);
}

/* Writes what is not the tool's own of the arguments, and leaves the others in them. */
static int take_plain(struct json_writer *w, const struct tool *tool, struct buf *arguments,
                      struct err *err)
{
    static const char *const plain[] = {"args", "stdin", "files"};
    const struct json_slice object = {(char *)arguments->data, arguments->len};
    _cleanup_buf_ struct buf rest = buf_init(LIMIT_INPUT_BYTES);
    _cleanup_free_ struct json_member *members = NULL;
    struct json_slice value;
    bool found = false;
    size_t n = 0;
    int r;

    for (size_t i = 0; !found && i < sizeof(plain) / sizeof(plain[0]); i++)
        found = is_plain(tool, (struct json_slice){plain[i], strlen(plain[i])}) &&
                json_find(object, plain[i], &value);
    if (!found)
        return 0;
    members = calloc(SCHEMA_ARGUMENTS_MAX, sizeof(*members));
    if (!members)
        return err_no_memory(err);
    r = json_text_members(object.data, object.len, members, SCHEMA_ARGUMENTS_MAX, &n, err);
    if (r < 0)
        return r;
    divide(w, tool, members, n, &rest);
    if (rest.error)
        return err_no_memory(err);
    buf_finish(arguments);
    *arguments = rest;
    rest = buf_init(0);
    return 0;
}

static int write_input(struct json_writer *w, const struct tool *tool,
                       const struct buf *arguments, struct err *err)
{
    const struct json_slice input = {(char *)arguments->data, arguments->len};

    /* Without any it is {} too. */
    if (input.len > strlen("{}"))
        json_write_value(w, "input", input);
    return tool->schema ? schema_check(tool->schema, input.data, input.len, err) : 0;
}

static int write_arguments(struct json_writer *w, const struct tool_call *call,
                           const struct tool *tool, struct err *err)
{
    _cleanup_buf_ struct buf arguments = buf_init(LIMIT_INPUT_BYTES);
    int r = read_arguments(call->arguments, &arguments, err);

    if (r < 0)
        return r;
    r = take_plain(w, tool, &arguments, err);
    if (r < 0)
        return r;
    return tool_takes_argv(tool) ? write_argv(w, &tool->about.parser, &arguments, err)
                                 : write_input(w, tool, &arguments, err);
}

static int write_skill(struct json_writer *w, const struct tool_call *call,
                       const struct tool *tool, struct err *err)
{
    char version[sizeof(REGISTRY_BY_DIGEST) + SHA256_HEX_SIZE];

    json_write_string(w, "skill", tool->skill);
    /* The content whose arguments these are, whatever is pushed meanwhile. */
    (void)snprintf(version, sizeof(version), REGISTRY_BY_DIGEST "%s", tool->digest);
    json_write_string(w, "version", version);
    if (tool->script)
        json_write_string(w, "script", tool->script);
    return write_arguments(w, call, tool, err);
}

/* Whether the call has a member of this key beside its arguments. */
static bool is_option(const struct tool_call *call, struct json_slice key)
{
    for (size_t i = 0; i < call->n_options; i++) {
        const struct json_slice *own = &call->options[i].key;

        if (own->len == key.len && memcmp(own->data, key.data, key.len) == 0)
            return true;
    }
    return false;
}

/* The arguments become members of the request, which the schema makes sure they are. */
static int write_code(struct json_writer *w, const struct tool_call *call,
                      const struct tool *tool, struct err *err)
{
    _cleanup_buf_ struct buf arguments = buf_init(LIMIT_INPUT_BYTES);
    struct json_member members[CODE_ARGUMENTS_MAX];
    size_t n = 0;
    int r = read_arguments(call->arguments, &arguments, err);

    if (r < 0)
        return r;
    r = schema_check(tool->schema, (char *)arguments.data, arguments.len, err);
    if (r < 0)
        return r;
    r = json_text_members((char *)arguments.data, arguments.len, members, CODE_ARGUMENTS_MAX,
                          &n, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        if (is_option(call, members[i].key))
            return err_set(err, EINVAL, "\"%.*s\" is an argument and an option of the call",
                           (int)members[i].key.len, members[i].key.data);
        write_member(w, &members[i]);
    }
    return 0;
}

int tool_call_translate(const struct tool_call *call, const struct tool *tool, struct buf *ret,
                        struct err *err)
{
    struct json_writer w = json_writer_init(ret->max);
    struct buf json = {0};
    int r, written;

    json_write_open(&w, NULL, '{');
    r = tool->is_code ? write_code(&w, call, tool, err) : write_skill(&w, call, tool, err);
    for (size_t i = 0; i < call->n_options; i++)
        write_member(&w, &call->options[i]);
    json_write_close(&w, '}');
    written = json_writer_end(&w, &json);
    if (r == 0 && written < 0)
        r = err_set(err, -written,
                    written == -E2BIG ? "the request is too large" : "out of memory");
    if (r < 0) {
        buf_finish(&json);
        return r;
    }
    buf_finish(ret);
    *ret = json;
    return 0;
}
