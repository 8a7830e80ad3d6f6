/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's states with a stand-in for the module: a bucket in memory whose clock and faults are
 * the test's. What real servers do is in tests/daemon/daemon_cluster*.c.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/node_begun.h"

#include "api/daemon/cluster/cluster.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    bool has_entry;
    char data[NODE_ENTRY_BYTES_MAX];
    size_t len;
    uint64_t revision;            /* of the entry */
    uint64_t next;                /* revision */
    uint64_t told;                /* that the watch gave */
    int64_t clock_ns;             /* that the server's is behind ours */
    enum cluster_fault put_fault; /* of the next one, after it is stored */
    unsigned opened;
    bool is_deaf; /* the watch gives nothing */
} bucket = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define BUCKET_ID "0123456789abcdef0123456789abcdef"
#define TENANT    "ten_0123456789abcdef0123456789abcdef"

/* The bucket of changes, with one that a node may write, and the rows that are made of it. */
static struct {
    char data[CHANGE_ENTRY_BYTES_MAX];
    size_t len;
    uint64_t revision;            /* 1: of the entry that begins it */
    uint64_t told;                /* under the lock of the other one, as all here */
    enum cluster_fault put_fault; /* what writing is answered with, after it is stored */
    bool is_endless;              /* there is one more at each look */
    struct change row;
} changes = {.revision = 1};

struct cluster_link {
    bool is_changes; /* what is watched */
};

static enum cluster_fault fake_open(const struct cluster_access *access, const char *server,
                                    bool is_to_watch, struct cluster_link **ret,
                                    struct err *err)
{
    (void)access;
    (void)server;
    (void)is_to_watch;
    (void)err;
    (void)pthread_mutex_lock(&bucket.lock);
    bucket.opened++;
    bucket.told = 0;
    (void)pthread_mutex_unlock(&bucket.lock);
    *ret = calloc(1, sizeof(**ret));
    return CLUSTER_OK;
}

static void fake_close(struct cluster_link *link)
{
    free(link);
}

static enum cluster_fault fake_look(struct cluster_link *link, const char *name,
                                    struct cluster_bucket *ret, struct err *err)
{
    (void)link;
    (void)err;
    ret->replicas = 1;
    (void)pthread_mutex_lock(&bucket.lock);
    changes.revision += changes.is_endless && strcmp(name, CLUSTER_CHANGES) == 0;
    ret->last_revision = changes.revision;
    (void)pthread_mutex_unlock(&bucket.lock);
    return CLUSTER_OK;
}

static enum cluster_fault fake_make(struct cluster_link *link,
                                    const struct cluster_bucket *made, struct err *err)
{
    (void)link;
    (void)made;
    (void)err;
    return CLUSTER_OK;
}

/* With the lock held. */
static void fill(struct cluster_entry *ret)
{
    char *copy = malloc(bucket.len);

    assert_non_null(copy);
    memcpy(copy, bucket.data, bucket.len);
    *ret = (struct cluster_entry){
        .key = "a",
        .data = copy,
        .len = bucket.len,
        .revision = bucket.revision,
        .stored_ns = (uint64_t)((int64_t)clock_realtime_ns() - bucket.clock_ns),
        .held = copy};
}

static enum cluster_fault fake_get(struct cluster_link *link, const char *name, const char *key,
                                   struct cluster_entry *ret, struct err *err)
{
    (void)link;
    if (strcmp(name, CLUSTER_CHANGES) == 0) {
        char *copy = strdup("{\"schema\":1,\"bucket\":\"" BUCKET_ID "\"}");

        assert_non_null(copy);
        *ret = (struct cluster_entry){.data = copy, .len = strlen(copy), .held = copy};
        return CLUSTER_OK;
    }
    assert_string_equal(key, "a");
    (void)pthread_mutex_lock(&bucket.lock);
    bool has = bucket.has_entry;
    if (has)
        fill(ret);
    (void)pthread_mutex_unlock(&bucket.lock);
    if (!has)
        (void)err_set(err, ENOENT, "none");
    return has ? CLUSTER_OK : CLUSTER_NO_ENTRY;
}

