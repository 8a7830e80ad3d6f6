/* SPDX-License-Identifier: Apache-2.0 */
/* Executions of others as rows, and what of one's own is to be told. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/recover.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/registry/registry_records.h"
#include "api/daemon/registry/registry_skill_plan.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/registry/registry_usage.h"
#include "tests/unit/registry_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS       "0123456789abcdef0123456789abcdef"
#define OTHER_DIGITS "fedcba9876543210fedcba9876543210"
#define ID_A         "exec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B         "exec_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define DIGEST       DIGITS DIGITS

static struct record other(const char *id)
{
    struct record r = {.tenant = TENANT_DEFAULT,
                       .node = "n",
                       .instance = DIGITS,
                       .skill_name = "s",
                       .accepted_ns = 5};

    (void)strcpy(r.id, id);
    return r;
}

static struct record other_ended(const char *id, const char *status)
{
    struct record r = other(id);

    (void)strcpy(r.status, status);
    r.finished_ns = 9;
    r.cpu_ms = 3;
    r.artifact_bytes = 10;
    (void)strcpy(r.artifact_digest, DIGEST);
    r.result = "{\"a\":1}";
    r.result_bytes = strlen(r.result);
    return r;
}

static void give(const void *ctx, size_t at, struct record *ret)
{
    *ret = ((const struct record *)ctx)[at];
}

static unsigned make(struct registry *registry, const struct record *records, size_t n)
{
    const struct change_place place = {.bucket = "b", .revision = 7, .noted_ns = 1};
    unsigned conflicts = 99;

    assert_int_equal(
        registry_records_make(registry, n, give, records, &place, &conflicts, NULL), 0);
    return conflicts;
}

static uint64_t used(struct registry *registry)
{
    uint64_t ms = 0;

    assert_int_equal(registry_usage_get(registry, TENANT_DEFAULT, 0, &ms, NULL), 0);
    return ms;
}

static uint64_t stored(struct registry *registry)
{
    struct registry_tenant row;
    uint64_t bytes;

    assert_int_equal(registry_tenant_get(registry, TENANT_DEFAULT, &row, NULL), 0);
    bytes = row.stored_bytes;
    registry_tenant_finish(&row);
    return bytes;
}

/* Whatever comes, and however often: one row, one end, one charge. */
static void records_become_rows_once(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record r = other(ID_A);
    struct registry_execution row;
    struct change_place place;
    struct registry_naming naming = {0};
    uint64_t bytes;

    assert_int_equal(make(registry, &r, 1), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL), 0);
    assert_string_equal(row.status, "accepted");
    assert_string_equal(row.node, "n");
    assert_int_equal(row.finished_ns, 0);
    registry_execution_finish(&row);
    /* It is nobody's to recover here. */
    assert_int_equal(registry_execution_unfinished(registry, &row, NULL), -ENOENT);
    r = other_ended(ID_A, "success");
    for (int i = 0; i < 2; i++)
        assert_int_equal(make(registry, &r, 1), 0);
    assert_int_equal(used(registry), 3);
    assert_int_equal(stored(registry), 10 + r.result_bytes + strlen("\n"));
    /* One that ended stays as it is. */
    r = other_ended(ID_A, "failed");
    assert_int_equal(make(registry, &r, 1), 0);
    r = other(ID_A);
    assert_int_equal(make(registry, &r, 1), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL), 0);
    assert_string_equal(row.status, "success");
    assert_int_equal(registry_execution_read_result(registry, &row, NULL), 0);
    assert_string_equal(row.result, "{\"a\":1}\n");
    assert_string_equal(row.artifact_digest, DIGEST);
    registry_execution_finish(&row);
    /* What it left is shared, in its size. */
    assert_int_equal(registry_object_bytes(registry, DIGEST, &bytes, NULL), 0);
    assert_int_equal(registry_object_naming(registry, DIGEST, &naming, NULL), 0);
    assert_true(naming.by_executions && !naming.by_changes);
    assert_int_equal(bytes, 10);
    assert_int_equal(registry_place_get(registry, REGISTRY_PLACE_OF_RECORDS, &place, NULL), 0);
    assert_int_equal(place.revision, 7);
    /* At once, by who only hears of its end. */
    r = other_ended(ID_B, "failed");
    for (int i = 0; i < 2; i++)
        assert_int_equal(make(registry, &r, 1), 0);
    /* And again with another beginning, as of one that was begun twice; it is counted once. */
    r.accepted_ns++;
    assert_int_equal(make(registry, &r, 1), 0);
    assert_int_equal(used(registry), 6);
    assert_int_equal(stored(registry), 2 * (10 + r.result_bytes + strlen("\n")));
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_B, &row, NULL), 0);
    assert_string_equal(row.status, "failed");
    assert_int_equal(registry_execution_read_result(registry, &row, NULL), 0);
    assert_string_equal(row.result, "{\"a\":1}\n");
    assert_string_equal(row.artifact_digest, DIGEST);
    assert_string_equal(row.node, "n");
    assert_true(row.accepted_ns == r.accepted_ns && row.finished_ns == r.finished_ns);
    registry_execution_finish(&row);
    registry_close(registry);
}

