/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other nodes wrote of tenants, keys, skills, files, sessions and who has them,
 * executions, objects and their audit, under the key that stands in the first line. What must
 * hold: what is taken is of its key, and is written and read again as the same.
 */
#include "api/daemon/cluster/change_entry.h"
#include "api/daemon/cluster/deed_entry.h"
#include "api/daemon/cluster/hold_entry.h"
#include "api/daemon/cluster/object_meta.h"
#include "api/daemon/cluster/record_entry.h"
#include "base/utf8.h"
#include "tests/fuzz/keyed_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_change(const char *key, const char *text, size_t len)
{
    static struct change change, again;
    char wanted[CHANGE_KEY_SIZE];
    enum node_refusal why;
    struct buf written, twice;

    if (change_entry_parse(key, text, len, false, &change, &why) < 0) {
        check(why < NODE_REFUSALS);
        return;
    }
    change_entry_key(change.kind, change.id, wanted);
    check(strcmp(key, wanted) == 0);
    /* What was written with fewer characters than we write it with may not fit. */
    if (change_entry_write(&change, &written) < 0)
        return;
    check(change_entry_parse(key, buf_cstr(&written), written.len, false, &again, &why) == 0);
    check(change_entry_write(&again, &twice) == 0 && written.len == twice.len &&
          memcmp(written.data, twice.data, twice.len) == 0);
    buf_finish(&twice);
    buf_finish(&written);
}

static void check_object(const char *key, const char *text, size_t len)
{
    struct object_meta meta, again;
    struct buf written;

    if (object_meta_parse(key, text, len, &meta) < 0)
        return;
    check(object_meta_write(&meta, "b", &written) == 0 &&
          object_meta_parse(key, buf_cstr(&written), written.len, &again) == 0 &&
          again.size == meta.size && again.chunks == meta.chunks &&
          strcmp(again.chunks_under, meta.chunks_under) == 0);
    buf_finish(&written);
}

static void check_record(const char *key, const char *text, size_t len)
{
    static struct record record, again;
    enum node_refusal why;
    struct buf written, twice;

    if (record_entry_parse(key, text, len, &record, &why) < 0) {
        check(why < NODE_REFUSALS);
        return;
    }
    check(strcmp(record.id, key) == 0);
    if (record_entry_write(&record, &written) < 0)
        return;
    check(record_entry_parse(key, buf_cstr(&written), written.len, &again, &why) == 0);
    check(strcmp(again.tenant, record.tenant) == 0 && again.accepted_ns == record.accepted_ns &&
          strcmp(again.status, record.status) == 0 && !again.result == !record.result &&
          again.waits == record.waits && !again.request == !record.request);
    check(record_entry_write(&again, &twice) == 0 && written.len == twice.len &&
          memcmp(written.data, twice.data, twice.len) == 0);
    buf_finish(&twice);
    buf_finish(&written);
}

static void check_deed(const char *key, const char *text, size_t len)
{
    static struct deed deed, again;
    enum node_refusal why;
    struct buf written;

    if (deed_entry_parse(key, text, len, &deed, &why) < 0) {
        check(why < NODE_REFUSALS);
        return;
    }
    check(strcmp(deed.entry, key) == 0 && utf8_valid(deed.target, strlen(deed.target)) &&
          utf8_valid(deed.detail, strlen(deed.detail)));
    if (deed_entry_write(&deed, &written) < 0)
        return;
    check(deed_entry_parse(key, buf_cstr(&written), written.len, &again, &why) == 0);
    check(again.id == deed.id && again.at_ns == deed.at_ns &&
          strcmp(again.tenant, deed.tenant) == 0 && strcmp(again.actor, deed.actor) == 0 &&
          strcmp(again.action, deed.action) == 0 && strcmp(again.target, deed.target) == 0 &&
          strcmp(again.detail, deed.detail) == 0);
    buf_finish(&written);
}

static void check_hold(const char *text, size_t len)
{
    struct hold hold, again;
    struct buf written;

    if (hold_entry_parse(text, len, &hold) < 0)
        return;
    check(hold_entry_write(&hold, &written) == 0 &&
          hold_entry_parse(buf_cstr(&written), written.len, &again) == 0 &&
          strcmp(hold.node, again.node) == 0 && strcmp(hold.instance, again.instance) == 0 &&
          strcmp(hold.execution, again.execution) == 0 && hold.seen == again.seen &&
          hold.is_over == again.is_over);
    buf_finish(&written);
}

static void check_all(const char *key, const char *text, size_t len)
{
    check_change(key, text, len);
    check_object(key, text, len);
    check_record(key, text, len);
    check_deed(key, text, len);
    if (hold_entry_is_key(key))
        check_hold(text, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keyed_text(data, size, check_all);
    return 0;
}