static enum cluster_fault fake_put(struct cluster_link *link, const char *name, const char *key,
                                   const char *data, size_t len, uint64_t last,
                                   uint64_t *ret_revision, struct err *err)
{
    enum cluster_fault fault = CLUSTER_CONFLICT;

    (void)link;
    (void)name;
    (void)key;
    (void)pthread_mutex_lock(&bucket.lock);
    if (last == (bucket.has_entry ? bucket.revision : 0)) {
        bucket.has_entry = data != NULL;
        if (data)
            memcpy(bucket.data, data, len);
        bucket.len = len;
        bucket.revision = ++bucket.next;
        fault = bucket.put_fault;
        bucket.put_fault = CLUSTER_OK;
    }
    if (fault == CLUSTER_OK && ret_revision)
        *ret_revision = bucket.revision;
    (void)pthread_mutex_unlock(&bucket.lock);
    if (fault != CLUSTER_OK)
        (void)err_set(err, EIO, "as the test wants");
    return fault;
}

static enum cluster_fault fake_watch(struct cluster_link *link, const char *name,
                                     uint64_t after, struct err *err)
{
    link->is_changes = strcmp(name, CLUSTER_CHANGES) == 0;
    (void)after;
    (void)err;
    return CLUSTER_OK;
}

static enum cluster_fault fake_put_next(struct cluster_link *link, const char *name,
                                        const char *key, const char *data, size_t len,
                                        uint64_t last, uint64_t *ret_revision, struct err *err)
{
    enum cluster_fault fault;

    (void)link;
    assert_string_equal(name, CLUSTER_CHANGES);
    assert_string_equal(key, "tenant." TENANT);
    (void)pthread_mutex_lock(&bucket.lock);
    assert_int_equal(last, changes.revision);
    memcpy(changes.data, data, len);
    changes.len = len;
    *ret_revision = ++changes.revision;
    fault = changes.put_fault;
    (void)pthread_mutex_unlock(&bucket.lock);
    if (fault != CLUSTER_OK)
        (void)err_set(err, EIO, "as the test wants");
    return fault;
}

/* What begins it, and then the change. */
static bool next_change(struct cluster_entry *ret)
{
    bool some;

    (void)pthread_mutex_lock(&bucket.lock);
    some = changes.told < changes.revision;
    if (some) {
        bool is_first = changes.told == 0;
        const char *begin = "{\"schema\":1,\"bucket\":\"" BUCKET_ID "\"}";
        size_t len = is_first ? strlen(begin) : changes.len;
        char *copy = malloc(len);

        assert_non_null(copy);
        memcpy(copy, is_first ? begin : changes.data, len);
        changes.told++;
        *ret = (struct cluster_entry){
            .data = copy, .len = len, .revision = changes.told, .held = copy};
        (void)strcpy(ret->key, is_first ? CHANGE_BEGIN_KEY : "tenant." TENANT);
    }
    (void)pthread_mutex_unlock(&bucket.lock);
    return some;
}

static enum cluster_fault fake_next(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                                    struct cluster_entry *ret, struct err *err)
{
    (void)err;
    (void)wait_ms;
    if (link->is_changes) {
        *ret_some = next_change(ret);
        if (!*ret_some)
            usleep(1000);
        return CLUSTER_OK;
    }
    (void)pthread_mutex_lock(&bucket.lock);
    *ret_some = bucket.has_entry && bucket.told != bucket.revision && !bucket.is_deaf;
    if (*ret_some) {
        fill(ret);
        bucket.told = bucket.revision;
    }
    (void)pthread_mutex_unlock(&bucket.lock);
    if (!*ret_some)
        usleep(1000);
    return CLUSTER_OK;
}

static void fake_release(struct cluster_entry *entry)
{
    free(entry->held);
    *entry = (struct cluster_entry){0};
}

static const struct cluster_driver driver = {
    .version = CLUSTER_DRIVER_VERSION,
    .open = fake_open,
    .close = fake_close,
    .bucket_look = fake_look,
    .bucket_make = fake_make,
    .get = fake_get,
    .put = fake_put,
    .put_next = fake_put_next,
    .watch = fake_watch,
    .next = fake_next,
    .release = fake_release,
    .objects_look = fake_look,
};

