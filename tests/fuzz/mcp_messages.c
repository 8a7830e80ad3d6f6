/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MCP session: bytes of a client's, split into lines, against a daemon whose answers are
 * bytes of the same input. What must hold: every line out is one JSON value on one line, it
 * names the protocol, and the session ends.
 */
#include "api/json/json_text.h"
#include "api/json/json_walk.h"
#include "api/mcp/lines.h"
#include "api/mcp/message.h"
#include "api/mcp/server.h"
#include "api/mcp/uri.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *answer;
static size_t answer_len;
static atomic_bool asked; /* something of the daemon */

static void check_message(struct json_slice message)
{
    struct json_slice version;

    if (!json_find(message, "jsonrpc", &version) || !json_slice_is(version, "\"2.0\""))
        abort();
}

static void on_send(void *ctx, const char *line, size_t len)
{
    struct json_items items = {0};
    struct json_slice item;

    (void)ctx;
    if (len < 2 || line[len - 1] != '\n' || memchr(line, '\n', len - 1) ||
        json_text_check(line, len, &items.array, NULL) < 0)
        abort();
    if (!json_is_array(items.array))
        check_message(items.array);
    while (json_items_next(&items, &item))
        check_message(item);
}

/* The same bytes serve as body, as the data of events, and as a refusal. */
static int perform(void *ctx, const struct skillvm_request *request,
                   struct skillvm_error *error)
{
    int r = 0;

    (void)ctx;
    asked = true;
    if (request->path[0] != '/' || strstr(request->path, "/../") ||
        (request->json &&
         json_text_check(request->json, strlen(request->json), NULL, NULL) < 0))
        abort();
    if (answer_len % 3 == 1) {
        error->http_status = 400 + (int)(answer_len % 40);
        return -EREMOTEIO;
    }
    if (request->on_event) {
        static const char *const names[] = {"status", "stdout", "result"};
        for (size_t i = 0; r == 0 && i < 3; i++)
            r = request->on_event(request->ctx, names[i], (const char *)answer, answer_len);
        if (request->should_stop(request->ctx))
            return -EINTR;
        return r;
    }
    return request->on_body ? request->on_body(request->ctx, "text/plain", answer, answer_len)
                            : 0;
}

static void on_line(void *ctx, const char *line, size_t len)
{
    mcp_server_take(ctx, line, len);
}

/* The part before the first NUL is the client's, the rest the daemon's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mcp_config config = {
        .perform = perform, .send = on_send, .cancel_end_ms = 20000};
    const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
    size_t len = nul ? (size_t)(nul - data) : size;
    struct mcp_server *server;
    struct lines lines;

    asked = false;
    answer = nul ? nul + 1 : data;
    answer_len = nul ? size - len - 1 : 0;
    if (mcp_server_create(&config, &server) < 0)
        return 0;
    lines_init(&lines, 65536, on_line, server);
    if (lines_push(&lines, data, len) < 0)
        abort();
    lines_finish(&lines);
    /* After the end nothing is sent: most answers should be out before it. */
    if (asked)
        usleep(500);
    if (!mcp_server_stop(server))
        abort();
    mcp_server_free(server);
    return 0;
}
