/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by the cluster's driver on one real nats-server, and what then lies in its stream. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/driver_load.h"
#include "tests/daemon/nats_world.h"

#include <nats/nats.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET "objects"
#define CHUNK  (128u * 1024u)
#define SIZE   (2 * CHUNK + 1000u)

struct place {
    struct nats_world w;
    const struct cluster_driver *driver;
    struct cluster_link *link;
    natsConnection *connection; /* of somebody else */
    jsCtx *js;
    char *data; /* of SIZE */
};

static struct cluster_link *open_link(struct place *p)
{
    static const struct cluster_access access = {
        .name = "test", .credentials = "", .tls_ca = "", .tls_cert = "", .tls_key = ""};
    struct cluster_link *link = NULL;
    struct err err = {0};
    char url[512];

    if (p->driver->open(&access, nats_urls(&p->w, url, sizeof(url)), true, &link, &err) !=
        CLUSTER_OK)
        fail_msg("%s", err.message);
    return link;
}

static int begin(void **state)
{
    const struct cluster_bucket bucket = {.name = BUCKET, .replicas = 1};
    struct place *p = calloc(1, sizeof(*p));
    struct err err = {0};

    nats_begin(&p->w, 1);
    assert_int_equal(driver_load(&p->driver, &err), 0);
    p->link = open_link(p);
    assert_int_equal(p->driver->objects_make(p->link, &bucket, &err), CLUSTER_OK);
    p->connection = nats_connect(&p->w);
    assert_int_equal(natsConnection_JetStream(&p->js, p->connection, NULL), NATS_OK);
    p->data = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        p->data[i] = (char)(i % 251);
    *state = p;
    return 0;
}

static int end(void **state)
{
    struct place *p = *state;

    p->driver->close(p->link);
    jsCtx_Destroy(p->js);
    natsConnection_Destroy(p->connection);
    nats_end(&p->w);
    free(p->data);
    free(p);
    return 0;
}

static void send_all(struct place *p, const char *key)
{
    struct err err = {0};
    unsigned left = 1;

    for (size_t at = 0; at < SIZE; at += CHUNK) {
        size_t len = SIZE - at < CHUNK ? SIZE - at : CHUNK;

        assert_int_equal(p->driver->chunk_send(p->link, BUCKET, key, p->data + at, len, &err),
                         CLUSTER_OK);
    }
    while (left > 0) {
        if (p->driver->chunk_confirm(p->link, &left, &err) != CLUSTER_OK)
            fail_msg("%s", err.message);
    }
}

/* As NATS's own tools make a bucket of objects. */
static void the_stream_is_one_of_objects(void **state)
{
    struct place *p = *state;
    jsStreamInfo *info = NULL;
    struct cluster_bucket there = {0};
    struct err err = {0};

    assert_int_equal(js_GetStreamInfo(&info, p->js, "OBJ_" BUCKET, NULL, NULL), NATS_OK);
    assert_int_equal(info->Config->SubjectsLen, 2);
    assert_string_equal(info->Config->Subjects[0], "$O." BUCKET ".C.>");
    assert_string_equal(info->Config->Subjects[1], "$O." BUCKET ".M.>");
    assert_true(info->Config->AllowRollup);
    assert_true(info->Config->AllowDirect);
    assert_int_equal(info->Config->Discard, js_DiscardNew);
    assert_int_equal(info->Config->Storage, js_FileStorage);
    assert_false(info->Config->DenyPurge);
    jsStreamInfo_Destroy(info);
    assert_int_equal(p->driver->objects_look(p->link, BUCKET, &there, &err), CLUSTER_OK);
    assert_int_equal(there.replicas, 1);
    assert_int_equal(p->driver->objects_look(p->link, "none", &there, &err), CLUSTER_NO_BUCKET);
}

static void chunks_lie_in_turn(void **state)
{
    struct place *p = *state;

    send_all(p, "C.one");
    for (uint64_t i = 0; i < 3; i++) {
        natsMsg *message = NULL;
        size_t len = i < 2 ? CHUNK : SIZE - 2 * CHUNK;

        assert_int_equal(js_GetMsg(&message, p->js, "OBJ_" BUCKET, i + 1, NULL, NULL), NATS_OK);
        assert_string_equal(natsMsg_GetSubject(message), "$O." BUCKET ".C.one");
        assert_int_equal(natsMsg_GetDataLength(message), len);
        assert_memory_equal(natsMsg_GetData(message), p->data + i * CHUNK, len);
        natsMsg_Destroy(message);
    }
}

