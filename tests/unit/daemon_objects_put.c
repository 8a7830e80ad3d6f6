/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is to send objects to the servers of a cluster, of which there are none here.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/objects.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CROWD 24u

/* How many came, are being put, and were at most. The crowd's are until the test says so. */
static atomic_uint came, at_work, most;
static atomic_bool is_let_go;
static int long_fd, short_fd;
static bool is_there = true; /* what is confirmed */
static atomic_uint put_times;

int __wrap_cluster_object_put(struct cluster *c, enum cluster_kept kept, const char *digest,
                              int fd, struct err *err);
int __wrap_cluster_object_put(struct cluster *c, enum cluster_kept kept, const char *digest,
                              int fd, struct err *err)
{
    unsigned now = atomic_fetch_add(&at_work, 1) + 1, seen = atomic_load(&most);

    (void)c;
    (void)kept;
    (void)fd;
    (void)err;
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    while (strcmp(digest, "crowd") == 0 && !atomic_load(&is_let_go))
        usleep(1000);
    atomic_fetch_add(&put_times, 1);
    atomic_fetch_sub(&at_work, 1);
    return 0;
}

int __wrap_cluster_object_confirm(struct cluster *c, const char *digest, int fd,
                                  struct err *err);
int __wrap_cluster_object_confirm(struct cluster *c, const char *digest, int fd,
                                  struct err *err)
{
    (void)c;
    (void)digest;
    (void)fd;
    (void)err;
    return is_there ? 0 : -ENOENT;
}

static int send_one(struct objects *o, const char *tenant, enum cluster_kept kept, int fd)
{
    const struct objects_put put = {
        .tenant = tenant, .kept = kept, .wait_ns = OBJECTS_WAIT_NS, .digest = tenant, .fd = fd};
    struct err err = {0};

    return objects_send(o, &put, &err);
}

static void *crowd_in(void *o)
{
    atomic_fetch_add(&came, 1);
    return send_one(o, "crowd", CLUSTER_OF_CHANGES, long_fd) < 0 ? o : NULL;
}

static int start(void **state)
{
    /* It is passed on and not looked at. */
    static char servers;
    const struct objects_env env = {0};
    struct objects *o = NULL;
    struct err err = {0};

    assert_int_equal(objects_create(&env, &o, &err), 0);
    objects_join(o, (struct cluster *)&servers);
    long_fd = memfd_create("long", MFD_CLOEXEC);
    short_fd = memfd_create("short", MFD_CLOEXEC);
    assert_int_equal(ftruncate(long_fd, CLUSTER_OBJECT_SHORT + 1), 0);
    assert_int_equal(ftruncate(short_fd, CLUSTER_OBJECT_SHORT), 0);
    atomic_store(&put_times, 0);
    *state = o;
    return 0;
}

static int stop(void **state)
{
    objects_join(*state, NULL);
    objects_destroy(*state);
    (void)close(long_fd);
    (void)close(short_fd);
    return 0;
}

/* A few at once, one place of them always for others, and other places for what takes a moment
   and for what executions leave. */
static void a_crowd_of_one_tenant_keeps_nobody_from_sending(void **state)
{
    struct objects *o = *state;
    const struct objects_put hasty = {
        .tenant = "crowd", .kept = CLUSTER_OF_CHANGES, .digest = "hasty", .fd = long_fd};
    struct err err = {0};
    pthread_t threads[CROWD];

    /* Where there is a place nobody has to wait. */
    assert_int_equal(objects_send(o, &hasty, &err), 0);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_in, o), 0);
    while (atomic_load(&came) < CROWD || atomic_load(&at_work) < 7)
        usleep(1000);
    assert_int_equal(send_one(o, "other", CLUSTER_OF_CHANGES, long_fd), 0);
    assert_int_equal(send_one(o, "other", CLUSTER_OF_CHANGES, short_fd), 0);
    assert_int_equal(send_one(o, "other", CLUSTER_OF_EXECUTIONS, long_fd), 0);
    assert_int_equal(atomic_load(&most), 8);
    /* Who has something else to do does not wait. */
    assert_int_equal(objects_send(o, &hasty, &err), -EAGAIN);
    atomic_store(&is_let_go, true);
    for (unsigned i = 0; i < CROWD; i++) {
        void *failed = o;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_true(atomic_load(&most) <= 8);
}

/* What somebody removed for want of the row. */
static void what_is_not_there_any_more_is_sent_again(void **state)
{
    struct objects *o = *state;
    const struct objects_put put = {
        .tenant = "a", .kept = CLUSTER_OF_CHANGES, .digest = "x", .fd = long_fd};
    struct err err = {0};

    assert_int_equal(objects_confirm(o, &put, &err), 0);
    assert_int_equal(atomic_load(&put_times), 0);
    is_there = false;
    assert_int_equal(objects_confirm(o, &put, &err), 0);
    assert_int_equal(atomic_load(&put_times), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_crowd_of_one_tenant_keeps_nobody_from_sending, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_is_not_there_any_more_is_sent_again, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