/* A tenant that is not there, one row of two tenants. */
static void what_can_be_no_row_is_counted(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record one = other_ended(ID_A, "failed");
    struct registry_execution row;

    (void)strcpy(one.tenant, "ten_" DIGITS);
    assert_int_equal(make(registry, &one, 1), 1);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL),
                     -ENOENT);
    one = other(ID_A);
    assert_int_equal(make(registry, &one, 1), 0);
    one = other_ended(ID_A, "failed");
    (void)strcpy(one.tenant, "ten_" DIGITS);
    assert_int_equal(make(registry, &one, 1), 1);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL), 0);
    assert_int_equal(row.finished_ns, 0);
    registry_execution_finish(&row);
    registry_close(registry);
}

static void accept(struct registry *registry, const char *id)
{
    const struct registry_execution e = {
        .id = id, .skill_name = "s", .skill_version = "", .skill_digest = "", .accepted_ns = 1};

    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &e, false, NULL), 0);
}

static void end(struct registry *registry, const char *id)
{
    const struct registry_ending ending = {.status = "success",
                                           .result = "{}\n",
                                           .result_len = 3,
                                           .finished_ns = 9,
                                           .cpu_ms = 4,
                                           .is_shared = true};

    assert_int_equal(registry_execution_end(registry, id, &ending, NULL), 0);
}

