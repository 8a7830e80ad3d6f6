/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants, keys, files, usage, audit and tool schemas in the registry, and whose is whose. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_files.h"
#include "api/daemon/registry/registry_keys.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/registry/registry_retention.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/registry/registry_tools.h"
#include "api/daemon/registry/registry_usage.h"
#include "tests/unit/registry_dir.h"
#include "tests/unit/registry_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define DIGEST_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define ID_1     "exec_00000000000000000000000000000001"
#define ID_2     "exec_00000000000000000000000000000002"
#define KEY_1    "key_00000000000000000000000000000001"
#define KEY_2    "key_00000000000000000000000000000002"
#define FILE_1   "file_00000000000000000000000000000001"
#define ONE      "ten_00000000000000000000000000000001"
#define TWO      "ten_00000000000000000000000000000002"

static struct registry *open_with_tenants(const char *dir)
{
    struct registry *registry = open_registry(dir);
    struct tenant_limits limits = tenant_limits_default();

    assert_int_equal(put_tenant(registry, ONE, "one", 10, false, &limits), 0);
    limits.storage_bytes = 1ull << 40;
    assert_int_equal(put_tenant(registry, TWO, "two", 11, false, &limits), 0);
    return registry;
}

static uint64_t stored(struct registry *registry, const char *id)
{
    struct registry_tenant tenant;
    uint64_t bytes;

    assert_int_equal(registry_tenant_get(registry, id, &tenant, NULL), 0);
    bytes = tenant.stored_bytes;
    registry_tenant_finish(&tenant);
    return bytes;
}

static int put_skill(struct registry *registry, const char *tenant, const char *digest)
{
    const struct registry_skill r = {
        .name = "x", .version = "1", .digest = digest, .description = "d", .bytes = 100};
    char *existing = NULL;
    int result = registry_skill_put(registry, tenant, &r, false, &existing, NULL);

    free(existing);
    return result;
}

static int delete_skill(struct registry *registry, const char *tenant, const char *digest)
{
    const struct registry_skill r = {.name = "x", .version = "1", .digest = digest};

    return registry_skill_delete(registry, tenant, &r, NULL);
}

static int accept(struct registry *registry, const char *tenant, const char *id,
                  const char *key)
{
    const struct registry_execution a = {.id = id,
                                         .skill_name = "x",
                                         .skill_version = "1",
                                         .skill_digest = DIGEST_A,
                                         .accepted_ns = 7,
                                         .idempotency_key = key,
                                         .request_digest = DIGEST_B};

    return registry_execution_accept(registry, tenant, &a, NULL);
}

static void end(struct registry *registry, const char *id, uint64_t finished_ns)
{
    const struct registry_ending ending = {.status = "success",
                                           .result = "{}",
                                           .result_len = 2,
                                           .finished_ns = finished_ns,
                                           .artifact_digest = DIGEST_C,
                                           .artifact_bytes = 40};

    assert_int_equal(registry_execution_end(registry, id, &ending, NULL), 0);
}

static void put_file(struct registry *registry, const char *tenant)
{
    const struct registry_file file = {.id = FILE_1,
                                       .name = (char[]){"in.csv"},
                                       .content_type = (char[]){"text/csv"},
                                       .digest = (char[]){DIGEST_B},
                                       .bytes = 1000,
                                       .created_ns = 5,
                                       .expires_ns = 50};

    assert_int_equal(registry_file_create(registry, tenant, &file, NULL), 0);
}

