/* SPDX-License-Identifier: Apache-2.0 */
/* Links of the cluster's driver to one real nats-server, without a daemon. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/driver_load.h"
#include "tests/daemon/nats_world.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <nats/nats.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUCKET "links"
#define LINKS  200u
#define CALLS  200u
#define MANY   60000u
/* More than a link has room for. */
#define LARGE      65536
#define LARGE_MANY 1600u
/* For 10 s, behind which the answer to a ping is. */
#define SLOW_PIECE    16384
#define SLOW_PAUSE_US 100000u
#define SLOW_MANY     25u

struct flood {
    natsConnection *connection;
    bool is_over;
};

/* What becomes of a driver's request to watch: another one that sees what it is sent knows when
   an answer is late. */
static bool is_lost;
static natsSubscription *answer_is_behind;

/* The next one that is sent there. The caller's. */
static natsMsg *next_message(natsSubscription *inboxes, uint64_t until_ns)
{
    natsMsg *message = NULL;

    while (natsSubscription_NextMsg(&message, inboxes, 1000) != NATS_OK)
        assert_true(clock_monotonic_ns() < until_ns);
    return message;
}

static void wait_entry(natsSubscription *inboxes)
{
    const uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    bool found = false;

    while (!found) {
        natsMsg *message = next_message(inboxes, until_ns);

        found = strncmp(natsMsg_GetSubject(message), "$KV.", 4) == 0;
        natsMsg_Destroy(message);
    }
}

/* In the place of libnats's, for the driver too. */
natsStatus js_AddConsumer(jsConsumerInfo **ret, jsCtx *stream, const char *name,
                          jsConsumerConfig *config, jsOptions *options, jsErrCode *code)
{
    __typeof__(&js_AddConsumer) add =
        (__typeof__(&js_AddConsumer))dlsym(RTLD_NEXT, "js_AddConsumer");
    jsStreamInfo *info = NULL;
    natsStatus s;

    if (is_lost)
        return NATS_TIMEOUT;
    s = add(ret, stream, name, config, options, code);
    if (!answer_is_behind || s != NATS_OK)
        return s;
    wait_entry(answer_is_behind);
    /* What is answered now comes behind that entry. */
    assert_int_equal(js_GetStreamInfo(&info, stream, name, NULL, NULL), NATS_OK);
    jsStreamInfo_Destroy(info);
    return NATS_TIMEOUT;
}

/* Entries of the bucket, one after the other, to whoever watches. */
static void *flood_run(void *context)
{
    struct flood *f = context;

    while (!__atomic_load_n(&f->is_over, __ATOMIC_RELAXED)) {
        for (unsigned i = 0; i < 100; i++)
            (void)natsConnection_PublishString(f->connection, "$KV." BUCKET ".key", "value");
        (void)natsConnection_FlushTimeout(f->connection, 1000);
    }
    return NULL;
}

static const struct cluster_access access_of_nobody = {
    .name = "test", .credentials = "", .tls_ca = "", .tls_cert = "", .tls_key = ""};

static struct cluster_link *open_link(const struct cluster_driver *driver, const char *url)
{
    struct cluster_link *link = NULL;
    struct err err = {0};

    if (driver->open(&access_of_nobody, url, true, &link, &err) != CLUSTER_OK)
        fail_msg("%s", err.message);
    return link;
}

/* A link that watches the bucket behind this revision; another one where a server that has much
   to look through did not answer in time. */
static struct cluster_link *open_watch(const struct cluster_driver *driver, const char *url,
                                       uint64_t after)
{
    const uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    struct err err = {0};

    for (;;) {
        struct cluster_link *link = NULL;

        if (driver->open(&access_of_nobody, url, true, &link, &err) == CLUSTER_OK &&
            driver->watch(link, BUCKET, after, &err) == CLUSTER_OK)
            return link;
        driver->close(link);
        if (clock_monotonic_ns() > until_ns)
            fail_msg("%s", err.message);
    }
}

