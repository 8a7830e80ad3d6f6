/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/page.h"

#include "api/json/json_walk.h"

#include <stdlib.h>
#include <string.h>

#define CURSOR_MAX 2048u

int mcp_page_write(const struct mcp_page *page, struct json_slice array,
                   struct json_slice params, struct mcp_answer *answer)
{
    struct json_writer *w = &answer->result;
    struct json_items items = {.array = array};
    struct json_slice item, given;
    char *cursor = NULL, *last = NULL, *key;
    size_t n = 0;
    bool found = true, more = false;

    if (json_find(params, "cursor", &given)) {
        cursor = json_strdup(given, CURSOR_MAX);
        found = false;
    }
    json_write_open(w, NULL, '{');
    json_write_open(w, page->name, '[');
    while (!more && json_items_next(&items, &item)) {
        key = page->key(item);
        if (!key) {
            continue;
        } else if (!found) {
            found = cursor && strcmp(key, cursor) == 0;
            free(key);
        } else if (n == MCP_PAGE_MAX) {
            more = true;
            free(key);
        } else {
            page->write(w, item);
            n++;
            free(last);
            last = key;
        }
    }
    json_write_close(w, ']');
    if (more)
        json_write_string(w, "nextCursor", last);
    json_write_close(w, '}');
    free(cursor);
    free(last);
    return found ? 0 : mcp_answer_fail(answer, MESSAGE_INVALID_PARAMS, "there is no such page");
}