/* Its end is to be told, until it is; nobody else writes it but by an adoption. */
static void own_rows_are_told(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record record = other_ended(ID_A, "failed");
    struct registry_execution row;
    char *result, id[RECORD_ID_SIZE] = "";
    uint64_t n, bytes = 0;

    accept(registry, ID_A);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), -ENOENT);
    /* Also one that runs is told again, which says nothing of its end. */
    assert_int_equal(registry_records_untell(registry, 10, NULL), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), 0);
    assert_int_equal(registry_record_get(registry, ID_A, &record, &result, NULL), 0);
    assert_string_equal(record.status, "");
    assert_int_equal(record.finished_ns, 0);
    free(result);
    assert_int_equal(registry_record_told(registry, &record, NULL), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), -ENOENT);
    assert_int_equal(registry_records_untell(registry, 10, NULL), 0);
    record = other_ended(ID_A, "failed");
    assert_int_equal(make(registry, &record, 1), 0);
    end(registry, ID_A);
    assert_int_equal(registry_records_untold(registry, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), 0);
    assert_string_equal(id, ID_A);
    assert_int_equal(registry_record_get(registry, ID_A, &record, &result, NULL), 0);
    assert_string_equal(record.status, "success");
    assert_string_equal(result, "{}\n");
    assert_int_equal(record.cpu_ms, 4);
    free(result);
    /* That it began was confirmed at the same moment. */
    assert_int_equal(registry_record_told(registry, &(struct record){.id = ID_A}, NULL), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), 0);
    (void)strcpy(record.result_digest, DIGEST);
    assert_int_equal(registry_record_told(registry, &record, NULL), 0);
    /* Servers that lost something hear of what ended since. */
    assert_int_equal(registry_records_untell(registry, 10, NULL), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), -ENOENT);
    assert_int_equal(registry_records_untell(registry, 9, NULL), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), 0);
    assert_int_equal(registry_record_told(registry, &record, NULL), 0);
    /* One is told anew, whenever it ended; others are not. */
    assert_int_equal(registry_record_untell(registry, ID_B, NULL), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), -ENOENT);
    assert_int_equal(registry_record_untell(registry, ID_A, NULL), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), 0);
    assert_int_equal(registry_record_told(registry, &record, NULL), 0);
    /* The sweep asks for it. */
    assert_int_equal(registry_object_bytes(registry, DIGEST, &bytes, NULL), 0);
    assert_int_equal(bytes, 3);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), -ENOENT);
    record = other_ended(ID_A, "failed");
    (void)strcpy(record.skill_name, "t");
    assert_int_equal(registry_record_adopt(registry, &record, NULL), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL), 0);
    assert_string_equal(row.status, "failed");
    assert_string_equal(row.node, "");
    /* It may be another's, of another request under its key. */
    assert_string_equal(row.skill_name, "t");
    assert_int_equal(row.accepted_ns, record.accepted_ns);
    registry_execution_finish(&row);
    /* It counts as it does at the others. */
    assert_int_equal(used(registry), record.cpu_ms);
    assert_int_equal(stored(registry), 10 + record.result_bytes + strlen("\n"));
    registry_close(registry);
}

/* Where two were taken the last one counts, at who saw both and at whose own it is. */
static void the_last_end_is_true(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record first = other_ended(ID_A, "success"), last = other_ended(ID_A, "failed");
    struct registry_execution row;

    last.finished_ns = 10;
    last.cpu_ms = 0;
    assert_int_equal(make(registry, &first, 1), 0);
    assert_int_equal(make(registry, &last, 1), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL), 0);
    assert_string_equal(row.status, "failed");
    assert_int_equal(row.finished_ns, 10);
    registry_execution_finish(&row);
    assert_int_equal(used(registry), 0);
    accept(registry, ID_B);
    end(registry, ID_B);
    last = other_ended(ID_B, "failed");
    last.finished_ns = 10;
    assert_int_equal(make(registry, &last, 1), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_B, &row, NULL), 0);
    assert_string_equal(row.status, "failed");
    registry_execution_finish(&row);
    assert_int_equal(used(registry), last.cpu_ms);
    registry_close(registry);
}

/* Which processes have something that has not ended, each once. */
static void processes_are_found(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record r[] = {other(ID_A), other(ID_B)};
    struct registry_process none = {0}, p;
    char id[RECORD_ID_SIZE];

    accept(registry, "exec_" DIGITS);
    assert_int_equal(registry_record_process(registry, &none, &p, NULL), -ENOENT);
    assert_int_equal(make(registry, r, 2), 0);
    assert_int_equal(registry_record_process(registry, &none, &p, NULL), 0);
    assert_string_equal(p.node, "n");
    assert_int_equal(registry_record_unfinished(registry, &p, false, "", id, NULL), 0);
    assert_string_equal(id, ID_A);
    assert_int_equal(registry_record_unfinished(registry, &p, false, id, id, NULL), 0);
    assert_string_equal(id, ID_B);
    assert_int_equal(registry_record_unfinished(registry, &p, false, id, id, NULL), -ENOENT);
    none = p;
    assert_int_equal(registry_record_process(registry, &none, &p, NULL), -ENOENT);
    /* On its own a daemon has none of them. */
    assert_int_equal(registry_place_forget(registry, REGISTRY_PLACE_OF_RECORDS, NULL), 0);
    none = (struct registry_process){0};
    assert_int_equal(registry_record_process(registry, &none, &p, NULL), -ENOENT);
    registry_close(registry);
}

