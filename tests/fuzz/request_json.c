/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON body of an execution request, and text that is to become a JSON string. What must
 * hold: the input lies inside the body and is JSON, code is one of three ways to say what runs
 * and has a language, and what we write is JSON too.
 */
#include "api/daemon/routes/request.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"
#include "api/skill/code.h"
#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_source(const char *body, size_t len, const struct request_file *file)
{
    struct buf content = buf_init(len);

    if (file->from == REQUEST_FILE_UPLOADED) {
        if (!ids_valid(ID_FILE, file->id))
            abort();
        return;
    }
    if (!file->path)
        abort();
    if (file->from == REQUEST_FILE_LEFT) {
        if (!ids_valid(ID_EXECUTION, file->id) || !file->left[0])
            abort();
        return;
    }
    if (file->at > len || file->bytes > len - file->at ||
        json_append_decoded(&content, (struct json_slice){body + file->at, file->bytes}) < 0)
        abort();
    (void)base64_decode(&content);
    buf_finish(&content);
}

static void check_request(const char *body, size_t len, bool with_archive)
{
    struct request q;
    struct err err = {0};

    if (request_parse(body, len, with_archive, &q, &err) < 0) {
        if (err.code == 0)
            abort();
        return;
    }
    if (q.has_input && (q.input_at > len || q.input_bytes > len - q.input_at ||
                        json_text_check(body + q.input_at, q.input_bytes, NULL, NULL) < 0))
        abort();
    if (q.code ? !q.code_lang || strlen(q.code) > CODE_BYTES_MAX || q.skill || with_archive
               : q.lang || (!q.skill && !with_archive))
        abort();
    if (q.timeout_ms > 3600000000u || q.env.len > LIMIT_ENV_COUNT ||
        q.args.len > LIMIT_ARGS_COUNT)
        abort();
    for (size_t i = 0; i < q.n_files; i++) {
        const struct request_file *file = &q.files[i];
        const char *path = file->path;

        check_source(body, len, file);
        if (i >= LIMIT_INPUT_FILES ||
            (path && (path[0] == '/' || path[0] == '\0' || strcmp(path, "..") == 0 ||
                      strncmp(path, "../", 3) == 0 || strstr(path, "/../"))))
            abort();
    }
    request_finish(&q);
}

static void check_writing(const char *text, size_t len)
{
    struct buf out = buf_init(8 * len + 64);
    struct buf compact = buf_init(8 * len + 64);
    struct json_slice value;

    if (json_append_string(&out, text, len) < 0 ||
        json_text_check((char *)out.data, out.len, NULL, NULL) < 0)
        abort();
    if (json_text_check(text, len, &value, NULL) == 0 &&
        (json_append_compact(&compact, value) < 0 ||
         json_text_check((char *)compact.data, compact.len, NULL, NULL) < 0))
        abort();
    buf_finish(&out);
    buf_finish(&compact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    check_request(copy, size, false);
    check_request(copy, size, true);
    check_writing(copy, size);
    (void)language_of_text(copy, size);
    free(copy);
    return 0;
}
