/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of other nodes, under the key that stands in their first line. What must hold:
 * what is taken is under its own name, and is written and read again as the same.
 */
#include "api/daemon/cluster/node_entry.h"
#include "tests/fuzz/keyed_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *key, const char *text, size_t len)
{
    struct node_entry entry, again;
    enum node_refusal why;
    struct buf written, twice;

    if (node_entry_parse(key, text, len, &entry, &why) < 0) {
        if (why >= NODE_REFUSALS)
            abort();
        return;
    }
    if (strcmp(entry.node, key) != 0 || !fleet_node_valid(key) ||
        entry.n_images > NODE_IMAGES_MAX || entry.n_labels > FLEET_LABELS_MAX)
        abort();
    if (node_entry_write(&entry, &written) < 0 ||
        node_entry_parse(key, buf_cstr(&written), written.len, &again, &why) < 0 ||
        node_entry_write(&again, &twice) < 0 || written.len != twice.len ||
        memcmp(written.data, twice.data, twice.len) != 0)
        abort();
    buf_finish(&twice);
    buf_finish(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keyed_text(data, size, check);
    return 0;
}