static struct cluster *start(void)
{
    bucket.has_entry = false;
    bucket.put_fault = CLUSTER_OK;
    bucket.clock_ns = 0;
    bucket.is_deaf = false;
    bucket.opened = 0;
    return node_begun(&driver, "rack=a7");
}

/* Waits until it is cut off for this reason; NULL: until it is joined. */
static void wait_state(struct cluster *c, const char *reason)
{
    struct cluster_status status = {0};

    for (unsigned i = 0; i < 12000; i++) {
        cluster_look(c, &status);
        if (reason ? status.reason && strcmp(status.reason, reason) == 0
                   : status.state == CLUSTER_JOINED)
            return;
        usleep(5000);
    }
    fail_msg("never %s, but %s: %s", reason ? reason : "joined",
             status.reason ? status.reason : "-", status.message);
}

static void set_clock(int64_t off_ns)
{
    (void)pthread_mutex_lock(&bucket.lock);
    bucket.clock_ns = off_ns;
    (void)pthread_mutex_unlock(&bucket.lock);
}

/* What the node says of itself now. */
static bool says(const char *state)
{
    char part[64];

    snprintf(part, sizeof(part), "\"state\":\"%s\"", state);
    (void)pthread_mutex_lock(&bucket.lock);
    bool has = bucket.has_entry && memmem(bucket.data, bucket.len, part, strlen(part)) != NULL;
    (void)pthread_mutex_unlock(&bucket.lock);
    return has;
}

static void wait_says(const char *state)
{
    for (unsigned i = 0; i < 12000; i++) {
        if (says(state))
            return;
        usleep(5000);
    }
    fail_msg("it never says %s", state);
}

static void a_clock_that_is_off_keeps_a_node_out(void **state)
{
    struct cluster *c = start();
    struct cluster_status status;

    (void)state;
    wait_state(c, NULL);
    wait_says("joined");
    set_clock(3600 * (int64_t)NS_PER_SECOND);
    wait_state(c, "clock");
    cluster_look(c, &status);
    assert_non_null(strstr(status.message, "3600 s ahead of"));
    wait_says("clock");
    set_clock(-60 * (int64_t)NS_PER_SECOND);
    for (unsigned i = 0; i < 12000 && !strstr(status.message, "60 s behind"); i++) {
        usleep(5000);
        cluster_look(c, &status);
    }
    assert_non_null(strstr(status.message, "60 s behind"));
    set_clock(0);
    wait_state(c, NULL);
    wait_says("joined");
    cluster_destroy(c);
    /* Who ends takes its entry along. */
    assert_false(bucket.has_entry);
}

/* An answer that got lost is no other node, and no reason to leave. */
static void a_lost_answer_is_nothing(void **state)
{
    struct cluster *c = start();
    uint64_t revision;

    (void)state;
    wait_state(c, NULL);
    (void)pthread_mutex_lock(&bucket.lock);
    bucket.put_fault = CLUSTER_NO_QUORUM;
    revision = bucket.revision;
    (void)pthread_mutex_unlock(&bucket.lock);
    for (unsigned i = 0; i < 12000; i++) {
        struct cluster_status status;
        bool done;

        (void)pthread_mutex_lock(&bucket.lock);
        done = bucket.revision >= revision + 2;
        (void)pthread_mutex_unlock(&bucket.lock);
        cluster_look(c, &status);
        assert_int_equal(status.state, CLUSTER_JOINED);
        if (done)
            break;
        usleep(5000);
    }
    assert_true(bucket.revision >= revision + 2);
    assert_int_equal(bucket.opened, 1);
    cluster_destroy(c);
}

/* Until there were so many connections. */
static void wait_opened(unsigned n)
{
    unsigned opened = 0;

    for (unsigned i = 0; i < 12000 && opened < n; i++) {
        usleep(5000);
        (void)pthread_mutex_lock(&bucket.lock);
        opened = bucket.opened;
        (void)pthread_mutex_unlock(&bucket.lock);
    }
    assert_true(opened >= n);
}