/* What a daemon had as a node it says an end of once it is on its own. */
static void what_waited_in_a_cluster_fails_without_one(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record r[] = {other(ID_A), other(ID_B)};
    struct registry_execution row;

    r[1].waits = true;
    assert_int_equal(make(registry, r, 2), 0);
    assert_int_equal(recover_executions(registry, NULL, NULL), 0);
    assert_int_equal(registry_place_forget(registry, REGISTRY_PLACE_OF_RECORDS, NULL), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL),
                     -ENOENT);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_B, &row, NULL), 0);
    assert_string_equal(row.status, "failed");
    assert_int_equal(registry_execution_read_result(registry, &row, NULL), 0);
    assert_non_null(strstr(row.result, "this daemon is on its own now"));
    registry_execution_finish(&row);
    /* Where it is a node again what another says of it is true. */
    r[1] = other_ended(ID_B, "success");
    assert_int_equal(make(registry, &r[1], 1), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_B, &row, NULL), 0);
    assert_string_equal(row.status, "success");
    registry_execution_finish(&row);
    registry_close(registry);
}

/* The last beginning counts, whoever's it is, and takes nothing of a stranger's. */
static void what_begins_anew_is_new(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record r = other_ended(ID_A, "success");
    struct registry_execution row;
    struct registry_execution own = {.id = ID_B,
                                     .skill_name = "mine",
                                     .skill_version = "",
                                     .skill_digest = "",
                                     .accepted_ns = 8};

    assert_int_equal(make(registry, &r, 1), 0);
    assert_int_equal(used(registry), r.cpu_ms);
    /* All forgot it but this node, or never heard of it. */
    r = other(ID_A);
    r.accepted_ns = 20;
    assert_int_equal(make(registry, &r, 1), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL), 0);
    assert_string_equal(row.status, "accepted");
    assert_int_equal(row.accepted_ns, 20);
    registry_execution_finish(&row);
    assert_int_equal(stored(registry), 0);
    assert_int_equal(used(registry), 0);
    /* Another node's acceptance came before this node's own, which was the last. */
    r = other(ID_B);
    assert_int_equal(make(registry, &r, 1), 0);
    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, false, NULL), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_B, &row, NULL), 0);
    assert_string_equal(row.node, "");
    assert_string_equal(row.skill_name, "mine");
    assert_int_equal(row.accepted_ns, 8);
    registry_execution_finish(&row);
    /* Its own row is not another's to begin anew, nor another tenant's to end. */
    r.accepted_ns = 30;
    assert_int_equal(make(registry, &r, 1), 0);
    r = other_ended(ID_B, "failed");
    (void)strcpy(r.tenant, "ten_" DIGITS);
    assert_int_equal(registry_record_adopt(registry, &r, NULL), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_B, &row, NULL), 0);
    assert_int_equal(row.accepted_ns, 8);
    assert_int_equal(row.finished_ns, 0);
    registry_execution_finish(&row);
    registry_close(registry);
}

