/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another node says when it gives an execution away. What must hold: what is taken lies
 * inside, and is written and read again as the same.
 */
#include "api/daemon/routes/forward_head.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct forward_head head, again;
    struct buf out = buf_init(4096);
    char *text = malloc(size + 1);
    ssize_t at;

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    at = forward_head_parse(text, size, &head);
    if (at >= 0) {
        check((size_t)at <= size && at > 0 && text[at - 1] == '\n');
        check(forward_head_write(&head, &out) == 0);
        check(forward_head_parse(buf_cstr(&out), out.len, &again) == (ssize_t)out.len);
        check(strcmp(head.tenant, again.tenant) == 0 && strcmp(head.id, again.id) == 0 &&
              strcmp(head.digest, again.digest) == 0 && head.seen == again.seen &&
              head.sent_ns == again.sent_ns && strcmp(head.node, again.node) == 0 &&
              strcmp(head.instance, again.instance) == 0);
    }
    buf_finish(&out);
    free(text);
    return 0;
}