/* A server with this bucket, and a link to it. */
static struct cluster_link *begin(struct nats_world *w, const struct cluster_bucket *bucket,
                                  const struct cluster_driver **ret_driver, char *ret_url,
                                  size_t size)
{
    struct cluster_link *link;
    struct err err = {0};

    nats_begin(w, 1);
    (void)nats_urls(w, ret_url, size);
    assert_int_equal(driver_load(ret_driver, &err), 0);
    link = open_link(*ret_driver, ret_url);
    assert_int_equal((*ret_driver)->bucket_make(link, bucket, &err), CLUSTER_OK);
    return link;
}

/* The same with a bucket of little. */
static struct cluster_link *begin_small(struct nats_world *w,
                                        const struct cluster_driver **ret_driver, char *ret_url,
                                        size_t size)
{
    struct cluster_bucket bucket = {
        .name = BUCKET, .replicas = 1, .max_bytes = 1 << 20, .max_value_bytes = 100};

    return begin(w, &bucket, ret_driver, ret_url, size);
}

/* Another one that sees what all links are sent. Both are the caller's. */
static natsSubscription *open_inboxes(const struct nats_world *w,
                                      natsConnection **ret_connection)
{
    natsSubscription *inboxes = NULL;

    *ret_connection = nats_connect(w);
    assert_int_equal(natsConnection_SubscribeSync(&inboxes, *ret_connection, "_INBOX.>"),
                     NATS_OK);
    assert_int_equal(natsConnection_Flush(*ret_connection), NATS_OK);
    return inboxes;
}

