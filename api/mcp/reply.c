/* SPDX-License-Identifier: Apache-2.0 */
/* How answers leave the server, alone or as a batch. */
#include "api/mcp/session.h"

#include <errno.h>
#include <stdlib.h>

void reply_send(struct mcp_server *s, struct buf *text, int r)
{
    bool is_whole = r == 0 && buf_append(text, "\n", 1) == 0;

    pthread_mutex_lock(&s->send_lock);
    if (is_whole && !s->stopping)
        s->config.send(s->config.ctx, (const char *)text->data, text->len);
    pthread_mutex_unlock(&s->send_lock);
    buf_finish(text);
}

void reply_release(struct mcp_server *s, struct batch *batch)
{
    pthread_mutex_lock(&s->lock);
    bool last = --batch->waiting == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    if (batch->text.len > 0)
        reply_send(s, &batch->text, buf_append(&batch->text, "]", 1));
    buf_finish(&batch->text);
    free(batch);
}

void reply_keep(struct mcp_server *s, struct batch *batch, struct buf *text, int r)
{
    if (!batch) {
        reply_send(s, text, r);
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (r == 0 && buf_append(&batch->text, batch->text.len ? "," : "[", 1) == 0)
        (void)buf_append(&batch->text, text->data, text->len);
    pthread_mutex_unlock(&s->lock);
    buf_finish(text);
}

void reply_error(struct mcp_server *s, struct batch *batch, struct json_slice id, int code,
                 const char *text)
{
    struct buf out = buf_init(MCP_RESULT_MAX);

    reply_keep(s, batch, &out, message_append_error(&out, id, code, text, NULL));
}

void reply_result(struct mcp_server *s, struct batch *batch, struct json_slice id,
                  struct json_writer *result)
{
    struct buf out = buf_init(2 * MCP_RESULT_MAX);

    if (result->out.error == -E2BIG)
        reply_error(s, batch, id, MESSAGE_INTERNAL_ERROR, "the answer is too large");
    else if (result->out.error < 0)
        reply_error(s, batch, id, MESSAGE_INTERNAL_ERROR, "out of memory");
    else
        reply_keep(s, batch, &out, message_append_result(&out, id, &result->out));
    buf_finish(&result->out);
}