static void tenants_are_kept(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    struct tenant_limits limits = {
        7, 1, 2, 3, 4, 5, 6, 8, TENANT_REUSE_SKILL, "data python", "a.example"};
    struct registry_tenant rows[4];
    size_t n = 0;

    assert_int_equal(put_tenant(registry, KEY_1, "one", 10, false, &limits), -EEXIST);
    assert_int_equal(put_tenant(registry, ONE, "eins", 10, true, &limits), 0);
    assert_int_equal(put_tenant(registry, ONE, "two", 10, true, &limits), -EEXIST);
    registry_close(registry);
    registry = open_registry(*state);
    assert_int_equal(registry_tenant_list(registry, 0, NULL, 4, rows, &n, NULL), 0);
    assert_int_equal(n, 3);
    assert_string_equal(rows[0].id, TENANT_DEFAULT);
    assert_string_equal(rows[1].id, TWO);
    assert_int_equal(rows[1].limits.storage_bytes, 1ull << 40);
    assert_string_equal(rows[2].name, "eins");
    assert_true(rows[2].is_disabled);
    assert_memory_equal(&rows[2].limits, &limits, offsetof(struct tenant_limits, reuse));
    assert_int_equal(rows[2].limits.reuse, TENANT_REUSE_SKILL);
    assert_string_equal(rows[2].limits.images, "data python");
    assert_string_equal(rows[1].limits.images, "");
    assert_string_equal(rows[2].limits.network, "a.example");
    assert_string_equal(rows[1].limits.network, "");
    for (size_t i = 0; i < n; i++)
        registry_tenant_finish(&rows[i]);
    assert_int_equal(registry_tenant_list(registry, 11, TWO, 4, rows, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_string_equal(rows[0].id, ONE);
    registry_tenant_finish(&rows[0]);
    registry_close(registry);
}

static void a_network_is_a_word_or_hosts(void **state)
{
    static const char *const good[][2] = {
        {"", ""},
        {"off", "off"},
        {"declared", "declared"},
        {"A.example,  *.b.c:22", "a.example *.b.c:22"},
        {"*", "*"},
        {"*:*", "*:*"},
    };
    static const char *const bad[] = {" ", "all hosts!", "10.0.0.1", "https://a.example"};
    char clean[TENANT_NETWORK_SIZE], large[2 * TENANT_NETWORK_SIZE];
    struct err err = {0};
    size_t len = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(tenant_network_clean(good[i][0], strlen(good[i][0]), clean, &err), 0);
        assert_string_equal(clean, good[i][1]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(tenant_network_clean(bad[i], strlen(bad[i]), clean, NULL), -EINVAL);
    for (int i = 0; len < TENANT_NETWORK_SIZE; i++)
        len += (size_t)snprintf(large + len, sizeof(large) - len, "host-number-%d.example.org ",
                                i);
    assert_int_equal(tenant_network_clean(large, len, clean, &err), -E2BIG);
    assert_non_null(strstr(err.message, "1023 bytes"));
}

static void rows_belong_to_one_tenant(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    struct registry_execution row;
    struct registry_file file;
    struct registry_skill skill;
    const struct registry_page page = {.max = 1};
    size_t n = 1;
    bool known = true;

    assert_int_equal(put_skill(registry, ONE, DIGEST_A), 0);
    assert_int_equal(registry_skill_get(registry, TWO, "x", "1", &skill, &known, NULL),
                     -ENOENT);
    assert_false(known);
    assert_int_equal(put_skill(registry, TWO, DIGEST_B), 0);
    assert_int_equal(put_skill(registry, TWO, DIGEST_A), -EEXIST);
    assert_int_equal(put_skill(registry, "ten_none", DIGEST_A), -ENOENT);
    assert_int_equal(delete_skill(registry, TENANT_DEFAULT, DIGEST_A), -ENOENT);
    /* Other content under this version, as a push beside the deletion leaves it, stays. */
    assert_int_equal(delete_skill(registry, TWO, DIGEST_A), -ENOENT);
    assert_int_equal(accept(registry, ONE, ID_1, "k"), 0);
    assert_int_equal(accept(registry, TWO, ID_2, "k"), 0);
    assert_int_equal(accept(registry, "ten_none", FILE_1, NULL), -ENOENT);
    assert_int_equal(registry_execution_get(registry, TWO, ID_1, &row, NULL), -ENOENT);
    assert_int_equal(registry_execution_list(registry, TENANT_DEFAULT, &page, &row, &n, NULL),
                     0);
    assert_int_equal(n, 0);
    put_file(registry, ONE);
    assert_int_equal(registry_file_get(registry, TWO, FILE_1, &file, NULL), -ENOENT);
    assert_int_equal(registry_file_delete(registry, TWO, FILE_1, NULL), -ENOENT);
    assert_int_equal(registry_file_list(registry, TWO, 0, 0, 1, &file, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(registry_file_get(registry, ONE, FILE_1, &file, NULL), 0);
    assert_string_equal(file.name, "in.csv");
    assert_string_equal(file.content_type, "text/csv");
    assert_int_equal(file.bytes, 1000);
    registry_file_finish(&file);
    registry_close(registry);
}

static void stored_bytes_are_counted(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    struct registry_spent spent[2];
    struct registry_aged_row due;
    uint64_t total = 0;
    bool used = false;
    size_t n = 0;

    assert_int_equal(put_skill(registry, ONE, DIGEST_A), 0);
    assert_int_equal(stored(registry, ONE), 100);
    put_file(registry, ONE);
    assert_int_equal(stored(registry, ONE), 1100);
    assert_int_equal(registry_file_count(registry, ONE, &total, NULL), 0);
    assert_int_equal(total, 1);
    assert_int_equal(registry_file_count(registry, TWO, &total, NULL), 0);
    assert_int_equal(total, 0);
    assert_int_equal(accept(registry, ONE, ID_1, NULL), 0);
    end(registry, ID_1, 20);
    assert_int_equal(stored(registry, ONE), 1142);
    assert_int_equal(stored(registry, TWO), 0);
    assert_int_equal(registry_execution_bytes(registry, &total, NULL), 0);
    assert_int_equal(total, 42);
    assert_int_equal(registry_digest_used(registry, DIGEST_C, &used, NULL), 0);
    assert_true(used);
    assert_int_equal(registry_digest_used(registry, DIGEST_B, &used, NULL), 0);
    assert_true(used);
    assert_int_equal(registry_execution_spent(registry, NULL, 20, 2, spent, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(registry_execution_spent(registry, NULL, 21, 2, spent, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_string_equal(spent[0].artifact_digest, DIGEST_C);
    assert_int_equal(spent[0].bytes, 42);
    assert_int_equal(registry_executions_delete(registry, spent, 1, NULL), 0);
    registry_spent_finish(&spent[0]);
    assert_int_equal(registry_execution_spent(registry, TWO, 21, 2, spent, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(registry_aged_due(registry, REGISTRY_AGED_FILES, 49, 1, &due, &n, NULL),
                     0);
    assert_int_equal(n, 0);
    assert_int_equal(registry_aged_due(registry, REGISTRY_AGED_FILES, 50, 1, &due, &n, NULL),
                     0);
    assert_int_equal(n, 1);
    assert_string_equal(due.tenant, ONE);
    assert_string_equal(due.id, FILE_1);
    assert_int_equal(registry_aged_forget(registry, REGISTRY_AGED_FILES, &due, 49, NULL),
                     -ENOENT);
    assert_int_equal(registry_aged_forget(registry, REGISTRY_AGED_FILES, &due, 50, NULL), 0);
    registry_aged_row_finish(&due);
    assert_int_equal(delete_skill(registry, ONE, DIGEST_A), 0);
    assert_int_equal(stored(registry, ONE), 0);
    assert_int_equal(registry_digest_used(registry, DIGEST_C, &used, NULL), 0);
    assert_false(used);
    registry_close(registry);
}

static void keys_name_their_tenant(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    struct tenant_limits limits = tenant_limits_default();
    struct registry_key key, rows[3];
    size_t n = 0;

    assert_int_equal(put_key(registry, KEY_1, ONE, DIGEST_A, false, 0), 0);
    assert_int_equal(put_key(registry, KEY_2, TENANT_DEFAULT, DIGEST_B, true, 0), 0);
    assert_int_equal(put_key(registry, "key_none", "ten_none", DIGEST_C, true, 0), -ENOENT);
    assert_int_equal(registry_key_by_digest(registry, DIGEST_C, &key, NULL), -ENOENT);
    assert_int_equal(registry_key_by_digest(registry, DIGEST_A, &key, NULL), 0);
    assert_string_equal(key.tenant, ONE);
    assert_string_equal(key.id, KEY_1);
    assert_false(key.is_operator || key.tenant_disabled || key.revoked_ns || key.last_used_ns);
    registry_key_finish(&key);
    assert_int_equal(registry_key_touch(registry, KEY_1, 8, NULL), 0);
    assert_int_equal(put_key(registry, KEY_1, ONE, DIGEST_A, false, 9), 0);
    assert_int_equal(put_key(registry, "key_3", ONE, DIGEST_A, false, 9), -EEXIST);
    assert_int_equal(put_tenant(registry, ONE, "one", 10, true, &limits), 0);
    assert_int_equal(registry_key_by_digest(registry, DIGEST_A, &key, NULL), 0);
    assert_int_equal(key.last_used_ns, 8);
    assert_int_equal(key.revoked_ns, 9);
    assert_true(key.tenant_disabled);
    registry_key_finish(&key);
    assert_int_equal(registry_key_list(registry, NULL, 0, NULL, 3, rows, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].id, KEY_2);
    assert_true(rows[0].is_operator);
    registry_key_finish(&rows[0]);
    registry_key_finish(&rows[1]);
    assert_int_equal(registry_key_list(registry, ONE, 0, NULL, 3, rows, &n, NULL), 0);
    assert_int_equal(n, 1);
    registry_key_finish(&rows[0]);
    registry_close(registry);
}

static void usage_is_added_up(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    uint64_t ms = 1;

    assert_int_equal(registry_usage_day(86400000000000u * 3 + 5), 3);
    assert_int_equal(registry_usage_get(registry, ONE, 3, &ms, NULL), 0);
    assert_int_equal(ms, 0);
    assert_int_equal(registry_usage_add(registry, ONE, 3, 20, NULL), 0);
    assert_int_equal(registry_usage_add(registry, ONE, 3, 22, NULL), 0);
    assert_int_equal(registry_usage_add(registry, ONE, 4, 1, NULL), 0);
    assert_int_equal(registry_usage_add(registry, TWO, 3, 5, NULL), 0);
    assert_int_equal(registry_usage_add(registry, "ten_none", 3, 5, NULL), 0);
    assert_int_equal(registry_usage_get(registry, ONE, 3, &ms, NULL), 0);
    assert_int_equal(ms, 42);
    assert_int_equal(registry_usage_prune(registry, 4, NULL), 0);
    assert_int_equal(registry_usage_get(registry, ONE, 3, &ms, NULL), 0);
    assert_int_equal(ms, 0);
    assert_int_equal(registry_usage_get(registry, ONE, 4, &ms, NULL), 0);
    assert_int_equal(ms, 1);
    registry_close(registry);
}

static void audit_is_bounded(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    struct registry_audit rows[8];
    size_t n = 0;

    for (int i = 0; i < 6; i++) {
        const struct registry_audit deed = {.at_ns = (uint64_t)i,
                                            .tenant = i % 2 ? ONE : TWO,
                                            .actor = KEY_1,
                                            .action = "skill.push",
                                            .target = "x 1"};

        assert_int_equal(registry_audit_append(registry, &deed, NULL), 0);
    }
    assert_int_equal(registry_audit_list(registry, ONE, 0, "", 2, rows, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].at_ns, 5);
    assert_string_equal(rows[0].action, "skill.push");
    assert_string_equal(rows[0].detail, "");
    assert_int_equal(rows[1].at_ns, 3);
    registry_audit_finish(&rows[0]);
    registry_audit_finish(&rows[1]);
    assert_int_equal(registry_audit_prune_tenant(registry, ONE, 2, NULL), 0);
    assert_int_equal(registry_audit_prune_tenant(registry, TWO, 3, NULL), 0);
    assert_int_equal(registry_audit_list(registry, ONE, 0, "", 8, rows, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(rows[1].at_ns, 3);
    registry_audit_finish(&rows[0]);
    registry_audit_finish(&rows[1]);
    assert_int_equal(registry_audit_list(registry, NULL, rows[1].id, "", 8, rows, &n, NULL), 0);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++)
        registry_audit_finish(&rows[i]);
    assert_int_equal(registry_audit_prune(registry, 2, NULL), 0);
    assert_int_equal(registry_audit_list(registry, NULL, 0, "", 8, rows, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(rows[1].at_ns, 4);
    registry_audit_finish(&rows[0]);
    registry_audit_finish(&rows[1]);
    registry_close(registry);
}

static int get_tool(struct registry *registry, const char *packages, const char *images,
                    const char *script, char **ret)
{
    return registry_tool_schema_get(
        registry, &(struct registry_tool){DIGEST_A, packages, images, script}, ret, NULL);
}

static int put_tool(struct registry *registry, const char *packages, const char *images,
                    const char *script, const char *schema)
{
    return registry_tool_schema_put(
        registry, &(struct registry_tool){DIGEST_A, packages, images, script}, schema, NULL);
}

static void tool_schemas_go_with_their_skill(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    char *schema = NULL;

    assert_int_equal(put_tool(registry, "", "python", "", "{}"), 0);
    assert_int_equal(get_tool(registry, "", "python", "", &schema), -ENOENT);
    assert_int_equal(put_skill(registry, ONE, DIGEST_A), 0);
    assert_int_equal(put_skill(registry, TWO, DIGEST_A), 0);
    assert_int_equal(put_tool(registry, "", "python", "", "{}"), 0);
    assert_int_equal(put_tool(registry, "", "python", "a.py", NULL), 0);
    assert_int_equal(delete_skill(registry, ONE, DIGEST_A), 0);
    assert_int_equal(get_tool(registry, "", "python", "", &schema), 0);
    assert_string_equal(schema, "{}");
    free(schema);
    assert_int_equal(get_tool(registry, "", "python", "a.py", &schema), 0);
    assert_null(schema);
    /* Of other packages and other images nothing is known. */
    assert_int_equal(get_tool(registry, DIGEST_A, "python", "", &schema), -ENOENT);
    assert_int_equal(get_tool(registry, "", "data, python", "", &schema), -ENOENT);
    assert_int_equal(put_tool(registry, DIGEST_A, "python", "", "[]"), 0);
    assert_int_equal(get_tool(registry, "", "python", "", &schema), 0);
    assert_string_equal(schema, "{}");
    free(schema);
    assert_int_equal(delete_skill(registry, TWO, DIGEST_A), 0);
    assert_int_equal(get_tool(registry, "", "python", "", &schema), -ENOENT);
    assert_int_equal(get_tool(registry, DIGEST_A, "python", "", &schema), -ENOENT);
    registry_close(registry);
}

/* Beyond what all of a skill may have there is nothing of a script, which was looked at. */
static void tool_schemas_are_bounded_together(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    char *half = calloc(1, REGISTRY_SCHEMAS_MAX / 2 + 1), *schema = NULL;

    assert_non_null(half);
    memset(half, 'x', REGISTRY_SCHEMAS_MAX / 2);
    assert_int_equal(put_skill(registry, ONE, DIGEST_A), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(put_tool(registry, "", "python", "a.py", half), 0);
        assert_int_equal(put_tool(registry, "", "python", "b.py", half), 0);
    }
    assert_int_equal(put_tool(registry, "", "python", "c.py", "{}"), 0);
    assert_int_equal(get_tool(registry, "", "python", "c.py", &schema), 0);
    assert_null(schema);
    assert_int_equal(get_tool(registry, "", "python", "b.py", &schema), 0);
    assert_string_equal(schema, half);
    free(schema);
    /* Of other packages they are others. */
    assert_int_equal(put_tool(registry, DIGEST_A, "python", "c.py", "{}"), 0);
    assert_int_equal(get_tool(registry, DIGEST_A, "python", "c.py", &schema), 0);
    assert_string_equal(schema, "{}");
    free(schema);
    free(half);
    registry_close(registry);
}

static void a_tenant_goes_whole(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    struct registry_execution row;
    struct registry_key key;
    bool used = true;
    uint64_t ms = 0;

    for (int i = 0; i < 2; i++) {
        const char *tenant = i == 0 ? ONE : TWO;

        assert_int_equal(put_skill(registry, tenant, i == 0 ? DIGEST_A : DIGEST_B), 0);
        assert_int_equal(accept(registry, tenant, i == 0 ? ID_1 : ID_2, "k"), 0);
        assert_int_equal(registry_usage_add(registry, tenant, 3, 5, NULL), 0);
    }
    assert_int_equal(put_key(registry, KEY_1, ONE, DIGEST_A, false, 0), 0);
    assert_int_equal(registry_tenant_delete(registry, "ten_none", NULL), -ENOENT);
    assert_int_equal(registry_tenant_delete(registry, ONE, NULL), -EBUSY);
    end(registry, ID_1, 20);
    assert_int_equal(registry_tenant_delete(registry, ONE, NULL), 0);
    assert_int_equal(registry_execution_get(registry, ONE, ID_1, &row, NULL), -ENOENT);
    assert_int_equal(registry_execution_get(registry, TWO, ID_2, &row, NULL), 0);
    registry_execution_finish(&row);
    assert_int_equal(registry_key_by_digest(registry, DIGEST_A, &key, NULL), -ENOENT);
    assert_int_equal(registry_digest_used(registry, DIGEST_A, &used, NULL), 0);
    assert_false(used);
    assert_int_equal(registry_usage_get(registry, TWO, 3, &ms, NULL), 0);
    assert_int_equal(ms, 5);
    assert_int_equal(stored(registry, TWO), 100);
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

/* Changes of a cluster, as they are given together. */
struct given {
    const struct change *list;
};

static int give(const void *ctx, size_t at, struct change *ret)
{
    *ret = ((const struct given *)ctx)->list[at];
    return 0;
}

static unsigned make_changes(struct registry *registry, const struct change *list, size_t n)
{
    const struct change_place place = {.bucket = "b", .revision = n, .noted_ns = 7};
    const struct given given = {list};
    unsigned conflicts = 0;

    assert_int_equal(registry_changes_make(registry, n, give, &given, &place, &conflicts, NULL),
                     0);
    return conflicts;
}

static struct change named(const char *id, const char *name)
{
    struct change change = {.kind = CHANGE_TENANT,
                            .tenant = {.created_ns = 1, .limits = tenant_limits_default()}};

    (void)snprintf(change.id, sizeof(change.id), "%s", id);
    (void)snprintf(change.tenant.name, sizeof(change.tenant.name), "%s", name);
    return change;
}

static void expect_name(struct registry *registry, const char *id, const char *name)
{
    struct change there;

    assert_int_equal(registry_change_of(registry, CHANGE_TENANT, id, &there, NULL), 0);
    assert_string_equal(there.tenant.name, name);
}

/* What came between two states is not known: only together do changes agree. */
static void changes_are_made_together(void **state)
{
    struct registry *registry = open_with_tenants(*state);
    const struct change swapped[] = {named(ONE, "two"), named(TWO, "one")};
    const struct change taken[] = {named(ONE, "one"), named("ten_3", "three")};
    const struct change gone[] = {{.kind = CHANGE_TENANT, .id = TWO, .is_removed = true},
                                  {.kind = CHANGE_KEY, .id = KEY_2, .key = {.tenant = "ten_9"}},
                                  named(ONE, "one")};
    struct change_place place;
    struct registry_key key;
    char removed[TENANT_ID_SIZE];

    assert_int_equal(make_changes(registry, swapped, 2), 0);
    expect_name(registry, ONE, "two");
    expect_name(registry, TWO, "one");
    /* Somebody gave a name twice: the one that has it keeps it, and so does the other its own.
     */
    assert_int_equal(make_changes(registry, taken, 2), 1);
    expect_name(registry, ONE, "two");
    expect_name(registry, "ten_3", "three");
    assert_int_equal(put_key(registry, KEY_1, TWO, DIGEST_A, false, 0), 0);
    /* A name is free once its tenant is removed; a key of no tenant is nothing. */
    assert_int_equal(make_changes(registry, gone, 3), 0);
    expect_name(registry, ONE, "one");
    assert_int_equal(registry_key_by_digest(registry, DIGEST_A, &key, NULL), 0);
    assert_true(key.tenant_disabled);
    registry_key_finish(&key);
    assert_int_equal(registry_removed_after(registry, "", removed, NULL), 0);
    assert_string_equal(removed, TWO);
    assert_int_equal(registry_removed_after(registry, TWO, removed, NULL), -ENOENT);
    assert_int_equal(registry_place_get(registry, REGISTRY_PLACE_OF_CHANGES, &place, NULL), 0);
    assert_string_equal(place.bucket, "b");
    assert_int_equal(place.revision, 3);
    assert_int_equal(registry_place_forget(registry, REGISTRY_PLACE_OF_CHANGES, NULL), 0);
    assert_int_equal(registry_place_get(registry, REGISTRY_PLACE_OF_CHANGES, &place, NULL), 0);
    assert_string_equal(place.bucket, "");
    registry_close(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_is_a_word_or_hosts),
        IN_DIR(tenants_are_kept),
        IN_DIR(rows_belong_to_one_tenant),
        IN_DIR(stored_bytes_are_counted),
        IN_DIR(keys_name_their_tenant),
        IN_DIR(changes_are_made_together),
        IN_DIR(usage_is_added_up),
        IN_DIR(audit_is_bounded),
        IN_DIR(tool_schemas_go_with_their_skill),
        IN_DIR(tool_schemas_are_bounded_together),
        IN_DIR(a_tenant_goes_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