/* A key that another has breaks nothing. */
static void a_key_of_another_is_left_out(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record r[] = {other_ended(ID_A, "success"), other_ended(ID_B, "success")};

    for (int i = 0; i < 2; i++) {
        (void)strcpy(r[i].idempotency_key, i == 0 ? "k" : "l");
        (void)strcpy(r[i].request_digest, DIGEST);
    }
    assert_int_equal(make(registry, r, 2), 0);
    r[0].finished_ns = 11;
    (void)strcpy(r[0].idempotency_key, "l");
    assert_int_equal(make(registry, r, 1), 0);
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

static struct record row_of(struct registry *registry, const char *id)
{
    struct record r = {0};

    assert_int_equal(registry_record_other(registry, id, &r, NULL), 0);
    return r;
}

static bool is_with(struct registry *registry, const char *node, const char *instance,
                    const char *id)
{
    struct registry_process process = {0};
    char found[RECORD_ID_SIZE] = "";

    (void)strcpy(process.node, node);
    (void)strcpy(process.instance, instance);
    return (registry_record_unfinished(registry, &process, true, "", found, NULL) == 0 ||
            registry_record_unfinished(registry, &process, false, "", found, NULL) == 0) &&
           strcmp(found, id) == 0;
}

/* It goes from process to process, until one begins it. */
static void what_waits_is_passed_on(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_process self = {.node = "self", .instance = OTHER_DIGITS};
    struct registry_execution own = {.id = ID_A,
                                     .skill_name = "s",
                                     .skill_version = "",
                                     .skill_digest = "",
                                     .accepted_ns = 5};
    struct record record = other(ID_A);
    char id[RECORD_ID_SIZE];

    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, true, NULL), 0);
    assert_int_equal(registry_records_leave(registry, &self, "", NULL), 0);
    assert_true(is_with(registry, "self", OTHER_DIGITS, ID_A));
    assert_true(row_of(registry, ID_A).waits);
    assert_int_equal(registry_record_unfinished(registry, &self, false, "", id, NULL), -ENOENT);
    assert_int_equal(registry_record_unfinished(registry, &self, true, "", id, NULL), 0);
    assert_string_equal(id, ID_A);
    assert_int_equal(make(registry, &record, 1), 0);
    assert_true(is_with(registry, "n", DIGITS, ID_A));
    assert_false(row_of(registry, ID_A).waits);
    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, false, NULL), 0);
    assert_false(is_with(registry, "n", DIGITS, ID_A));
    /* What has begun is left to nobody. */
    assert_int_equal(registry_records_leave(registry, &self, "", NULL), 0);
    assert_false(is_with(registry, "self", OTHER_DIGITS, ID_A));
    assert_int_equal(registry_record_pass(registry, &record, false, NULL), 0);
    assert_false(is_with(registry, "n", DIGITS, ID_A));
    assert_int_equal(registry_record_pass(registry, &record, true, NULL), 0);
    assert_true(is_with(registry, "n", DIGITS, ID_A));
    record = other_ended(ID_A, "success");
    assert_int_equal(make(registry, &record, 1), 0);
    assert_false(is_with(registry, "n", DIGITS, ID_A));
    registry_close(registry);
}

/* What waits here and another process took is that one's, also where it ended it meanwhile. */
static void what_others_took_is_theirs(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_execution own = {.id = ID_A,
                                     .skill_name = "s",
                                     .skill_version = "",
                                     .skill_digest = "",
                                     .accepted_ns = 5};
    struct record begun = other(ID_A), ended = other_ended(ID_B, "success");
    struct registry_execution row;

    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, true, NULL), 0);
    own.id = ID_B;
    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, true, NULL), 0);
    assert_int_equal(make(registry, &begun, 1), 0);
    assert_true(is_with(registry, "n", DIGITS, ID_A));
    assert_int_equal(make(registry, &ended, 1), 0);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_B, &row, NULL), 0);
    assert_string_equal(row.status, "success");
    registry_execution_finish(&row);
    registry_close(registry);
}

/* Taken over it may wait here again, or may be begun again where this process ends too. */
static void what_was_taken_over_is_left_again(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_process self = {.node = "self", .instance = OTHER_DIGITS};
    struct registry_execution own = {.id = ID_A,
                                     .skill_name = "s",
                                     .skill_version = "",
                                     .skill_digest = "",
                                     .accepted_ns = 5};
    struct record begun = other(ID_A);

    begun.retries = 1;
    assert_int_equal(make(registry, &begun, 1), 0);
    assert_true(row_of(registry, ID_A).waits);
    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, true, NULL), 0);
    assert_int_equal(registry_records_leave(registry, &self, "", NULL), 0);
    assert_true(is_with(registry, "self", OTHER_DIGITS, ID_A));
    registry_close(registry);
}

