/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: the SKILL.md of every skill, and the files that executions left. */
#include "api/json/json_walk.h"
#include "api/mcp/call.h"
#include "api/mcp/hello.h"
#include "api/mcp/page.h"
#include "api/mcp/skill_text.h"
#include "api/mcp/uri.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX  (8u << 20) /* bytes of a file that is read as a resource */
#define FIELD_MAX 4096u

static char *skill_uri(struct json_slice skill)
{
    _cleanup_free_ char *name = json_strdup_member(skill, "name", FIELD_MAX);
    _cleanup_free_ char *version = json_strdup_member(skill, "version", FIELD_MAX);

    return name && version ? uri_for_skill(name, version) : NULL;
}

static void write_skill(struct json_writer *w, struct json_slice skill)
{
    struct json_slice value;
    _cleanup_free_ char *uri = skill_uri(skill);

    json_write_open(w, NULL, '{');
    json_write_string(w, "uri", uri);
    if (json_find(skill, "name", &value))
        json_write_value(w, "name", value);
    if (json_find(skill, "description", &value) && json_is_string(value))
        json_write_value(w, "description", value);
    json_write_string(w, "mimeType", "text/markdown");
    json_write_close(w, '}');
}

int mcp_resources_list(struct mcp_call *call, struct mcp_answer *answer)
{
    static const struct mcp_page page = {"resources", "/v1/skills", "skills",
                                         skill_uri,   write_skill,  NULL};

    return mcp_page_answer(&page, call, answer);
}

int mcp_resources_templates(struct mcp_call *call, struct mcp_answer *answer)
{
    static const struct {
        const char *uri, *name, *title, *description, *type;
    } templates[] = {
        {"skill://{name}/{version}/SKILL.md", "skill", "A skill's instructions",
         "What a skill is for and how it is used; the version may be \"latest\".",
         "text/markdown"},
        {"execution://{id}/files/{+path}", "file", "A file that an execution left",
         "The result of a call links the files there are.", NULL},
    };
    struct json_writer *w = &answer->result;

    (void)call;
    json_write_open(w, NULL, '{');
    json_write_open(w, "resourceTemplates", '[');
    for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
        json_write_open(w, NULL, '{');
        json_write_string(w, "uriTemplate", templates[i].uri);
        json_write_string(w, "name", templates[i].name);
        json_write_string(w, "title", templates[i].title);
        json_write_string(w, "description", templates[i].description);
        if (templates[i].type)
            json_write_string(w, "mimeType", templates[i].type);
        json_write_close(w, '}');
    }
    json_write_close(w, ']');
    json_write_close(w, '}');
    return 0;
}

static int append_base64(struct buf *out, const uint8_t *data, size_t len)
{
    int r = buf_reserve(out, (len + 2) / 3 * 4 + 1);

    if (r == 0)
        out->len += (size_t)EVP_EncodeBlock(out->data + out->len, data, (int)len);
    return r;
}

static void write_contents(struct json_writer *w, const char *uri, const char *type,
                           const struct buf *body)
{
    _cleanup_buf_ struct buf blob = buf_init(2 * FILE_MAX);
    bool is_text = utf8_valid(body->data, body->len) &&
                   !(body->len > 0 && memchr(body->data, '\0', body->len));

    json_write_open(w, NULL, '{');
    json_write_open(w, "contents", '[');
    json_write_open(w, NULL, '{');
    json_write_string(w, "uri", uri);
    json_write_string(w, "mimeType", type);
    if (is_text) {
        json_write_text(w, "text", body->data, body->len);
    } else {
        int r = append_base64(&blob, body->data, body->len);
        json_write_text(w, "blob", blob.data, blob.len);
        if (r < 0 && w->out.error == 0)
            w->out.error = r;
    }
    json_write_close(w, '}');
    json_write_close(w, ']');
    json_write_close(w, '}');
}

static int read_skill(struct mcp_answer *answer, const char *uri, const struct buf *body)
{
    _cleanup_buf_ struct buf text = buf_init(4 * FILE_MAX);
    struct json_slice skill;

    if (json_text_check((const char *)body->data, body->len, &skill, NULL) < 0 ||
        skill_text_append(skill, &text) < 0)
        return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR, "the skill cannot be read");
    write_contents(&answer->result, uri, "text/markdown", &text);
    return 0;
}

static int not_found(const struct mcp_call *call)
{
    return mcp_call_speaks(call, HELLO_STATELESS) ? MESSAGE_INVALID_PARAMS
                                                  : MESSAGE_RESOURCE_NOT_FOUND;
}

static int read_resource(struct mcp_call *call, const char *uri, struct mcp_answer *answer)
{
    char path[URI_MAX], type[64];
    _cleanup_buf_ struct buf body = buf_init(FILE_MAX);
    struct skillvm_error error = {0};
    enum uri_kind kind;
    int r;

    if (uri_to_path(uri, &kind, path) < 0)
        return mcp_answer_fail(answer, MESSAGE_RESOURCE_NOT_FOUND,
                               "there is no resource %.400s", uri);
    r = mcp_call_get(call, path, &body, type, &error);
    type[strcspn(type, "; ")] = '\0';
    if (r == -E2BIG)
        return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR,
                               "it has more than %u MiB; `skillvm exec files` fetches it",
                               FILE_MAX >> 20);
    if (r < 0)
        return mcp_answer_fail(answer,
                               error.http_status == 404 || error.http_status == 400
                                   ? not_found(call)
                                   : MESSAGE_INTERNAL_ERROR,
                               "%s", error.message);
    if (kind == URI_SKILL)
        return read_skill(answer, uri, &body);
    write_contents(&answer->result, uri, type[0] ? type : "application/octet-stream", &body);
    return 0;
}

int mcp_resources_read(struct mcp_call *call, struct mcp_answer *answer)
{
    _cleanup_free_ char *uri = json_strdup_member(call->message.params, "uri", URI_MAX);

    return uri ? read_resource(call, uri, answer)
               : mcp_answer_fail(answer, MESSAGE_INVALID_PARAMS,
                                 "\"uri\" must be a string of %u bytes at most", URI_MAX);
}
