/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nodes say to each other without a stream. What must hold: what is taken is written and
 * read again as the same.
 */
#include "api/daemon/cluster/node_wish.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_wish(const char *text, size_t len)
{
    enum node_wish wish, again;
    struct buf written;

    if (node_wish_parse(text, len, &wish) < 0)
        return;
    check(wish < NODE_WISHES && node_wish_write(wish, &written) == 0 &&
          node_wish_parse(buf_cstr(&written), written.len, &again) == 0 && again == wish);
    buf_finish(&written);
}

static void check_drain(const char *text, size_t len)
{
    struct node_drain drain, again;
    struct buf written;

    if (node_drain_parse(text, len, &drain) < 0)
        return;
    /* What was written with fewer characters than we write it with may not fit. */
    if (node_drain_write(&drain, &written) < 0)
        return;
    check(node_drain_parse(buf_cstr(&written), written.len, &again) == 0 &&
          again.is_draining == drain.is_draining && again.running == drain.running &&
          again.waiting == drain.waiting && strcmp(again.refused, drain.refused) == 0);
    buf_finish(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    check_wish(text, size);
    check_drain(text, size);
    free(text);
    return 0;
}