/* A link may end at any moment, also while libnats is handing an entry over. */
static void a_link_is_closed_while_entries_come(void **state)
{
    struct cluster_bucket bucket = {.name = BUCKET,
                                    .replicas = 1,
                                    .ttl_ms = 60000,
                                    .max_bytes = 1 << 20,
                                    .max_value_bytes = 100};
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct flood flood = {0};
    struct err err = {0};
    struct cluster_link *link;
    pthread_t thread;
    char url[512];

    (void)state;
    link = begin(&w, &bucket, &driver, url, sizeof(url));
    driver->close(link);
    flood.connection = nats_connect(&w);
    assert_int_equal(pthread_create(&thread, NULL, flood_run, &flood), 0);
    for (unsigned i = 0; i < LINKS; i++) {
        struct cluster_entry entry = {0};
        bool some = false;

        link = open_watch(driver, url, 0);
        for (unsigned tries = 0; !some && tries < NATS_WAIT_S; tries++) {
            if (driver->next(link, 1000, &some, &entry, &err) != CLUSTER_OK)
                fail_msg("%s", err.message);
        }
        assert_true(some);
        assert_string_equal(entry.key, "key");
        driver->release(&entry);
        driver->close(link);
    }
    __atomic_store_n(&flood.is_over, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    natsConnection_Destroy(flood.connection);
    nats_end(&w);
}

/* Takes all that there is, in turn, as one that makes rows of it: slower than a server can
   send, by a moment for each so many. */
static void take_all(const struct cluster_driver *driver, struct cluster_link *link,
                     unsigned many, unsigned each)
{
    const uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    struct err err = {0};
    uint64_t revision = 0;

    while (revision < many) {
        struct cluster_entry entry = {0};
        bool some = false;

        if (driver->next(link, 2000, &some, &entry, &err) != CLUSTER_OK)
            fail_msg("after the %lluth: %s", (unsigned long long)revision, err.message);
        if (clock_monotonic_ns() > until_ns)
            fail_msg("no entry comes after the %lluth", (unsigned long long)revision);
        if (!some)
            continue;
        assert_int_equal(entry.revision, ++revision);
        assert_int_equal(entry.pending, many - revision);
        driver->release(&entry);
        if (revision % each == 0)
            usleep(1000);
    }
}

/* More than a link may hold at once comes all the same, to who takes it slower than it is sent.
 */
static void a_watch_goes_on_however_much_there_is(void **state)
{
    struct cluster_bucket bucket = {
        .name = BUCKET, .replicas = 1, .max_bytes = 64 << 20, .max_value_bytes = 1024};
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct cluster_link *link;
    uint64_t until;
    natsConnection *connection = NULL;
    char url[512], text[512];

    (void)state;
    link = begin(&w, &bucket, &driver, url, sizeof(url));
    memset(text, 'x', sizeof(text));
    connection = nats_connect(&w);
    for (unsigned i = 0; i < MANY; i++) {
        char subject[64];

        snprintf(subject, sizeof(subject), "$KV." BUCKET ".key%u", i);
        assert_int_equal(natsConnection_Publish(connection, subject, text, sizeof(text)),
                         NATS_OK);
    }
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    until = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    while (nats_count(&w, "KV_" BUCKET) < MANY)
        assert_true(clock_monotonic_ns() < until);
    driver->close(link);
    link = open_watch(driver, url, 0);
    take_all(driver, link, MANY, 100);
    driver->close(link);
    natsConnection_Destroy(connection);
    nats_end(&w);
}

/* So many large entries, each of a key of its own. */
static void put_large(const struct cluster_driver *driver, struct cluster_link *link,
                      unsigned many)
{
    static char text[LARGE];
    struct err err = {0};
    char key[32];

    memset(text, 'x', sizeof(text));
    for (unsigned i = 0; i < many; i++) {
        snprintf(key, sizeof(key), "key%u", i);
        assert_int_equal(driver->put(link, BUCKET, key, text, sizeof(text), 0, NULL, &err),
                         CLUSTER_OK);
    }
}

/* However large it is: a server sends no more than a link has room for. One that sends all at
 * once ends the connection, or what has no room is thrown away. */
static void a_server_waits_for_who_takes(void **state)
{
    struct cluster_bucket bucket = {
        .name = BUCKET, .replicas = 1, .max_bytes = 256 << 20, .max_value_bytes = 2 * LARGE};
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct cluster_link *link;
    char url[512];

    (void)state;
    link = begin(&w, &bucket, &driver, url, sizeof(url));
    put_large(driver, link, LARGE_MANY);
    driver->close(link);
    link = open_watch(driver, url, 0);
    take_all(driver, link, LARGE_MANY, 1);
    driver->close(link);
    nats_end(&w);
}

/* Between a link and its server: what the server says goes on in pieces with a pause behind
 * each. */
struct slow_line {
    int listener, near, far;
    pthread_t thread;
};

static void *slow_line_run(void *context)
{
    struct slow_line *l = context;
    char piece[SLOW_PIECE];

    l->near = accept(l->listener, NULL, NULL);
    for (;;) {
        struct pollfd fds[] = {{l->near, POLLIN, 0}, {l->far, POLLIN, 0}};
        ssize_t n = 1;

        assert_true(poll(fds, 2, -1) > 0);
        if (fds[0].revents) {
            n = recv(l->near, piece, sizeof(piece), 0);
            if (n > 0)
                n = send(l->far, piece, (size_t)n, MSG_NOSIGNAL);
        }
        if (n > 0 && fds[1].revents) {
            n = recv(l->far, piece, sizeof(piece), 0);
            if (n > 0)
                n = send(l->near, piece, (size_t)n, MSG_NOSIGNAL);
            usleep(SLOW_PAUSE_US);
        }
        if (n <= 0)
            return NULL;
    }
}

static void slow_line_begin(struct slow_line *l, unsigned server_port, char *ret_url,
                            size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    const int little = SLOW_PIECE;

    l->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(l->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(l->listener, 1), 0);
    assert_int_equal(getsockname(l->listener, (struct sockaddr *)&at, &len), 0);
    snprintf(ret_url, size, "nats://127.0.0.1:%u", ntohs(at.sin_port));
    l->far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* What is under way is the server's. */
    assert_int_equal(setsockopt(l->far, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    at.sin_port = htons((uint16_t)server_port);
    assert_int_equal(connect(l->far, (struct sockaddr *)&at, len), 0);
    assert_int_equal(pthread_create(&l->thread, NULL, slow_line_run, l), 0);
}

static void slow_line_end(struct slow_line *l)
{
    assert_int_equal(pthread_join(l->thread, NULL), 0);
    close(l->near);
    close(l->far);
    close(l->listener);
}

/* A server answers pings behind what it has sent before: over a slow line that is late, and the
 * link goes on while anything comes. */
static void a_watch_goes_on_however_slowly_it_comes(void **state)
{
    struct cluster_bucket bucket = {
        .name = BUCKET, .replicas = 1, .max_bytes = 64 << 20, .max_value_bytes = 2 * LARGE};
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct slow_line line = {0};
    struct err err = {0};
    struct cluster_link *link;
    char url[512];

    (void)state;
    link = begin(&w, &bucket, &driver, url, sizeof(url));
    put_large(driver, link, SLOW_MANY);
    driver->close(link);
    slow_line_begin(&line, w.servers[0].port, url, sizeof(url));
    link = open_link(driver, url);
    assert_int_equal(driver->watch(link, BUCKET, 0, &err), CLUSTER_OK);
    take_all(driver, link, SLOW_MANY, SLOW_MANY);
    driver->close(link);
    slow_line_end(&line);
    nats_end(&w);
}

/* What a server sends first may come before it says that it watches. */
static void a_watch_has_begun_when_entries_come(void **state)
{
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct err err = {0};
    struct cluster_link *link;
    natsConnection *connection = NULL;
    char url[512];

    (void)state;
    link = begin_small(&w, &driver, url, sizeof(url));
    assert_int_equal(driver->put(link, BUCKET, "key", "value", 5, 0, NULL, &err), CLUSTER_OK);
    driver->close(link);
    answer_is_behind = open_inboxes(&w, &connection);
    link = open_link(driver, url);
    assert_int_equal(driver->watch(link, BUCKET, 0, &err), CLUSTER_OK);
    take_all(driver, link, 1, 1);
    driver->close(link);
    natsSubscription_Destroy(answer_is_behind);
    answer_is_behind = NULL;
    natsConnection_Destroy(connection);
    is_lost = true;
    link = open_link(driver, url);
    assert_int_equal(driver->watch(link, BUCKET, 0, &err), CLUSTER_NO_QUORUM);
    is_lost = false;
    driver->close(link);
    nats_end(&w);
}

/* Who may write a bucket may write any header: what says that it is no entry is one all the
 * same, and others come after it. */
static void no_entry_passes_for_a_status(void **state)
{
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct err err = {0};
    struct cluster_link *link;
    natsConnection *connection = NULL;
    natsMsg *message = NULL;
    char url[512];

    (void)state;
    link = begin_small(&w, &driver, url, sizeof(url));
    driver->close(link);
    connection = nats_connect(&w);
    assert_int_equal(natsMsg_Create(&message, "$KV." BUCKET ".key", NULL, NULL, 0), NATS_OK);
    assert_int_equal(natsMsgHeader_Set(message, "Status", "100"), NATS_OK);
    assert_int_equal(natsMsgHeader_Set(message, "Nats-Consumer-Stalled", "stalled"), NATS_OK);
    assert_int_equal(natsConnection_PublishMsg(connection, message), NATS_OK);
    natsMsg_Destroy(message);
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    link = open_link(driver, url);
    assert_int_equal(driver->put(link, BUCKET, "other", "value", 5, 0, NULL, &err), CLUSTER_OK);
    driver->close(link);
    link = open_watch(driver, url, 0);
    take_all(driver, link, 2, 1);
    driver->close(link);
    natsConnection_Destroy(connection);
    nats_end(&w);
}

/* The inbox that a watch has, from what the server says there each second. */
static void find_inbox(natsSubscription *inboxes, char *ret, size_t size)
{
    const uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    bool found = false;

    while (!found) {
        natsMsg *message = next_message(inboxes, until_ns);
        const char *status = NULL;

        found = natsMsgHeader_Get(message, "Status", &status) == NATS_OK &&
                strcmp(status, "100") == 0;
        if (found)
            snprintf(ret, size, "%s", natsMsg_GetSubject(message));
        natsMsg_Destroy(message);
    }
}

/* Who sends to the inbox of a watch gets no entry written by asking for an answer there. */
static void only_the_server_is_answered(void **state)
{
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct err err = {0};
    struct cluster_entry entry = {0};
    struct cluster_link *link, *other;
    natsConnection *connection = NULL;
    natsSubscription *inboxes;
    char url[512], inbox[128];

    (void)state;
    other = begin_small(&w, &driver, url, sizeof(url));
    inboxes = open_inboxes(&w, &connection);
    link = open_watch(driver, url, 0);
    find_inbox(inboxes, inbox, sizeof(inbox));
    assert_int_equal(
        natsConnection_PublishRequest(connection, inbox, "$KV." BUCKET ".forged", NULL, 0),
        NATS_OK);
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    assert_int_equal(driver->put(other, BUCKET, "key", "value", 5, 0, NULL, &err), CLUSTER_OK);
    /* It has come behind what was asked for, and that was answered then, if at all. */
    take_all(driver, link, 1, 1);
    assert_int_equal(driver->get(link, BUCKET, "forged", &entry, &err), CLUSTER_NO_ENTRY);
    driver->close(other);
    driver->close(link);
    natsSubscription_Destroy(inboxes);
    natsConnection_Destroy(connection);
    nats_end(&w);
}

/* No more calls come, and none that came is left. */
static void end_serving(const struct cluster_driver *driver, struct cluster_link *link)
{
    struct err err = {0};
    enum cluster_fault fault = driver->serve(link, NULL, NULL, 0, &err);

    while (fault == CLUSTER_OK) {
        struct cluster_entry call = {0};
        bool some = false;

        fault = driver->next_call(link, 100, &some, &call, &err);
        if (some)
            driver->release(&call);
    }
    assert_int_equal(fault, CLUSTER_NO_ENTRY);
}

/* Whoever calls once a node has said that it takes calls finds somebody, who does not answer.
 */
static void who_takes_calls_is_found_at_once(void **state)
{
    const struct cluster_driver *driver;
    struct nats_world w = {0};
    struct err err = {0};
    struct cluster_link *link, *other;
    char url[512];

    (void)state;
    other = begin_small(&w, &driver, url, sizeof(url));
    link = open_link(driver, url);
    for (unsigned i = 0; i < CALLS; i++) {
        struct cluster_entry answer = {0};

        assert_int_equal(driver->serve(link, "links.calls", "group", 16, &err), CLUSTER_OK);
        assert_int_equal(driver->call(other, "links.calls", "", 0, 20, &answer, &err),
                         CLUSTER_NO_QUORUM);
        end_serving(driver, link);
    }
    driver->close(other);
    driver->close(link);
    nats_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_is_closed_while_entries_come),
        cmocka_unit_test(a_watch_goes_on_however_much_there_is),
        cmocka_unit_test(a_server_waits_for_who_takes),
        cmocka_unit_test(a_watch_goes_on_however_slowly_it_comes),
        cmocka_unit_test(a_watch_has_begun_when_entries_come),
        cmocka_unit_test(no_entry_passes_for_a_status),
        cmocka_unit_test(only_the_server_is_answered),
        cmocka_unit_test(who_takes_calls_is_found_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