/* What ended here has not where another process runs it: nothing of it counts. */
static void what_is_begun_again_has_not_ended(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_execution own = {.id = ID_A,
                                     .skill_name = "s",
                                     .skill_version = "",
                                     .skill_digest = "",
                                     .accepted_ns = 6};
    const struct registry_ending ending = {.status = "failed",
                                           .result = "{}\n",
                                           .result_len = 3,
                                           .finished_ns = 9,
                                           .artifact_digest = DIGITS DIGITS,
                                           .artifact_bytes = 7,
                                           .cpu_ms = 5,
                                           .is_shared = true};
    struct record begun = other(ID_A);
    struct registry_execution row;
    char id[RECORD_ID_SIZE];

    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, true, NULL), 0);
    assert_int_equal(registry_execution_end(registry, ID_A, &ending, NULL), 0);
    assert_int_equal(used(registry), 5);
    /* Another end has come meanwhile. */
    assert_int_equal(registry_record_reopen(registry, &begun, 8, NULL), 0);
    assert_int_equal(used(registry), 5);
    assert_int_equal(registry_record_reopen(registry, &begun, 9, NULL), 0);
    assert_true(is_with(registry, "n", DIGITS, ID_A));
    assert_int_equal(used(registry), 0);
    assert_int_equal(registry_record_untold(registry, "", id, NULL), -ENOENT);
    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_A, &row, NULL), 0);
    assert_string_equal(row.status, "accepted");
    assert_int_equal(row.finished_ns, 0);
    assert_int_equal(row.accepted_ns, begun.accepted_ns);
    assert_int_equal(row.artifact_bytes, 0);
    registry_execution_finish(&row);
    /* And what this process says of it later is not heard. */
    assert_int_equal(registry_execution_end(registry, ID_A, &ending, NULL), -ENOENT);
    assert_true(is_with(registry, "n", DIGITS, ID_A));
    registry_close(registry);
}

/* The end says which of two beginnings is true. */
static void who_ends_it_says_when_it_began(void **state)
{
    struct registry *registry = open_registry(*state);
    struct record begun = other(ID_A), ended = other_ended(ID_A, "failed");

    ended.accepted_ns = begun.accepted_ns + 1;
    assert_int_equal(make(registry, &begun, 1), 0);
    assert_int_equal(make(registry, &ended, 1), 0);
    assert_int_equal(row_of(registry, ID_A).accepted_ns, ended.accepted_ns);
    registry_close(registry);
}

static void one_that_begins_is_left_to_nobody(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_process self = {.node = "self", .instance = DIGITS};
    struct registry_execution own = {.id = ID_A,
                                     .skill_name = "s",
                                     .skill_version = "",
                                     .skill_digest = "",
                                     .accepted_ns = 5};

    assert_int_equal(registry_record_accept(registry, TENANT_DEFAULT, &own, true, NULL), 0);
    assert_int_equal(registry_record_begun(registry, ID_A, NULL), 0);
    assert_int_equal(registry_records_leave(registry, &self, "", NULL), 0);
    assert_false(is_with(registry, "self", DIGITS, ID_A));
    registry_close(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(records_become_rows_once),
        IN_DIR(what_can_be_no_row_is_counted),
        IN_DIR(own_rows_are_told),
        IN_DIR(the_last_end_is_true),
        IN_DIR(processes_are_found),
        IN_DIR(what_waited_in_a_cluster_fails_without_one),
        IN_DIR(what_begins_anew_is_new),
        IN_DIR(a_key_of_another_is_left_out),
        IN_DIR(what_waits_is_passed_on),
        IN_DIR(what_was_taken_over_is_left_again),
        IN_DIR(what_is_begun_again_has_not_ended),
        IN_DIR(one_that_begins_is_left_to_nobody),
        IN_DIR(who_ends_it_says_when_it_began),
        IN_DIR(what_others_took_is_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
