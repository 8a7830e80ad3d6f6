/* SPDX-License-Identifier: Apache-2.0 */
/* How many questions to other nodes are at work, and whose, with a stand-in for the module. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/node_begun.h"

#include "api/daemon/cluster/cluster_internal.h"
#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CROWD (CLUSTER_LIVE_ASKED + 8u)
#define A     "ten_0123456789abcdef0123456789abcdef"
#define B     "ten_1123456789abcdef0123456789abcdef"
#define ID    "exec_0123456789abcdef0123456789abcdef"

struct cluster_link {
    char unused;
};

static struct cluster_link link_of_all;
static struct buf answer;
static atomic_uint at_work, waiting, refused; /* of the crowd */
static atomic_bool is_let_go;                 /* until then the crowd has no answer */

static enum cluster_fault fake_open(const struct cluster_access *access, const char *server,
                                    bool is_to_watch, struct cluster_link **ret,
                                    struct err *err)
{
    (void)access;
    (void)server;
    (void)is_to_watch;
    (void)ret;
    (void)err;
    return CLUSTER_UNREACHABLE;
}

static void fake_close(struct cluster_link *link)
{
    (void)link;
}

static enum cluster_fault fake_call(struct cluster_link *link, const char *subject,
                                    const char *data, size_t len, unsigned wait_ms,
                                    struct cluster_entry *ret, struct err *err)
{
    struct live_ask ask = {0};

    (void)wait_ms;
    (void)err;
    assert_ptr_equal(link, &link_of_all);
    assert_string_equal(subject, "skillvm.live.b");
    assert_int_equal(live_ask_parse(data, len, &ask), 0);
    if (!ask.is_of_row && strcmp(ask.tenant, A) == 0) {
        atomic_fetch_add(&waiting, ask.wait_ms > 0);
        atomic_fetch_add(&at_work, 1);
        while (!atomic_load(&is_let_go))
            usleep(1000);
    }
    *ret = (struct cluster_entry){.data = (const char *)answer.data, .len = answer.len};
    return CLUSTER_OK;
}

static void fake_release(struct cluster_entry *entry)
{
    *entry = (struct cluster_entry){0};
}

static const struct cluster_driver driver = {.version = CLUSTER_DRIVER_VERSION,
                                             .open = fake_open,
                                             .close = fake_close,
                                             .call = fake_call,
                                             .release = fake_release};

static void set_link(struct cluster *c, struct cluster_link *link)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->live.link = link;
}

static int start(void **state)
{
    const struct live_answer none = {.state = LIVE_NONE};

    answer = buf_init(LIVE_ANSWER_MAX);
    assert_int_equal(live_answer_write(&none, &answer), 0);
    *state = node_begun(&driver, "");
    set_link(*state, &link_of_all);
    return 0;
}

static int stop(void **state)
{
    set_link(*state, NULL);
    cluster_destroy(*state);
    buf_finish(&answer);
    return 0;
}

static int ask_for(struct cluster *c, const char *tenant, bool is_of_row)
{
    struct live_ask ask = {.id = ID, .is_of_row = is_of_row, .wait_ms = is_of_row ? 0 : 1000};
    struct live_copy copy = {0};
    struct err err = {0};
    int r;

    (void)snprintf(ask.tenant, sizeof(ask.tenant), "%s", tenant);
    r = cluster_ask_live(c, "b", &ask, &copy, &err);
    live_copy_finish(&copy);
    return r;
}

static void *crowd_in(void *c)
{
    if (ask_for(c, A, false) < 0)
        atomic_fetch_add(&refused, 1);
    return NULL;
}

/* It has half of the places, as many of them wait for news as may, and what is asked of rows is
   none of its questions. */
static void a_tenant_has_half_of_the_questions(void **state)
{
    struct cluster *c = *state;
    pthread_t threads[CROWD];

    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_in, c), 0);
    while (atomic_load(&at_work) + atomic_load(&refused) < CROWD)
        usleep(1000);
    assert_int_equal(ask_for(c, B, false), 0);
    assert_int_equal(ask_for(c, A, true), 0);
    assert_int_equal(ask_for(c, A, false), -EAGAIN);
    assert_int_equal(atomic_load(&at_work), CLUSTER_LIVE_ASKED / 2);
    assert_int_equal(atomic_load(&waiting), CLUSTER_LIVE_TENANT);
    atomic_store(&is_let_go, true);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(ask_for(c, A, false), 0);
    assert_int_equal(c->live.asked, 0);
    assert_int_equal(c->live.of_rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tenant_has_half_of_the_questions, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
