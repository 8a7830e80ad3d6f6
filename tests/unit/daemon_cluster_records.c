/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node makes of records that servers take from others, too, or do not confirm, with a
 * stand-in for the module.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/fake_links.h"
#include "tests/unit/node_begun.h"

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/cluster/record_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TENANT "ten_0123456789abcdef0123456789abcdef"
#define ID     "exec_0123456789abcdef0123456789abcdef"

/* The record that the servers have, and the one that another node writes behind the next. */
static struct buf there, behind;
static unsigned put;                /* how many were */
static enum cluster_fault put_said; /* of the next one, after it is stored */
static unsigned asked;              /* the other nodes, of what they know */
static unsigned known_from = -1u;   /* the question from which on they know it */

int __wrap_cluster_check_joined(struct cluster *c, struct err *err);
int __wrap_cluster_check_joined(struct cluster *c, struct err *err)
{
    (void)c;
    (void)err;
    return 0;
}

int __wrap_cluster_check_unknown(struct cluster *c, const char *tenant, const char *id,
                                 struct err *err);
int __wrap_cluster_check_unknown(struct cluster *c, const char *tenant, const char *id,
                                 struct err *err)
{
    (void)c;
    (void)err;
    assert_string_equal(tenant, TENANT);
    assert_string_equal(id, ID);
    return asked++ < known_from ? 0 : -EEXIST;
}

static enum cluster_fault fake_get(struct cluster_link *link, const char *name, const char *key,
                                   struct cluster_entry *ret, struct err *err)
{
    (void)link;
    (void)err;
    assert_string_equal(name, CLUSTER_RECORDS);
    assert_string_equal(key, ID);
    if (there.len == 0)
        return CLUSTER_NO_ENTRY;
    *ret = (struct cluster_entry){.data = buf_cstr(&there), .len = there.len, .revision = 2};
    return CLUSTER_OK;
}

static void store(struct buf *from)
{
    buf_finish(&there);
    there = *from;
    *from = (struct buf){0};
}

static enum cluster_fault fake_put(struct cluster_link *link, const char *name, const char *key,
                                   const char *data, size_t len, uint64_t last,
                                   uint64_t *ret_revision, struct err *err)
{
    struct buf text = buf_init(len);
    enum cluster_fault said = put_said;

    (void)link;
    assert_string_equal(name, CLUSTER_RECORDS);
    assert_string_equal(key, ID);
    assert_int_equal(last, there.len > 0 ? 2 : 0);
    put++;
    put_said = CLUSTER_OK;
    assert_int_equal(buf_append(&text, data, len), 0);
    store(behind.len > 0 ? &behind : &text);
    buf_finish(&text);
    *ret_revision = 2;
    if (said != CLUSTER_OK)
        (void)err_set(err, EIO, "as the test wants");
    return said;
}

static const struct cluster_driver driver = {.version = CLUSTER_DRIVER_VERSION,
                                             .open = fake_open_to_ask,
                                             .close = fake_close,
                                             .get = fake_get,
                                             .put = fake_put,
                                             .release = fake_release};

static int start(void **state)
{
    put = asked = 0;
    known_from = -1u;
    *state = node_begun(&driver, "");
    return 0;
}

static int stop(void **state)
{
    cluster_destroy(*state);
    buf_finish(&there);
    buf_finish(&behind);
    return 0;
}

/* One execution, as this node has it and as another one does. */
static void name_records(struct cluster *c, struct record *ours, struct record *theirs)
{
    (void)strcpy(ours->id, ID);
    (void)strcpy(ours->tenant, TENANT);
    cluster_sign_record(c, ours);
    *theirs = *ours;
    (void)strcpy(theirs->node, "b");
}

static void name_key(struct record *ours)
{
    (void)strcpy(ours->idempotency_key, "k");
    memset(ours->request_digest, 'a', sizeof(ours->request_digest) - 1);
}

static int accept_anew(struct cluster *c, const struct record *ours)
{
    struct err err = {0};

    buf_finish(&there);
    return cluster_record_accept(c, ours, true, &err);
}

/* Servers may confirm two that came at once: who is not the last has not begun it. */
static void the_last_one_of_a_key_begins_it(void **state)
{
    struct cluster *c = *state;
    struct record ours = {.accepted_ns = 1}, theirs;

    name_records(c, &ours, &theirs);
    assert_int_equal(record_entry_write(&theirs, &behind), 0);
    assert_int_equal(accept_anew(c, &ours), 0);
    assert_int_equal(asked, 0);
    name_key(&ours);
    assert_int_equal(record_entry_write(&theirs, &behind), 0);
    assert_int_equal(accept_anew(c, &ours), -EEXIST);
    assert_int_equal(accept_anew(c, &ours), 0);
    assert_int_equal(asked, 2);
}

/* Other nodes may have heard of what was stored, and not confirmed. */
static void what_others_know_may_be_this_one(void **state)
{
    struct cluster *c = *state;
    struct record ours = {.accepted_ns = 1}, theirs;

    name_records(c, &ours, &theirs);
    name_key(&ours);
    known_from = 1;
    put_said = CLUSTER_NO_QUORUM;
    assert_int_equal(accept_anew(c, &ours), 0);
    assert_int_equal(asked, 2);
    assert_int_equal(put, 1);
    /* Another node's, and another one of this node's. */
    asked = 0;
    put_said = CLUSTER_NO_QUORUM;
    assert_int_equal(record_entry_write(&theirs, &behind), 0);
    assert_int_equal(accept_anew(c, &ours), -EALREADY);
    theirs = ours;
    theirs.accepted_ns = 2;
    asked = 0;
    put_said = CLUSTER_NO_QUORUM;
    assert_int_equal(record_entry_write(&theirs, &behind), 0);
    assert_int_equal(accept_anew(c, &ours), -EALREADY);
}

/* The same of what is taken over as it begins; and a wish is written over what forgot it. */
static void what_is_taken_over_as_it_begins_is_not_begun(void **state)
{
    struct cluster *c = *state;
    struct record ours = {
        .accepted_ns = 1, .waits = true, .request = "\"{}\"", .request_bytes = 4};
    struct record_copy left = {0};
    struct record theirs;
    struct err err = {0};

    name_records(c, &ours, &theirs);
    assert_int_equal(record_entry_write(&ours, &there), 0);
    assert_int_equal(record_entry_write(&theirs, &behind), 0);
    assert_int_equal(cluster_record_begin(c, &ours, &left, &err), -EEXIST);
    assert_string_equal(left.record.node, "b");
    record_copy_finish(&left);
    put = 0;
    assert_int_equal(record_entry_write(&theirs, &behind), 0);
    assert_int_equal(cluster_record_cancel(c, ours.id, &err), 0);
    assert_int_equal(put, 2);
    assert_int_equal(cluster_record_read(c, ours.id, &left, &err), 0);
    assert_true(left.record.is_cancelled);
    record_copy_finish(&left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_one_of_a_key_begins_it, start, stop),
        cmocka_unit_test_setup_teardown(what_others_know_may_be_this_one, start, stop),
        cmocka_unit_test_setup_teardown(what_is_taken_over_as_it_begins_is_not_begun, start,
                                        stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
