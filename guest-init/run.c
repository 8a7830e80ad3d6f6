/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/run.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"

#define STRINGS_MAX          65536u
#define ENTRY_MAX            4095u
#define TIMEOUT_MAX_MS       (24u * 3600u * 1000u)
#define DEFAULT_TIMEOUT_MS   (120u * 1000u)
#define DEFAULT_MEMORY       (256u << 20)
#define DEFAULT_PIDS         128u
#define DEFAULT_LOG_BYTES    (1u << 20)
#define DEFAULT_FILES_MAX    10000u
#define DEFAULT_FILES_BYTES  (100u << 20)
#define DEFAULT_OUTPUT_BYTES (4u << 20)

static int add(struct run_strings *list, const void *text, size_t len)
{
    char **items;
    char *copy;

    if (list->count >= STRINGS_MAX)
        return -E2BIG;
    /* Grows at each power of two, so that a long list is not copied once per item. */
    if ((list->count & (list->count + 1)) == 0) {
        items = reallocarray(list->items, 2 * list->count + 2, sizeof(*items));
        if (!items)
            return -ENOMEM;
        list->items = items;
    }
    copy = malloc(len + 1);
    if (!copy)
        return -ENOMEM;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = 0;
    list->items[list->count++] = copy;
    list->items[list->count] = NULL;
    return 0;
}

int run_strings_add(struct run_strings *list, const void *text, size_t len)
{
    if (!list->error)
        list->error = add(list, text, len);
    return list->error;
}

int run_strings_add_env(struct run_strings *list, const char *name, const char *value)
{
    _cleanup_free_ char *text = NULL;
    int len = asprintf(&text, "%s=%s", name, value);

    if (len < 0) {
        text = NULL;
        return list->error = -ENOMEM;
    }
    return run_strings_add(list, text, (size_t)len);
}

void run_strings_finish(struct run_strings *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct run_strings){0};
}

void run_finish(struct run *run)
{
    free(run->entry);
    free(run->instructions);
    free(run->skill_name);
    run_strings_finish(&run->args);
    run_strings_finish(&run->env);
    *run = (struct run){0};
}

static int decode_text(const uint8_t *value, uint32_t len, char **ret_text)
{
    char *text;

    if (memchr(value, 0, len))
        return -EINVAL;
    text = strndup((const char *)value, len);
    if (!text)
        return -ENOMEM;
    *ret_text = text;
    return 0;
}

static int decode_number(const uint8_t *value, uint32_t len, uint32_t size, uint64_t *ret_value)
{
    struct bytes_reader r = bytes_reader_init(value, len);

    if (len != size)
        return -EINVAL;
    *ret_value = size == 8   ? bytes_get_u64(&r)
                 : size == 4 ? bytes_get_u32(&r)
                             : bytes_get_u8(&r);
    return 0;
}

static int decode_u32(const uint8_t *value, uint32_t len, uint32_t *ret_value)
{
    uint64_t wide;
    int r = decode_number(value, len, 4, &wide);

    if (r < 0)
        return r;
    *ret_value = (uint32_t)wide;
    return 0;
}

static int decode_lang(const uint8_t *value, uint32_t len, enum run_lang *ret_lang)
{
    static const char *const names[] = {
        [RUN_LANG_PYTHON] = "python", [RUN_LANG_BASH] = "bash", [RUN_LANG_NODE] = "node"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && memcmp(names[i], value, len) == 0) {
            *ret_lang = (enum run_lang)i;
            return 0;
        }
    }
    return -EINVAL;
}

static int decode_mode(const uint8_t *value, uint32_t len, enum proto_mode *ret_mode)
{
    uint64_t mode;
    int r = decode_number(value, len, 1, &mode);

    if (r < 0)
        return r;
    if (mode > PROTO_MODE_MODULE)
        return -EINVAL;
    *ret_mode = (enum proto_mode)mode;
    return 0;
}

static int decode_flag(const uint8_t *value, uint32_t len, bool *ret_flag)
{
    if (len != 1 || value[0] > 1)
        return -EINVAL;
    *ret_flag = value[0] == 1;
    return 0;
}

static int decode_string(struct run_strings *list, const uint8_t *value, uint32_t len,
                         bool is_env)
{
    if (memchr(value, 0, len))
        return -EINVAL;
    if (is_env && (len == 0 || value[0] == '=' || !memchr(value, '=', len)))
        return -EINVAL;
    return run_strings_add(list, value, len);
}

