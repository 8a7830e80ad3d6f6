/* SPDX-License-Identifier: Apache-2.0 */
/* Whose change is made next, with real threads and a stand-in for the cluster. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/changes.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define CROWD  24u
#define ROUNDS 10u

static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER; /* one after the other, as there */
static atomic_uint came;                                   /* how many of the crowd */
static atomic_uint waiting, most; /* for the one before, or at work; of tenants */
static atomic_bool is_let_go;     /* until then none is made that is a tenant's */
static atomic_uint passed;

struct client {
    struct changes *changes;
    const char *tenant; /* NULL: the operator */
    unsigned rounds;
    unsigned before; /* how many had passed before it came, */
    unsigned after;  /* and when its rounds were over */
    pthread_t thread;
};

int __wrap_cluster_follow(struct cluster *c, const struct cluster_replica *replica,
                          uint64_t keys_timeout_ms, struct err *err);
int __wrap_cluster_follow(struct cluster *c, const struct cluster_replica *replica,
                          uint64_t keys_timeout_ms, struct err *err)
{
    (void)c;
    (void)replica;
    (void)keys_timeout_ms;
    (void)err;
    return 0;
}

static void make_next(void)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&writer);

    usleep(1000);
}

/* A plan of a test knows its client. */
static int plan(void *ctx, struct change *ret, struct err *err)
{
    const struct client *client = ctx;
    unsigned now, seen;

    (void)ret;
    (void)err;
    if (!client->tenant) {
        make_next();
        return -1;
    }
    now = atomic_fetch_add(&waiting, 1) + 1;
    seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    while (!atomic_load(&is_let_go))
        usleep(1000);
    make_next();
    atomic_fetch_sub(&waiting, 1);
    return -1;
}

int __wrap_cluster_change(struct cluster *c, change_plan *checked, void *ctx, struct err *err);
int __wrap_cluster_change(struct cluster *c, change_plan *checked, void *ctx, struct err *err)
{
    struct change unused;

    (void)c;
    (void)checked(ctx, &unused, err);
    return 0;
}

static void *go_through(void *arg)
{
    struct client *client = arg;
    void *failed = NULL;

    client->before = atomic_load(&passed);
    atomic_fetch_add(&came, 1);
    for (unsigned i = 0; i < client->rounds; i++) {
        struct err err = {0};

        if (changes_make(client->changes, client->tenant, plan, client, &err) < 0)
            failed = arg;
        client->after = atomic_fetch_add(&passed, 1) + 1;
    }
    return failed;
}

static void begin(struct client *client, struct changes *changes, const char *tenant,
                  unsigned rounds)
{
    *client = (struct client){.changes = changes, .tenant = tenant, .rounds = rounds};
    assert_int_equal(pthread_create(&client->thread, NULL, go_through, client), 0);
}

static void join(struct client *client)
{
    void *failed = client;

    assert_int_equal(pthread_join(client->thread, &failed), 0);
    assert_null(failed);
}

static int start(void **state)
{
    /* It is passed on and not looked at. */
    static char servers;
    const struct changes_env env = {.cluster = (struct cluster *)&servers};
    struct changes *changes = NULL;
    struct err err = {0};

    assert_int_equal(changes_create(&env, &changes, &err), 0);
    atomic_store(&came, 0);
    atomic_store(&most, 0);
    atomic_store(&passed, 0);
    *state = changes;
    return 0;
}

static int stop(void **state)
{
    changes_destroy(*state);
    return 0;
}

/* Of tenants' changes one is on its way, and what the operator wants waits for no other. */
static void a_crowd_does_not_stand_before_the_operator(void **state)
{
    struct client crowd[CROWD], chief;

    atomic_store(&is_let_go, false);
    for (unsigned i = 0; i < CROWD; i++)
        begin(&crowd[i], *state, i % 2 ? "crowd" : CHANGES_OF_DAEMON, 1);
    while (atomic_load(&came) < CROWD || atomic_load(&waiting) == 0)
        usleep(1000);
    begin(&chief, *state, NULL, 1);
    join(&chief);
    assert_int_equal(chief.after, 1);
    atomic_store(&is_let_go, true);
    for (unsigned i = 0; i < CROWD; i++)
        join(&crowd[i]);
    assert_int_equal(atomic_load(&most), 1);
}

static void a_crowd_of_one_tenant_keeps_nobody_from_changes(void **state)
{
    struct client crowd[CROWD], other;

    atomic_store(&is_let_go, true);
    for (unsigned i = 0; i < CROWD; i++)
        begin(&crowd[i], *state, "crowd", ROUNDS);
    while (atomic_load(&passed) == 0)
        usleep(1000);
    begin(&other, *state, "other", ROUNDS);
    join(&other);
    /* About every second turn was its own, from when it came on. */
    assert_true(other.after - other.before < CROWD * ROUNDS / 2);
    for (unsigned i = 0; i < CROWD; i++)
        join(&crowd[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_crowd_does_not_stand_before_the_operator, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_crowd_of_one_tenant_keeps_nobody_from_changes, start,
                                        stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
