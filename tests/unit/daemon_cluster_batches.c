/* SPDX-License-Identifier: Apache-2.0 */
/* Executions of others that a node has to catch up on, more than it may hold at once, with a
   stand-in for the module. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/records_followed.h"

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/cluster/record_entry.h"
#include "api/daemon/cluster/staged.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each as large as one may be: together more than STAGED_BYTES_MAX. */
#define MANY 3400u
/* How long each is on its way, by the clock: together longer than a node may hear nothing. */
#define WAY_NS (3 * CLUSTER_LEASE_MS * NS_PER_MS / MANY)

static struct buf entry;
static unsigned given;              /* by the thread that follows alone */
static unsigned made, most, failed; /* atomic */
static uint64_t passed_ns; /* atomic: what the clock says beside the time that passes */

uint64_t __real_clock_monotonic_ns(void);
uint64_t __wrap_clock_monotonic_ns(void);
uint64_t __wrap_clock_monotonic_ns(void)
{
    return __real_clock_monotonic_ns() + __atomic_load_n(&passed_ns, __ATOMIC_RELAXED);
}

static enum cluster_fault fake_look(struct cluster_link *link, const char *name,
                                    struct cluster_bucket *ret, struct err *err)
{
    (void)link;
    (void)err;
    return records_look(name, MANY, ret);
}

static enum cluster_fault fake_watch(struct cluster_link *link, const char *name,
                                     uint64_t after, struct err *err)
{
    (void)link;
    (void)err;
    assert_string_equal(name, CLUSTER_RECORDS);
    /* A session that failed begins again from what it made. */
    __atomic_add_fetch(&failed, given > 0, __ATOMIC_RELAXED);
    given = (unsigned)after;
    return CLUSTER_OK;
}

static enum cluster_fault fake_next(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                                    struct cluster_entry *ret, struct err *err)
{
    (void)link;
    (void)wait_ms;
    (void)err;
    *ret_some = given < MANY;
    if (!*ret_some) {
        usleep(1000);
        return CLUSTER_OK;
    }
    given++;
    __atomic_add_fetch(&passed_ns, WAY_NS, __ATOMIC_RELAXED);
    *ret = (struct cluster_entry){.data = buf_cstr(&entry),
                                  .len = entry.len,
                                  .revision = given,
                                  .pending = MANY - given,
                                  .stored_ns = 1};
    snprintf(ret->key, sizeof(ret->key), "exec_%032x", given);
    return CLUSTER_OK;
}

/* Nothing else than came. */
static enum cluster_fault fake_get_at(struct cluster_link *link, const char *name,
                                      uint64_t revision, struct cluster_entry *ret,
                                      struct err *err)
{
    (void)link;
    (void)name;
    (void)revision;
    (void)ret;
    (void)err;
    return CLUSTER_NO_ENTRY;
}

static const struct cluster_driver driver = {.version = CLUSTER_DRIVER_VERSION,
                                             .open = fake_open,
                                             .close = fake_close,
                                             .bucket_look = fake_look,
                                             .watch = fake_watch,
                                             .next = fake_next,
                                             .get_at = fake_get_at,
                                             .release = fake_release};

static int make_rows(void *ctx, const struct staged *records, const struct change_place *place,
                     unsigned *ret_conflicts, struct err *err)
{
    (void)ctx;
    (void)place;
    (void)ret_conflicts;
    (void)err;
    for (size_t i = 0; i < records->n; i++) {
        const struct staged_entry *e = &records->list[i];

        assert_string_equal(e->record->id, e->key);
        assert_memory_equal(e->record->result, "{", 1);
        assert_in_range(e->record->result - e->data, 0, e->len - e->record->result_bytes);
    }
    if (records->n > most)
        __atomic_store_n(&most, (unsigned)records->n, __ATOMIC_RELAXED);
    __atomic_add_fetch(&made, (unsigned)records->n, __ATOMIC_RELEASE);
    return 0;
}

static void write_entry(void)
{
    static char result[RECORD_RESULT_MAX + 1];
    struct record record = {.accepted_ns = 1, .finished_ns = 2, .result = result};

    (void)strcpy(record.tenant, "default");
    (void)strcpy(record.node, "b");
    (void)strcpy(record.instance, "0123456789abcdef0123456789abcdef");
    (void)strcpy(record.skill_name, "demo");
    (void)strcpy(record.status, "success");
    snprintf(result, sizeof(result), "{\"a\":\"%*s\"}", (int)RECORD_RESULT_MAX - 8, "");
    record.result_bytes = strlen(result);
    assert_int_equal(record_entry_write(&record, &entry), 0);
    assert_true((uint64_t)entry.len * MANY > STAGED_BYTES_MAX);
}

/* What waits to become rows is bounded, nothing is left out for that, and who still gets some
 * is not cut off. */
static void more_than_may_wait_is_taken_bit_by_bit(void **state)
{
    struct cluster_ledger ledger = records_ledger();
    struct cluster *c;

    (void)state;
    write_entry();
    c = node_begun(&driver, "");
    ledger.apply = make_rows;
    records_follow(c, &ledger);
    while (__atomic_load_n(&made, __ATOMIC_ACQUIRE) < MANY &&
           __atomic_load_n(&failed, __ATOMIC_RELAXED) == 0)
        usleep(1000);
    cluster_destroy(c);
    buf_finish(&entry);
    assert_int_equal(failed, 0);
    assert_int_equal(made, MANY);
    assert_in_range(most, 2, STAGED_BATCH_BYTES / RECORD_RESULT_MAX + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_may_wait_is_taken_bit_by_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