/* What is said of an object takes the place of what was said, where that is as it was. */
static void the_last_word_alone_stays(void **state)
{
    struct place *p = *state;
    struct cluster_entry entry = {0};
    uint64_t first = 0, second = 0, count = nats_count(&p->w, "OBJ_" BUCKET);
    struct err err = {0};
    natsMsg *message = NULL;
    const char *header = NULL;

    assert_int_equal(p->driver->object_get(p->link, BUCKET, "M.x", &entry, &err),
                     CLUSTER_NO_ENTRY);
    assert_int_equal(p->driver->object_put(p->link, BUCKET, "M.x", "1", 1, 0, &first, &err),
                     CLUSTER_OK);
    assert_int_equal(p->driver->object_put(p->link, BUCKET, "M.x", "2", 1, 0, &second, &err),
                     CLUSTER_CONFLICT);
    assert_int_equal(
        p->driver->object_put(p->link, BUCKET, "M.x", "2", 1, first, &second, &err),
        CLUSTER_OK);
    assert_int_equal(nats_count(&p->w, "OBJ_" BUCKET), count + 1);
    assert_int_equal(js_GetMsg(&message, p->js, "OBJ_" BUCKET, second, NULL, NULL), NATS_OK);
    assert_int_equal(natsMsgHeader_Get(message, "Nats-Rollup", &header), NATS_OK);
    assert_string_equal(header, "sub");
    natsMsg_Destroy(message);
    assert_int_equal(p->driver->object_get(p->link, BUCKET, "M.x", &entry, &err), CLUSTER_OK);
    assert_string_equal(entry.key, "M.x");
    assert_int_equal(entry.revision, second);
    assert_memory_equal(entry.data, "2", 1);
    assert_true(entry.stored_ns > 1700000000000000000u);
    p->driver->release(&entry);
    /* What was said since stays. */
    assert_int_equal(p->driver->objects_purge(p->link, BUCKET, "M.x", first, &err), CLUSTER_OK);
    assert_int_equal(p->driver->object_get(p->link, BUCKET, "M.x", &entry, &err), CLUSTER_OK);
    p->driver->release(&entry);
    assert_int_equal(p->driver->objects_purge(p->link, BUCKET, "M.x", second, &err),
                     CLUSTER_OK);
    assert_int_equal(p->driver->object_get(p->link, BUCKET, "M.x", &entry, &err),
                     CLUSTER_NO_ENTRY);
    err = (struct err){0};
    assert_int_equal(p->driver->object_put(p->link, BUCKET, "M.x", "3", 1, 0, NULL, &err),
                     CLUSTER_OK);
}

static void an_object_is_read_and_removed(void **state)
{
    struct place *p = *state;
    struct cluster_link *link = open_link(p);
    uint64_t before;
    struct err err = {0};
    size_t at = 0;

    send_all(p, "C.two");
    before = nats_count(&p->w, "OBJ_" BUCKET);
    assert_int_equal(p->driver->objects_watch(link, BUCKET, "C.two", &err), CLUSTER_OK);
    while (at < SIZE) {
        struct cluster_entry entry = {0};
        bool some = false;

        assert_int_equal(p->driver->next(link, 2000, &some, &entry, &err), CLUSTER_OK);
        if (!some)
            continue;
        assert_string_equal(entry.key, "C.two");
        assert_true(entry.len <= SIZE - at);
        assert_memory_equal(entry.data, p->data + at, entry.len);
        at += entry.len;
        assert_int_equal(entry.pending == 0, at == SIZE);
        p->driver->release(&entry);
    }
    p->driver->close(link);
    assert_int_equal(p->driver->objects_purge(p->link, BUCKET, "C.two", 0, &err), CLUSTER_OK);
    assert_int_equal(nats_count(&p->w, "OBJ_" BUCKET), before - 3);
}

/* What nobody keeps, or a server refuses, is no success. */
static void what_is_not_kept_is_told(void **state)
{
    const struct cluster_bucket small = {.name = "small", .replicas = 1, .max_bytes = CHUNK};
    struct place *p = *state;
    struct cluster_link *link = open_link(p);
    struct err err = {0};
    unsigned left = 0;

    assert_int_equal(p->driver->chunk_send(link, "none", "C.x", "x", 1, &err), CLUSTER_OK);
    assert_int_equal(p->driver->chunk_confirm(link, &left, &err), CLUSTER_NO_BUCKET);
    p->driver->close(link);
    link = open_link(p);
    err = (struct err){0};
    assert_int_equal(p->driver->objects_make(link, &small, &err), CLUSTER_OK);
    assert_int_equal(p->driver->chunk_send(link, "small", "C.x", p->data, CHUNK + 1, &err),
                     CLUSTER_OK);
    assert_int_equal(p->driver->chunk_confirm(link, &left, &err), CLUSTER_NO_ROOM);
    assert_non_null(strstr(err.message, "is not kept"));
    p->driver->close(link);
}

/* Chunks that were sent when the server ended are not said to be kept. Last: it is gone. */
static void a_server_that_ends_keeps_nothing(void **state)
{
    struct place *p = *state;
    enum cluster_fault fault = CLUSTER_OK;
    struct err err = {0};
    unsigned left = 1;

    for (unsigned i = 0; i < 100; i++)
        (void)p->driver->chunk_send(p->link, BUCKET, "C.three", p->data, CHUNK, &err);
    nats_kill(&p->w, 0);
    for (unsigned i = 0; i < 100 && fault == CLUSTER_OK; i++) {
        if (p->driver->chunk_send(p->link, BUCKET, "C.three", p->data, CHUNK, &err) !=
            CLUSTER_OK)
            break;
    }
    while (fault == CLUSTER_OK && left > 0)
        fault = p->driver->chunk_confirm(p->link, &left, &err);
    assert_true(fault == CLUSTER_UNREACHABLE || fault == CLUSTER_NO_QUORUM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_is_one_of_objects),
        cmocka_unit_test(chunks_lie_in_turn),
        cmocka_unit_test(the_last_word_alone_stays),
        cmocka_unit_test(an_object_is_read_and_removed),
        cmocka_unit_test(what_is_not_kept_is_told),
        cmocka_unit_test(a_server_that_ends_keeps_nothing),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