static int decode_field(struct run *run, uint16_t tag, const uint8_t *value, uint32_t len)
{
    switch (tag) {
    case PROTO_F_LANG:
        return decode_lang(value, len, &run->lang);
    case PROTO_F_MODE:
        return decode_mode(value, len, &run->mode);
    case PROTO_F_ENTRY:
        return decode_text(value, len, &run->entry);
    case PROTO_F_ARG:
        return decode_string(&run->args, value, len, false);
    case PROTO_F_ENV:
        return decode_string(&run->env, value, len, true);
    case PROTO_F_TIMEOUT_MS:
        return decode_number(value, len, 8, &run->timeout_ms);
    case PROTO_F_MEMORY_BYTES:
        return decode_number(value, len, 8, &run->memory_bytes);
    case PROTO_F_PIDS_MAX:
        return decode_u32(value, len, &run->pids_max);
    case PROTO_F_LOG_BYTES:
        return decode_number(value, len, 8, &run->log_bytes);
    case PROTO_F_FILES_MAX:
        return decode_u32(value, len, &run->files_max);
    case PROTO_F_FILES_BYTES:
        return decode_number(value, len, 8, &run->files_bytes);
    case PROTO_F_OUTPUT_BYTES:
        return decode_number(value, len, 8, &run->output_bytes);
    case PROTO_F_INSTRUCTIONS:
        return decode_text(value, len, &run->instructions);
    case PROTO_F_SKILL_NAME:
        return decode_text(value, len, &run->skill_name);
    case PROTO_F_PACKAGES:
        return decode_flag(value, len, &run->has_packages);
    case PROTO_F_SKILL_DISK:
        return decode_flag(value, len, &run->is_on_disk);
    case PROTO_F_SESSION_FILES:
        return decode_u32(value, len, &run->session_files);
    case PROTO_F_SESSION_BYTES:
        return decode_number(value, len, 8, &run->session_bytes);
    case PROTO_F_NETWORK:
        return decode_flag(value, len, &run->has_network);
    default:
        return 0;
    }
}

static bool path_is_inside(const char *path)
{
    if (path[0] == '/' || path[0] == 0 || strlen(path) > ENTRY_MAX)
        return false;
    for (const char *part = path; part;) {
        const char *end = strchrnul(part, '/');

        if (end - part == 2 && part[0] == '.' && part[1] == '.')
            return false;
        part = *end ? end + 1 : NULL;
    }
    return true;
}

static int check(const struct run *run, uint32_t seen, struct err *err)
{
    if (!(seen & (1u << PROTO_F_LANG)) || !run->entry)
        return err_set(err, EPROTO, "RUN without language or entry");
    if (run->mode == PROTO_MODE_MODULE && run->lang != RUN_LANG_PYTHON)
        return err_set(err, EINVAL, "only python runs a module");
    if (run->mode == PROTO_MODE_MODULE && run->entry[0] == 0)
        return err_set(err, EINVAL, "empty module name");
    if (run->mode != PROTO_MODE_MODULE && !path_is_inside(run->entry))
        return err_set(err, EINVAL, "entry is not a path inside the skill");
    if (run->timeout_ms == 0 || run->memory_bytes == 0 || run->pids_max == 0)
        return err_set(err, EINVAL, "RUN with a limit of zero");
    if (run->timeout_ms > TIMEOUT_MAX_MS)
        return err_set(err, EINVAL, "RUN with a timeout over a day");
    return 0;
}

static int decode(const void *data, size_t len, struct run *run, struct err *err)
{
    struct bytes_reader r = bytes_reader_init(data, len);
    uint32_t seen = 0;

    while (bytes_left(&r) > 0) {
        uint16_t tag = bytes_get_u16(&r);
        uint16_t zero = bytes_get_u16(&r);
        uint32_t size = bytes_get_u32(&r);
        const uint8_t *value = bytes_take(&r, size);
        bool repeats = tag == PROTO_F_ARG || tag == PROTO_F_ENV;
        int error;

        if (!value || zero != 0)
            return err_set(err, EPROTO, "malformed RUN field");
        if (tag < 32 && !repeats && (seen & (1u << tag)))
            return err_set(err, EPROTO, "RUN field %u repeated", tag);
        if (tag < 32)
            seen |= 1u << tag;
        error = decode_field(run, tag, value, size);
        if (error < 0)
            return err_set_errno(err, -error, "RUN field %u", tag);
    }
    if (!bytes_done(&r))
        return err_set(err, EPROTO, "truncated RUN");
    return check(run, seen, err);
}

int run_decode(const void *data, size_t len, struct run *ret_run, struct err *err)
{
    int r;

    *ret_run = (struct run){
        .timeout_ms = DEFAULT_TIMEOUT_MS,
        .memory_bytes = DEFAULT_MEMORY,
        .pids_max = DEFAULT_PIDS,
        .log_bytes = DEFAULT_LOG_BYTES,
        .files_max = DEFAULT_FILES_MAX,
        .files_bytes = DEFAULT_FILES_BYTES,
        .output_bytes = DEFAULT_OUTPUT_BYTES,
    };
    r = decode(data, len, ret_run, err);
    if (r < 0)
        run_finish(ret_run);
    return r;
}
