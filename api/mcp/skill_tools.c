/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/skill_tools.h"

#include "api/json/json_walk.h"
#include "api/mcp/hello.h"
#include "api/mcp/skill_text.h"
#include "api/mcp/tool_result.h"
#include "base/cleanup.h"
#include "base/percent.h"

#include <string.h>

#define NAME_BYTES    256u
#define VERSION_BYTES 128u
#define PATH_BYTES    2048u

static const char definitions[][640] = {
    "{\"name\":\"list_skills\",\"description\":\"Lists the skills that are installed, each "
    "with its name, version and description. Most are tools of their own; get_skill_info has "
    "the instructions of each.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{},"
    "\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":true}}",
    "{\"name\":\"get_skill_info\",\"description\":\"Shows the instructions of a skill, its "
    "SKILL.md, and the list of its files. Read them before its tools are called.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
    "\"description\":\"as list_skills gives it\"},\"version\":{\"type\":\"string\","
    "\"description\":\"by default the latest\"}},\"required\":[\"name\"],"
    "\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":true}}",
};

void skill_tools_write(struct json_writer *w)
{
    for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++)
        json_write_value(w, NULL, (struct json_slice){definitions[i], strlen(definitions[i])});
}

bool skill_tools_has(const char *name)
{
    return strcmp(name, "list_skills") == 0 || strcmp(name, "get_skill_info") == 0;
}

/* The latest version of each: rows come by name, the one registered last first. */
static void write_skills(struct json_writer *w, struct json_slice list)
{
    static const char *const keys[] = {"name", "version", "description"};
    struct json_slice skill, name, value, last = {"", 0};
    struct json_items items = {.array = list};

    json_write_open(w, NULL, '{');
    json_write_open(w, "skills", '[');
    while (json_items_next(&items, &skill)) {
        if (!json_find(skill, "name", &name) ||
            (name.len == last.len && memcmp(name.data, last.data, name.len) == 0))
            continue;
        last = name;
        json_write_open(w, NULL, '{');
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            if (json_find(skill, keys[i], &value))
                json_write_value(w, keys[i], value);
        }
        json_write_close(w, '}');
    }
    json_write_close(w, ']');
    json_write_close(w, '}');
}

static int list_skills(struct mcp_call *call, struct json_slice list, struct mcp_answer *answer)
{
    struct json_writer w = json_writer_init(MCP_RESULT_MAX / 4);
    _cleanup_buf_ struct buf text = {0};

    write_skills(&w, list);
    if (json_writer_end(&w, &text) < 0)
        return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR, "there are too many skills");
    mcp_result_write_text(call, &text, true, &answer->result);
    return 0;
}

static int show_skill(struct mcp_call *call, struct json_slice skill, struct mcp_answer *answer)
{
    _cleanup_buf_ struct buf text = buf_init(MCP_RESULT_MAX / 4);

    (void)skill_text_append(skill, &text);
    (void)buf_printf(&text, "\n\nFiles of the skill:\n\n");
    if (skill_text_append_files(skill, &text) < 0)
        return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR, "the skill cannot be read");
    mcp_result_write_text(call, &text, false, &answer->result);
    return 0;
}

/* Where the daemon has what is asked for. False where the arguments do not say. */
static bool find_path(const char *name, struct json_slice arguments, struct buf *path)
{
    _cleanup_free_ char *skill = NULL, *version = NULL;
    struct json_slice given = {"null", 4};

    if (strcmp(name, "list_skills") == 0)
        return buf_printf(path, "/v1/skills") == 0;
    skill = json_strdup_member(arguments, "name", NAME_BYTES);
    version = json_strdup_member(arguments, "version", VERSION_BYTES);
    (void)json_find(arguments, "version", &given);
    if (!skill || !*skill || (!version && !json_slice_is(given, "null")))
        return false;
    return percent_printf(path, "/v1/skills/%s/%s", skill,
                          version && *version ? version : "latest") == 0;
}

int skill_tools_call(struct mcp_call *call, const char *name, struct json_slice arguments,
                     struct mcp_answer *answer)
{
    _cleanup_buf_ struct buf path = buf_init(PATH_BYTES), body = buf_init(MCP_DAEMON_MAX);
    struct skillvm_error error = {0};
    struct json_slice json;

    if (!find_path(name, arguments, &path) || !buf_cstr(&path)) {
        mcp_result_write_refusal(&answer->result,
                                 "\"name\" must be the name of a skill, and \"version\", "
                                 "where it is given, one of its versions");
        return 0;
    }
    if (mcp_call_get(call, buf_cstr(&path), &body, NULL, &error) < 0) {
        if (error.http_status != 404 && error.http_status != 400)
            return mcp_answer_daemon(answer, &error);
        mcp_result_write_refusal(&answer->result, error.message);
        return 0;
    }
    if (json_text_check((const char *)body.data, body.len, &json, NULL) < 0)
        return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR,
                               "the daemon's answer cannot be read");
    return json_is_array(json) ? list_skills(call, json, answer)
                               : show_skill(call, json, answer);
}
