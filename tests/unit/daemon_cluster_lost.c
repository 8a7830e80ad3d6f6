/* SPDX-License-Identifier: Apache-2.0 */
/* What the server that leads has of executions and a watch at another one does not give, and
   what it has no more; with a stand-in for the module. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/records_followed.h"

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/cluster/record_entry.h"
#include "api/daemon/cluster/staged.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By revision. The watch gives the first and the last. */
#define OTHERS  1u /* another node's */
#define LACKING 2u /* another one of its */
#define OURS    3u /* this process's, not ended */
#define LAST    4u /* another one of the other node's */

#define INSTANCE "0123456789abcdef0123456789abcdef"

static struct record ours;     /* signed before anything follows */
static uint64_t given;         /* by the thread that follows alone */
static unsigned lacking, lost; /* atomic: how often these came */

static enum cluster_fault fake_look(struct cluster_link *link, const char *name,
                                    struct cluster_bucket *ret, struct err *err)
{
    (void)link;
    (void)err;
    return records_look(name, LAST, ret);
}

static enum cluster_fault fake_watch(struct cluster_link *link, const char *name,
                                     uint64_t after, struct err *err)
{
    (void)link;
    (void)name;
    (void)err;
    given = after;
    return CLUSTER_OK;
}

static void key_of(uint64_t revision, char ret[RECORD_ID_SIZE])
{
    (void)snprintf(ret, RECORD_ID_SIZE, "exec_%032llx", (unsigned long long)revision);
}

static struct record record_at(uint64_t revision)
{
    struct record record = ours;

    if (revision != OURS) {
        (void)strcpy(record.node, "b");
        (void)strcpy(record.instance, INSTANCE);
        (void)strcpy(record.status, "success");
        record.finished_ns = 2;
        record.result = "{}";
        record.result_bytes = 2;
    }
    record.accepted_ns = 1;
    (void)strcpy(record.tenant, "default");
    (void)strcpy(record.skill_name, "demo");
    return record;
}

static void give(uint64_t revision, struct cluster_entry *ret)
{
    struct record record = record_at(revision);
    struct buf entry = {0};
    const char *text;

    assert_int_equal(record_entry_write(&record, &entry), 0);
    text = buf_cstr(&entry);
    *ret = (struct cluster_entry){.data = text,
                                  .held = entry.data,
                                  .len = entry.len,
                                  .revision = revision,
                                  .pending = LAST - revision,
                                  .stored_ns = 1};
    key_of(revision, ret->key);
}

static enum cluster_fault fake_next(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                                    struct cluster_entry *ret, struct err *err)
{
    (void)link;
    (void)wait_ms;
    (void)err;
    *ret_some = given < LAST;
    if (!*ret_some) {
        usleep(1000);
        return CLUSTER_OK;
    }
    given = given < OTHERS ? OTHERS : LAST;
    give(given, ret);
    return CLUSTER_OK;
}

static enum cluster_fault fake_get_at(struct cluster_link *link, const char *name,
                                      uint64_t revision, struct cluster_entry *ret,
                                      struct err *err)
{
    (void)link;
    (void)name;
    (void)err;
    give(revision, ret);
    return CLUSTER_OK;
}

static void free_entry(struct cluster_entry *taken)
{
    free(taken->held);
    *taken = (struct cluster_entry){0};
}

static const struct cluster_driver driver = {.version = CLUSTER_DRIVER_VERSION,
                                             .open = fake_open,
                                             .close = fake_close,
                                             .bucket_look = fake_look,
                                             .watch = fake_watch,
                                             .next = fake_next,
                                             .get_at = fake_get_at,
                                             .release = free_entry};

static int make_rows(void *ctx, const struct staged *records, const struct change_place *place,
                     unsigned *ret_conflicts, struct err *err)
{
    char id[RECORD_ID_SIZE];

    (void)ctx;
    (void)place;
    (void)ret_conflicts;
    (void)err;
    key_of(LACKING, id);
    for (size_t i = 0; i < records->n; i++)
        __atomic_add_fetch(&lacking, strcmp(records->list[i].key, id) == 0, __ATOMIC_RELEASE);
    return 0;
}

static void unended(void *ctx, const struct record *record)
{
    char id[RECORD_ID_SIZE];

    (void)ctx;
    key_of(OURS, id);
    assert_string_equal(record->id, id);
    __atomic_add_fetch(&lost, 1, __ATOMIC_RELEASE);
}

static void the_server_that_leads_is_asked_once_all_is_here(void **state)
{
    struct cluster_ledger ledger = records_ledger();
    struct cluster *c = node_begun(&driver, "");

    (void)state;
    cluster_sign_record(c, &ours);
    ledger.apply = make_rows;
    ledger.unended = unended;
    records_follow(c, &ledger);
    while (__atomic_load_n(&lacking, __ATOMIC_ACQUIRE) == 0 ||
           __atomic_load_n(&lost, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    cluster_destroy(c);
    /* Once a session, of which there is one. */
    assert_int_equal(lacking, 1);
    assert_int_equal(lost, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_that_leads_is_asked_once_all_is_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
