/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody needs any more, of a node without a daemon and one real nats-server. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/change_entry.h"
#include "api/daemon/cluster/cluster.h"
#include "api/daemon/cluster/object_meta.h"
#include "tests/daemon/nats_world.h"

#include "base/clock.h"

#include <errno.h>
#include <nats/nats.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of "a", "b" and "c". */
#define DIGEST_A "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
#define DIGEST_B "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
#define DIGEST_C "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6"

#define LIVES "ten_00000000000000000000000000000001"
#define GONE  "ten_00000000000000000000000000000002"

struct node {
    struct nats_world w;
    struct cluster *cluster;
    const char *named;   /* by a row */
    const char *pushing; /* somebody pushes this while it is looked for */
};

static int no_place(void *ctx, struct change_place *ret, struct err *err)
{
    (void)ctx;
    (void)ret;
    (void)err;
    return 0;
}

static int no_rows(void *ctx, const struct staged *staged, bool is_whole,
                   const struct change_place *place, unsigned *ret_conflicts, struct err *err)
{
    (void)ctx;
    (void)staged;
    (void)is_whole;
    (void)place;
    (void)ret_conflicts;
    (void)err;
    return 0;
}

static void no_note(void *ctx, const struct change_place *place)
{
    (void)ctx;
    (void)place;
}

static int row_of(void *ctx, enum change_kind kind, const char *id, struct change *ret,
                  struct err *err)
{
    (void)ctx;
    (void)ret;
    (void)err;
    return kind == CHANGE_TENANT && strcmp(id, LIVES) == 0 ? 0 : -ENOENT;
}

static int none(void *ctx, cluster_visit_fn *visit, void *visit_ctx, struct err *err)
{
    (void)ctx;
    (void)visit;
    (void)visit_ctx;
    (void)err;
    return 0;
}

static void begin(struct node *n)
{
    const struct cluster_replica replica = {
        .look = no_place, .apply = no_rows, .note = no_note, .row = row_of, .each = none};
    const struct node_entry facts = {.version = "0.2.0"};
    char urls[512];
    const struct cluster_config config = {.credentials = "",
                                          .tls_ca = "",
                                          .tls_cert = "",
                                          .tls_key = "",
                                          .labels = "",
                                          .node = "a",
                                          .facts = &facts,
                                          .replicas = 1,
                                          .servers = urls};
    struct cluster_status status = {0};
    struct err err = {0};
    bool made;

    nats_begin(&n->w, 1);
    (void)nats_urls(&n->w, urls, sizeof(urls));
    if (cluster_create(&config, &n->cluster, &err) < 0 ||
        cluster_follow(n->cluster, &replica, 60000, &err) < 0 ||
        cluster_init(n->cluster, &made, &err) < 0)
        fail_msg("%s", err.message);
    for (unsigned i = 0; i < 18000 && status.state != CLUSTER_JOINED; i++) {
        usleep(5000);
        cluster_look(n->cluster, &status);
    }
    assert_int_equal(status.state, CLUSTER_JOINED);
}

static void end(struct node *n)
{
    cluster_destroy(n->cluster);
    nats_end(&n->w);
}

static void put(struct node *n, const char *digest, const char *text)
{
    FILE *f = tmpfile();
    struct err err = {0};

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fflush(f) == 0);
    if (cluster_object_put(n->cluster, CLUSTER_OF_CHANGES, digest, fileno(f), &err) < 0)
        fail_msg("%s", err.message);
    (void)fclose(f);
}

static bool has(struct node *n, const char *digest)
{
    struct cluster_object object = {.digest = digest, .size = 1};
    struct err err = {0};

    if (cluster_objects_look(n->cluster, &object, 1, &err) < 0)
        fail_msg("%s", err.message);
    return object.is_there;
}

/* As who names it then does: what is said of it is said anew. */
static int is_named(void *ctx, const char *digest, bool *ret_named, struct err *err)
{
    struct node *n = ctx;
    char key[OBJECT_KEY_SIZE], subject[256], found[256], *text;

    (void)err;
    *ret_named = n->named && strcmp(digest, n->named) == 0;
    if (!n->pushing || strcmp(digest, n->pushing) != 0)
        return 0;
    object_meta_key(digest, key);
    snprintf(subject, sizeof(subject), "$O.skillvm_objects.%s", key);
    text = nats_last(&n->w, NATS_OBJECTS, subject, found);
    assert_non_null(text);
    nats_publish(&n->w, subject, text, strlen(text));
    free(text);
    return 0;
}

static unsigned sweep(struct node *n, uint64_t min_age_ns)
{
    unsigned removed = 99;
    struct err err = {0};

    if (cluster_objects_sweep(n->cluster, min_age_ns, is_named, n, &removed, &err) < 0)
        fail_msg("%s", err.message);
    return removed;
}

/* What is young, named, or said anew at that moment stays. */
static void what_no_row_names_goes(void **state)
{
    struct node n = {.named = DIGEST_A, .pushing = DIGEST_B};

    (void)state;
    begin(&n);
    assert_int_equal(sweep(&n, 0), 0);
    put(&n, DIGEST_A, "a");
    put(&n, DIGEST_B, "b");
    put(&n, DIGEST_C, "c");
    assert_int_equal(sweep(&n, 3600 * NS_PER_SECOND), 0);
    assert_true(has(&n, DIGEST_C));
    assert_int_equal(sweep(&n, 0), 1);
    assert_true(has(&n, DIGEST_A));
    assert_true(has(&n, DIGEST_B));
    assert_false(has(&n, DIGEST_C));
    /* With its chunks; what says that it was there stays, and it can come again. */
    assert_int_equal(nats_count(&n.w, NATS_OBJECTS), 2 + 2 + 1 + 1);
    put(&n, DIGEST_C, "c");
    assert_true(has(&n, DIGEST_C));
    n.pushing = NULL;
    assert_int_equal(sweep(&n, 0), 2);
    assert_true(has(&n, DIGEST_A));
    assert_false(has(&n, DIGEST_B));
    /* That they were there goes in the end, too. */
    assert_int_equal(nats_count(&n.w, NATS_OBJECTS), 2 + 1 + 1);
    assert_int_equal(sweep(&n, 3600 * NS_PER_SECOND), 0);
    assert_int_equal(nats_count(&n.w, NATS_OBJECTS), 2 + 1 + 1);
    assert_int_equal(sweep(&n, 0), 0);
    assert_int_equal(nats_count(&n.w, NATS_OBJECTS), 2);
    put(&n, DIGEST_C, "c");
    assert_true(has(&n, DIGEST_C));
    end(&n);
}

