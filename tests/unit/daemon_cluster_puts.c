/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are put while others need the servers, with a stand-in for the module. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/fake_links.h"
#include "tests/unit/node_begun.h"

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/cluster/object_meta.h"
#include "base/fd.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More than there are connections that all share. */
#define MANY 40u

/* The chunks of large ones are confirmed when the test says so. */
static bool is_let_go;
static unsigned arrived; /* at that; both atomic */
/* What the bucket says of the one object that some of it is said of. */
static char said[OBJECT_META_BYTES_MAX];
static size_t said_len;
static unsigned said_times;

int __wrap_cluster_check_joined(struct cluster *c, struct err *err);
int __wrap_cluster_check_joined(struct cluster *c, struct err *err)
{
    (void)c;
    (void)err;
    return 0;
}

static enum cluster_fault fake_look(struct cluster_link *link, const char *name,
                                    struct cluster_bucket *ret, struct err *err)
{
    (void)link;
    (void)err;
    assert_string_equal(name, CLUSTER_OBJECTS);
    ret->replicas = 1;
    return CLUSTER_OK;
}

static enum cluster_fault fake_object_get(struct cluster_link *link, const char *bucket,
                                          const char *key, struct cluster_entry *ret,
                                          struct err *err)
{
    (void)link;
    (void)bucket;
    (void)key;
    (void)err;
    if (said_len == 0)
        return CLUSTER_NO_ENTRY;
    *ret = (struct cluster_entry){.data = said, .len = said_len, .revision = 1};
    return CLUSTER_OK;
}

static enum cluster_fault fake_object_put(struct cluster_link *link, const char *bucket,
                                          const char *key, const char *data, size_t len,
                                          uint64_t last, uint64_t *ret_revision,
                                          struct err *err)
{
    (void)link;
    (void)bucket;
    (void)key;
    (void)data;
    (void)len;
    (void)last;
    (void)ret_revision;
    (void)err;
    __atomic_add_fetch(&said_times, 1, __ATOMIC_RELAXED);
    return CLUSTER_OK;
}

static enum cluster_fault fake_send(struct cluster_link *link, const char *bucket,
                                    const char *key, const void *data, size_t len,
                                    struct err *err)
{
    (void)bucket;
    (void)key;
    (void)data;
    (void)err;
    link->is_large |= len == OBJECT_CHUNK_BYTES;
    return CLUSTER_OK;
}

static enum cluster_fault fake_confirm(struct cluster_link *link, unsigned *ret_left,
                                       struct err *err)
{
    (void)err;
    if (link->is_large)
        __atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED);
    while (link->is_large && !__atomic_load_n(&is_let_go, __ATOMIC_ACQUIRE))
        usleep(1000);
    *ret_left = 0;
    return CLUSTER_OK;
}

static const struct cluster_driver driver = {.version = CLUSTER_DRIVER_VERSION,
                                             .open = fake_open_to_ask,
                                             .close = fake_close,
                                             .objects_look = fake_look,
                                             .object_get = fake_object_get,
                                             .object_put = fake_object_put,
                                             .chunk_send = fake_send,
                                             .chunk_confirm = fake_confirm,
                                             .release = fake_release};

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A file of so many bytes. The caller's. */
static int file_of(off_t size)
{
    int fd = memfd_create("object", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    return fd;
}

static int put(struct cluster *c, off_t size)
{
    _cleanup_fd_ int fd = file_of(size);
    struct err err = {0};

    return cluster_object_put(c, CLUSTER_OF_CHANGES, DIGEST, fd, &err);
}

static void *put_large(void *c)
{
    return put(c, CLUSTER_OBJECT_SHORT + 1) < 0 ? c : NULL;
}

static int start(void **state)
{
    said_len = 0;
    said_times = 0;
    *state = node_begun(&driver, "");
    return 0;
}

static int stop(void **state)
{
    cluster_destroy(*state);
    return 0;
}

/* However many are on their way, each as slow as it likes. */
static void large_ones_leave_the_connections_to_others(void **state)
{
    struct cluster *c = *state;
    pthread_t threads[MANY];

    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_large, c), 0);
    /* As many as without connections of their own there would be at most. */
    while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < 32)
        usleep(1000);
    assert_int_equal(put(c, CLUSTER_OBJECT_SHORT - 1), 0);
    __atomic_store_n(&is_let_go, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < MANY; i++) {
        void *failed = c;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* What is there is said of anew; what is not there is not put here. */
static void what_a_row_names_is_said_to_be_there(void **state)
{
    struct cluster *c = *state;
    const struct object_meta there = {
        .digest = DIGEST, .chunks_under = "abc", .size = CLUSTER_OBJECT_SHORT + 1, .chunks = 2};
    _cleanup_fd_ int fd = file_of(CLUSTER_OBJECT_SHORT + 1), other = file_of(1);
    _cleanup_buf_ struct buf text = {0};
    struct err err = {0};

    assert_int_equal(cluster_object_confirm(c, DIGEST, fd, &err), -ENOENT);
    assert_int_equal(object_meta_write(&there, CLUSTER_OBJECTS, &text), 0);
    memcpy(said, text.data, text.len);
    said_len = text.len;
    assert_int_equal(cluster_object_confirm(c, DIGEST, other, &err), -ENOENT);
    assert_int_equal(said_times, 0);
    assert_int_equal(cluster_object_confirm(c, DIGEST, fd, &err), 0);
    assert_int_equal(said_times, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_ones_leave_the_connections_to_others, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_a_row_names_is_said_to_be_there, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
