/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/skill_text.h"

#include "api/json/json_walk.h"

int skill_text_append(struct json_slice skill, struct buf *out)
{
    /* The daemon gives front matter and body apart; here they are one text again. */
    static const char *const keys[] = {"name",    "description", "version",
                                       "license", "lang",        "compatibility"};
    struct json_slice value;

    (void)buf_printf(out, "---\n");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!json_find(skill, keys[i], &value) || !json_is_string(value) || value.len == 2)
            continue;
        /* A JSON string is a YAML one too. */
        (void)buf_printf(out, "%s: ", keys[i]);
        (void)json_append_compact(out, value);
        (void)buf_append(out, "\n", 1);
    }
    (void)buf_printf(out, "---\n\n");
    if (!out->error && json_find(skill, "instructions", &value) && json_is_string(value))
        return json_append_decoded(out, value);
    return out->error;
}

int skill_text_append_files(struct json_slice skill, struct buf *out)
{
    struct json_slice list = {0}, file, path, size;

    (void)json_find(skill, "files", &list);
    struct json_items items = {.array = list};
    while (!out->error && json_items_next(&items, &file)) {
        if (!json_find(file, "path", &path) || !json_is_string(path) ||
            !json_find(file, "size_bytes", &size))
            continue;
        (void)buf_printf(out, "- ");
        (void)json_append_decoded(out, path);
        (void)buf_printf(out, " (%.*s bytes)\n", (int)size.len, size.data);
    }
    return out->error;
}