static void remove_now(struct node *n, const char *digest)
{
    struct err err = {0};

    if (cluster_object_remove(n->cluster, digest, is_named, n, &err) < 0)
        fail_msg("%s", err.message);
}

/* What is named, or said anew at that moment, stays. */
static void one_goes_at_once(void **state)
{
    struct node n = {.named = DIGEST_A, .pushing = DIGEST_B};
    struct err err = {0};
    FILE *f = tmpfile();

    (void)state;
    begin(&n);
    put(&n, DIGEST_A, "a");
    put(&n, DIGEST_B, "b");
    put(&n, DIGEST_C, "c");
    remove_now(&n, DIGEST_A);
    remove_now(&n, DIGEST_B);
    remove_now(&n, DIGEST_C);
    assert_true(has(&n, DIGEST_A));
    assert_true(has(&n, DIGEST_B));
    assert_false(has(&n, DIGEST_C));
    /* With its chunks; and one was said twice. */
    assert_int_equal(nats_count(&n.w, NATS_OBJECTS), 2 + 2 + 1 + 1);
    /* Whose row came too late for that finds it gone. */
    assert_true(fputs("c", f) >= 0 && fflush(f) == 0);
    assert_int_equal(cluster_object_confirm(n.cluster, DIGEST_C, fileno(f), &err), -ENOENT);
    put(&n, DIGEST_C, "c");
    assert_int_equal(cluster_object_confirm(n.cluster, DIGEST_C, fileno(f), &err), 0);
    assert_true(has(&n, DIGEST_C));
    assert_int_equal(nats_count(&n.w, NATS_OBJECTS), 2 + 2 + 1 + 2);
    (void)fclose(f);
    end(&n);
}

/* As a node writes a skill, a file, or a key. */
static void put_row(struct node *n, enum change_kind kind, unsigned at, const char *tenant)
{
    static const char *const prefixes[] = {
        [CHANGE_SKILL] = "skl_", [CHANGE_FILE] = "fil_", [CHANGE_KEY] = "key_"};
    struct change change = {.kind = kind};
    char key[CHANGE_KEY_SIZE], subject[256], *owner = change.key.tenant;
    struct buf text = {0};

    snprintf(change.id, sizeof(change.id), "%s%032u", prefixes[kind], at);
    if (kind == CHANGE_SKILL) {
        change.skill = (struct change_skill){.name = "x", .version = "1", .digest = DIGEST_A};
        owner = change.skill.tenant;
    } else if (kind == CHANGE_FILE) {
        change.file = (struct change_file){.id = "file_00000000000000000000000000000000",
                                           .name = "x",
                                           .content_type = "a/b",
                                           .digest = DIGEST_A};
        owner = change.file.tenant;
    } else {
        change.key = (struct change_key){.name = "x", .digest = DIGEST_A};
    }
    snprintf(owner, TENANT_ID_SIZE, "%s", tenant);
    assert_int_equal(change_entry_write(&change, &text), 0);
    change_entry_key(kind, change.id, key);
    snprintf(subject, sizeof(subject), "$KV.skillvm_registry.%s", key);
    nats_publish(&n->w, subject, text.data, text.len);
    buf_finish(&text);
}

static unsigned sweep_rows(struct node *n)
{
    unsigned removed = 99;
    struct err err = {0};

    if (cluster_rows_sweep(n->cluster, &removed, &err) < 0)
        fail_msg("%s", err.message);
    return removed;
}

static void wait_revision(struct node *n, uint64_t revision)
{
    struct cluster_measure measure = {0};

    for (unsigned i = 0; i < 18000 && measure.revision < revision; i++) {
        usleep(5000);
        cluster_measure(n->cluster, &measure);
    }
    assert_true(measure.revision >= revision);
}

/* Where the bucket has room enough nobody looks. */
static void rows_go_after_their_tenant(void **state)
{
    struct node n = {0};

    (void)state;
    begin(&n);
    put_row(&n, CHANGE_SKILL, 0, GONE);
    put_row(&n, CHANGE_SKILL, 1, LIVES);
    put_row(&n, CHANGE_FILE, 2, GONE);
    put_row(&n, CHANGE_KEY, 3, GONE);
    put_row(&n, CHANGE_KEY, 4, LIVES);
    wait_revision(&n, 6); /* with the one that begins it */
    assert_int_equal(sweep_rows(&n), 0);
    nats_limit(&n.w, NATS_CHANGES, 8192);
    assert_int_equal(sweep_rows(&n), 3);
    assert_int_equal(sweep_rows(&n), 0);
    /* Its place is there for another. */
    put_row(&n, CHANGE_FILE, 2, LIVES);
    wait_revision(&n, 10);
    assert_int_equal(sweep_rows(&n), 0);
    end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_row_names_goes),
        cmocka_unit_test(one_goes_at_once),
        cmocka_unit_test(rows_go_after_their_tenant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