/* A watch that dies without a word is noticed by what does not come back. */
static void a_deaf_watch_is_begun_anew(void **state)
{
    struct cluster *c = start();
    unsigned opened;

    (void)state;
    wait_state(c, NULL);
    (void)pthread_mutex_lock(&bucket.lock);
    bucket.is_deaf = true;
    opened = bucket.opened;
    (void)pthread_mutex_unlock(&bucket.lock);
    wait_state(c, "no_quorum");
    wait_opened(opened + 1);
    (void)pthread_mutex_lock(&bucket.lock);
    bucket.is_deaf = false;
    (void)pthread_mutex_unlock(&bucket.lock);
    wait_state(c, NULL);
    cluster_destroy(c);
}

static int no_place(void *ctx, struct change_place *ret, struct err *err)
{
    (void)ctx;
    (void)ret;
    (void)err;
    return 0;
}

static int make_rows(void *ctx, const struct staged *staged, bool is_whole,
                     const struct change_place *place, unsigned *ret_conflicts, struct err *err)
{
    (void)ctx;
    (void)is_whole;
    (void)place;
    (void)ret_conflicts;
    (void)err;
    (void)pthread_mutex_lock(&bucket.lock);
    for (size_t i = 0; i < staged->n; i++)
        assert_int_equal(staged_read(staged, i, &changes.row), 0);
    (void)pthread_mutex_unlock(&bucket.lock);
    return 0;
}

static void no_note(void *ctx, const struct change_place *place)
{
    (void)ctx;
    (void)place;
}

static int one_row(void *ctx, enum change_kind kind, const char *id, struct change *ret,
                   struct err *err)
{
    (void)ctx;
    (void)kind;
    (void)id;
    (void)err;
    (void)pthread_mutex_lock(&bucket.lock);
    *ret = changes.row;
    (void)pthread_mutex_unlock(&bucket.lock);
    return ret->id[0] ? 0 : -ENOENT;
}

static int plan_tenant(void *ctx, struct change *ret, struct err *err)
{
    (void)ctx;
    (void)err;
    *ret = (struct change){
        .kind = CHANGE_TENANT,
        .id = TENANT,
        .tenant = {.name = "acme", .created_ns = 1, .limits = tenant_limits_default()}};
    return 0;
}

/* A change whose confirmation is lost is made where it comes back, and then that is said. */
static void a_lost_confirmation_is_looked_for(void **state)
{
    const struct cluster_replica replica = {
        .look = no_place, .apply = make_rows, .note = no_note, .row = one_row};
    struct cluster *c = start();
    struct err err = {0};

    (void)state;
    assert_int_equal(cluster_follow(c, &replica, 60000, &err), 0);
    wait_state(c, NULL);
    (void)pthread_mutex_lock(&bucket.lock);
    changes.put_fault = CLUSTER_NO_QUORUM;
    (void)pthread_mutex_unlock(&bucket.lock);
    if (cluster_change(c, plan_tenant, NULL, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(changes.row.tenant.name, "acme");
    assert_true(cluster_takes_keys(c));
    cluster_destroy(c);
}

/* There is always something that is not here yet: all that there was at a look is enough. */
static void others_that_never_stop_writing_keep_nobody_out(void **state)
{
    const struct cluster_replica replica = {
        .look = no_place, .apply = make_rows, .note = no_note, .row = one_row};
    struct cluster *c = start();
    struct err err = {0};

    (void)state;
    (void)pthread_mutex_lock(&bucket.lock);
    changes.told = 0;
    changes.is_endless = true;
    (void)pthread_mutex_unlock(&bucket.lock);
    assert_int_equal(cluster_follow(c, &replica, 60000, &err), 0);
    wait_state(c, NULL);
    assert_true(cluster_takes_keys(c));
    cluster_destroy(c);
    changes.is_endless = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_is_off_keeps_a_node_out),
        cmocka_unit_test(a_lost_answer_is_nothing),
        cmocka_unit_test(a_deaf_watch_is_begun_anew),
        cmocka_unit_test(a_lost_confirmation_is_looked_for),
        cmocka_unit_test(others_that_never_stop_writing_keep_nobody_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
