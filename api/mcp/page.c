/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/page.h"

#include "api/json/json_walk.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define CURSOR_MAX 2048u

static int write_page(const struct mcp_page *page, struct json_slice array,
                      struct json_slice params, struct mcp_answer *answer)
{
    struct json_writer *w = &answer->result;
    struct json_items items = {.array = array};
    struct json_slice item, given;
    _cleanup_free_ char *cursor = NULL, *last = NULL;
    size_t n = 0;
    bool found = true, more = false;

    if (json_find(params, "cursor", &given)) {
        cursor = json_strdup(given, CURSOR_MAX);
        found = false;
    }
    json_write_open(w, NULL, '{');
    json_write_open(w, page->name, '[');
    if (page->begin && found)
        page->begin(w);
    while (!more && json_items_next(&items, &item)) {
        _cleanup_free_ char *key = page->key(item);

        if (!key)
            continue;
        if (!found) {
            found = cursor && strcmp(key, cursor) == 0;
        } else if (n == MCP_PAGE_MAX) {
            more = true;
        } else {
            page->write(w, item);
            n++;
            free(last);
            last = steal_ptr(&key);
        }
    }
    json_write_close(w, ']');
    if (more)
        json_write_string(w, "nextCursor", last);
    json_write_close(w, '}');
    return found ? 0 : mcp_answer_fail(answer, MESSAGE_INVALID_PARAMS, "there is no such page");
}

int mcp_page_answer(const struct mcp_page *page, struct mcp_call *call,
                    struct mcp_answer *answer)
{
    _cleanup_buf_ struct buf body = buf_init(MCP_DAEMON_MAX);
    struct skillvm_error error = {0};
    struct json_slice json, list;

    if (mcp_call_get(call, page->path, &body, NULL, &error) < 0)
        return mcp_answer_daemon(answer, &error);
    if (json_text_check((const char *)body.data, body.len, &json, NULL) < 0)
        return mcp_answer_fail(answer, MESSAGE_INTERNAL_ERROR,
                               "the daemon's list of %s cannot be read", page->what);
    if (!json_find(json, page->what, &list))
        list = json;
    return write_page(page, list, call->message.params, answer);
}
