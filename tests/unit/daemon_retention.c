/* SPDX-License-Identifier: Apache-2.0 */
/* What is forgotten when, what is kept, what the disk gets back. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/retention.h"
#include "api/daemon/registry/registry_files.h"
#include "api/daemon/registry/registry_retention.h"
#include "api/daemon/registry/registry_sessions.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/registry/registry_usage.h"
#include "api/daemon/store/store.h"
#include "api/skill/sha256.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/registry_dir.h"
#include "tests/unit/registry_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_NS   (24 * 3600 * 1000000000ull)
#define DAY_MS   (24 * 3600 * 1000ull)
#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* A data folder with a retention that has no thread. */
struct fixture {
    const char *dir;
    struct data_folder folder;
    struct store *store;
    struct registry *registry;
    struct retention *retention;
};

static int is_named(void *ctx, const char *digest, bool *ret_named, struct err *err)
{
    return registry_digest_used(ctx, digest, ret_named, err);
}

static struct fixture open_all(const char *dir, const struct config_retention *settings)
{
    struct fixture f = {.dir = dir};
    struct retention_env env;

    assert_int_equal(data_folder_open(dir, &f.folder, NULL), 0);
    f.registry = open_registry(dir);
    assert_int_equal(store_create(&f.folder, is_named, f.registry, &f.store, NULL), 0);
    env = (struct retention_env){.registry = f.registry, .store = f.store};
    assert_int_equal(retention_create(&env, settings, &f.retention, NULL), 0);
    return f;
}

static void close_all(struct fixture *f)
{
    retention_destroy(f->retention);
    registry_close(f->registry);
    store_destroy(f->store);
    data_folder_close(&f->folder);
}

static void make_object(struct fixture *f, const char *text, char ret_digest[SHA256_HEX_SIZE])
{
    _cleanup_store_lock_ struct store *store = store_lock(f->store);
    _cleanup_fd_ int fd = store_temporary(store);

    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(sha256_of(text, strlen(text), ret_digest), 0);
    assert_int_equal(store_put(store, fd, ret_digest, NULL), 0);
}

static bool has_object(const struct fixture *f, const char *digest)
{
    return faccessat(f->folder.objects_fd, digest, F_OK, 0) == 0;
}

/* An execution that ended at a time, with or without files. */
static void add_execution_of(struct fixture *f, const char *tenant, unsigned number,
                             uint64_t end_ns, const char *digest, uint64_t bytes)
{
    char id[38];
    const struct registry_execution a = {.id = id,
                                         .skill_name = "x",
                                         .skill_version = "1",
                                         .skill_digest = DIGEST_A,
                                         .accepted_ns = end_ns ? end_ns - 1 : 1};
    const struct registry_ending e = {.status = "success",
                                      .result = "{}",
                                      .result_len = 2,
                                      .finished_ns = end_ns,
                                      .artifact_digest = digest,
                                      .artifact_bytes = bytes};

    snprintf(id, sizeof(id), "exec_%032x", number);
    assert_int_equal(registry_execution_accept(f->registry, tenant, &a, NULL), 0);
    if (end_ns)
        assert_int_equal(registry_execution_end(f->registry, id, &e, NULL), 0);
}

static void add_execution(struct fixture *f, unsigned number, uint64_t end_ns,
                          const char *digest, uint64_t bytes)
{
    add_execution_of(f, TENANT_DEFAULT, number, end_ns, digest, bytes);
}

static bool has_execution_of(struct fixture *f, const char *tenant, unsigned number)
{
    struct registry_execution row;
    char id[38];
    int r;

    snprintf(id, sizeof(id), "exec_%032x", number);
    r = registry_execution_get(f->registry, tenant, id, &row, NULL);
    if (r == 0)
        registry_execution_finish(&row);
    else
        assert_int_equal(r, -ENOENT);
    return r == 0;
}

static bool has_execution(struct fixture *f, unsigned number)
{
    return has_execution_of(f, TENANT_DEFAULT, number);
}

static uint64_t stored(struct fixture *f)
{
    struct registry_tenant tenant;
    uint64_t bytes;

    assert_int_equal(registry_tenant_get(f->registry, TENANT_DEFAULT, &tenant, NULL), 0);
    bytes = tenant.stored_bytes;
    registry_tenant_finish(&tenant);
    return bytes;
}

static struct retention_report pass(struct fixture *f, uint64_t now_ns)
{
    struct retention_report report;
    struct err err = {0};

    if (retention_pass(f->retention, now_ns, &report, &err) < 0)
        fail_msg("%s", err.message);
    return report;
}

static void old_executions_go(void **state)
{
    const struct config_retention settings = {.executions_age_ms = 10 * DAY_MS};
    struct fixture f = open_all(*state, &settings);
    char own[SHA256_HEX_SIZE], shared[SHA256_HEX_SIZE];
    struct retention_report report;
    char text[16] = {0};
    int reader;

    make_object(&f, "of one", own);
    make_object(&f, "of both", shared);
    add_execution(&f, 1, 5 * DAY_NS, own, 6);
    add_execution(&f, 2, 5 * DAY_NS, shared, 7);
    add_execution(&f, 3, 15 * DAY_NS, shared, 7);
    add_execution(&f, 4, 0, NULL, 0); /* still runs, since ever */
    assert_int_equal(stored(&f), 3 * 2 + 6 + 7 + 7);
    report = pass(&f, 14 * DAY_NS);
    assert_int_equal(report.executions, 0);
    reader = store_get(f.store, own, NULL);
    report = pass(&f, 20 * DAY_NS);
    assert_int_equal(report.executions, 2);
    assert_false(has_execution(&f, 1));
    assert_false(has_execution(&f, 2));
    assert_true(has_execution(&f, 3));
    assert_true(has_execution(&f, 4));
    assert_false(has_object(&f, own));
    assert_true(has_object(&f, shared));
    assert_int_equal(stored(&f), 2 + 7);
    /* Who has it open reads on. */
    assert_int_equal(fd_read_full(reader, text, sizeof(text)), 6);
    assert_string_equal(text, "of one");
    close(reader);
    assert_int_equal(pass(&f, 1000 * DAY_NS).executions, 1);
    assert_false(has_object(&f, shared));
    assert_true(has_execution(&f, 4));
    close_all(&f);
}

static void the_oldest_go_first(void **state)
{
    struct config_retention settings = {.executions_bytes = 1000};
    struct fixture f = open_all(*state, &settings);
    char digest[SHA256_HEX_SIZE];

    make_object(&f, "some", digest);
    for (unsigned i = 1; i <= 200; i++)
        add_execution(&f, i, 1000 - i, digest, 98);
    /* 100 bytes each, 10 of them fit; the ones that ended last stay. */
    assert_int_equal(pass(&f, 2000).executions, 190);
    for (unsigned i = 1; i <= 200; i++)
        assert_int_equal(has_execution(&f, i), i <= 10);
    assert_int_equal(pass(&f, 2000).executions, 0);
    settings.executions_bytes = 0;
    retention_set(f.retention, &settings);
    assert_int_equal(pass(&f, 2000).executions, 0);
    settings.executions_bytes = 1;
    retention_set(f.retention, &settings);
    assert_int_equal(pass(&f, 2000).executions, 10);
    assert_false(has_object(&f, digest));
    assert_int_equal(stored(&f), 0);
    close_all(&f);
}

static void add_file(struct fixture *f, unsigned number, const char *digest,
                     uint64_t expires_ns)
{
    struct registry_file row = {.bytes = 4, .created_ns = 1, .expires_ns = expires_ns};
    char name[] = "name", type[] = "text/plain", copy[SHA256_HEX_SIZE];

    snprintf(row.id, sizeof(row.id), "file_%032x", number);
    snprintf(copy, sizeof(copy), "%s", digest);
    row.name = name;
    row.content_type = type;
    row.digest = copy;
    assert_int_equal(registry_file_create(f->registry, TENANT_DEFAULT, &row, NULL), 0);
}

static void files_expire(void **state)
{
    struct config_retention settings = {.files_age_ms = 7 * DAY_MS};
    struct fixture f = open_all(*state, &settings);
    char digest[SHA256_HEX_SIZE];

    assert_int_equal(retention_file_expiry(f.retention, 100), 100 + 7 * DAY_NS);
    settings.files_age_ms = 0;
    retention_set(f.retention, &settings);
    assert_int_equal(retention_file_expiry(f.retention, 100), INT64_MAX);
    make_object(&f, "file", digest);
    for (unsigned i = 1; i <= 150; i++)
        add_file(&f, i, digest, 10 * i);
    assert_int_equal(pass(&f, 1400).files, 140);
    assert_int_equal(stored(&f), 10 * 4);
    assert_true(has_object(&f, digest));
    assert_int_equal(pass(&f, 1500).files, 10);
    assert_false(has_object(&f, digest));
    close_all(&f);
}

static void add_session(struct fixture *f, const char *id, char *digest, uint64_t used_ns)
{
    struct registry_session session = {.tenant = TENANT_DEFAULT,
                                       .digest = digest,
                                       .bytes = 5,
                                       .files = 1,
                                       .changed_ns = used_ns};
    struct registry_execution accepted = {.id = id,
                                          .skill_name = "x",
                                          .skill_version = "1",
                                          .skill_digest = "d",
                                          .accepted_ns = used_ns};
    const struct registry_ending ending = {
        .status = "success", .result = "", .finished_ns = used_ns, .session = &session};

    snprintf(session.id, sizeof(session.id), "%s", id);
    assert_int_equal(registry_execution_accept(f->registry, TENANT_DEFAULT, &accepted, NULL),
                     0);
    assert_int_equal(registry_execution_end(f->registry, id, &ending, NULL), 0);
}

static void unused_sessions_go(void **state)
{
    struct config_retention settings = {.sessions_age_ms = 7 * DAY_MS};
    struct fixture f = open_all(*state, &settings);
    char digest[SHA256_HEX_SIZE], id[32];

    assert_int_equal(retention_session_expiry(f.retention, 100), 100 + 7 * DAY_NS);
    make_object(&f, "tree", digest);
    for (unsigned i = 1; i <= 100; i++) {
        snprintf(id, sizeof(id), "s%u", i);
        add_session(&f, id, digest, 10 * i);
    }
    assert_int_equal(stored(&f), 500);
    assert_int_equal(registry_session_use(f.registry, TENANT_DEFAULT, "s3", 5000, NULL), 0);
    assert_int_equal(pass(&f, 7 * DAY_NS + 900).sessions, 89);
    assert_int_equal(stored(&f), 11 * 5);
    assert_true(has_object(&f, digest));
    /* What is removed while it is used stays: it was looked at before that. */
    assert_int_equal(registry_aged_forget(
                         f.registry, REGISTRY_AGED_SESSIONS,
                         &(struct registry_aged_row){TENANT_DEFAULT, "s3", digest}, 4999, NULL),
                     -ENOENT);
    settings.sessions_age_ms = 0;
    retention_set(f.retention, &settings);
    assert_int_equal(pass(&f, 90 * DAY_NS).sessions, 0);
    settings.sessions_age_ms = DAY_MS;
    retention_set(f.retention, &settings);
    assert_int_equal(pass(&f, 90 * DAY_NS).sessions, 11);
    assert_false(has_object(&f, digest));
    assert_int_equal(stored(&f), 0);
    close_all(&f);
}

static void orphans_are_swept(void **state)
{
    const struct config_retention settings = {0};
    struct fixture f = open_all(*state, &settings);
    char orphan[SHA256_HEX_SIZE], kept[SHA256_HEX_SIZE];

    make_object(&f, "orphan", orphan);
    make_object(&f, "kept", kept);
    add_execution(&f, 1, 1, kept, 4);
    assert_int_equal(pass(&f, 2).objects, 1);
    assert_false(has_object(&f, orphan));
    assert_true(has_object(&f, kept));
    close_all(&f);
}

static void storage_has_a_limit(void **state)
{
    const struct config_retention settings = {0};
    struct fixture f = open_all(*state, &settings);
    struct tenant_limits limits = tenant_limits_default();
    struct err err = {0};

    add_execution(&f, 1, 1, DIGEST_A, 98);
    assert_int_equal(registry_tenant_check_room(f.registry, TENANT_DEFAULT, 1ull << 50, NULL),
                     0);
    limits.storage_bytes = 200;
    assert_int_equal(put_tenant(f.registry, TENANT_DEFAULT, "default", 1, false, &limits), 0);
    assert_int_equal(registry_tenant_check_room(f.registry, TENANT_DEFAULT, 100, NULL), 0);
    assert_int_equal(registry_tenant_check_room(f.registry, TENANT_DEFAULT, 101, &err),
                     -EDQUOT);
    assert_non_null(strstr(err.message, "storage_bytes: 100 of 200 bytes"));
    limits.storage_bytes = 50;
    assert_int_equal(put_tenant(f.registry, TENANT_DEFAULT, "default", 1, false, &limits), 0);
    assert_int_equal(registry_tenant_check_room(f.registry, TENANT_DEFAULT, 0, NULL), 0);
    assert_int_equal(registry_tenant_check_room(f.registry, TENANT_DEFAULT, 1, NULL), -EDQUOT);
    close_all(&f);
}

/* What executions leave beyond a tenant's storage goes, the oldest first; another's stays. */
static void tenants_keep_to_their_storage(void **state)
{
    const struct config_retention settings = {0};
    struct fixture f = open_all(*state, &settings);
    struct tenant_limits limits = tenant_limits_default();
    const uint64_t hour_ns = 3600 * 1000000000ull;

    for (unsigned i = 1; i <= 100; i++)
        add_execution(&f, i, i, NULL, 98);
    add_execution(&f, 101, hour_ns, NULL, 98);
    assert_int_equal(pass(&f, hour_ns).executions, 0);
    limits.storage_bytes = 1000;
    assert_int_equal(put_tenant(f.registry, TENANT_DEFAULT, "default", 1, false, &limits), 0);
    assert_int_equal(pass(&f, hour_ns).executions, 91);
    assert_false(has_execution(&f, 91));
    assert_true(has_execution(&f, 92));
    assert_int_equal(stored(&f), 1000);
    /* What ended a moment ago stays a while, whatever it takes. */
    limits.storage_bytes = 10;
    assert_int_equal(put_tenant(f.registry, TENANT_DEFAULT, "default", 1, false, &limits), 0);
    assert_int_equal(pass(&f, hour_ns).executions, 9);
    assert_true(has_execution(&f, 101));
    assert_int_equal(pass(&f, 2 * hour_ns).executions, 1);
    close_all(&f);
}

/* What is too much for all goes of a tenant that has too much, however lately that ended. */
static void who_has_too_much_pays_for_it(void **state)
{
    const struct config_retention settings = {.executions_bytes = 1000};
    struct fixture f = open_all(*state, &settings);
    struct tenant_limits limits = tenant_limits_default();
    const uint64_t now_ns = 3600 * 1000000000ull;

    assert_int_equal(put_tenant(f.registry, "thrifty", "thrifty", 1, false, &limits), 0);
    add_execution_of(&f, "thrifty", 99, 1, NULL, 98);
    for (unsigned i = 1; i <= 20; i++)
        add_execution(&f, i, now_ns - 21 + i, NULL, 98);
    limits.storage_bytes = 500;
    assert_int_equal(put_tenant(f.registry, TENANT_DEFAULT, "default", 1, false, &limits), 0);
    assert_int_equal(pass(&f, now_ns).executions, 11);
    assert_true(has_execution_of(&f, "thrifty", 99));
    assert_false(has_execution(&f, 11));
    assert_true(has_execution(&f, 12));
    /* Who has no more than it may loses what is older. */
    limits.storage_bytes = 900;
    assert_int_equal(put_tenant(f.registry, TENANT_DEFAULT, "default", 1, false, &limits), 0);
    add_execution_of(&f, "thrifty", 98, now_ns, NULL, 98);
    assert_int_equal(pass(&f, now_ns).executions, 1);
    assert_false(has_execution_of(&f, "thrifty", 99));
    close_all(&f);
}

static off_t size_of(const char *dir, const char *name)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void fill(struct fixture *f, unsigned from, unsigned n)
{
    static char result[64 * 1024];

    memset(result, ' ', sizeof(result));
    for (unsigned i = from; i < from + n; i++) {
        char id[38];
        const struct registry_ending e = {.status = "success",
                                          .result = result,
                                          .result_len = sizeof(result),
                                          .finished_ns = 1};

        snprintf(id, sizeof(id), "exec_%032x", i);
        add_execution(f, i, 0, NULL, 0);
        assert_int_equal(registry_execution_end(f->registry, id, &e, NULL), 0);
    }
}

static void the_disk_gets_its_room_back(void **state)
{
    const struct config_retention settings = {.executions_age_ms = DAY_MS};
    struct fixture f = open_all(*state, &settings);
    off_t full;

    fill(&f, 1, 300);
    assert_int_equal(registry_checkpoint(f.registry, NULL), 0);
    full = size_of(f.dir, "skillvm.db");
    assert_true(full > 300 * 64 * 1024);
    assert_int_equal(pass(&f, 10 * DAY_NS).executions, 300);
    assert_true(size_of(f.dir, "skillvm.db") < full / 4);
    assert_int_equal(size_of(f.dir, "skillvm.db-wal"), 0);
    close_all(&f);
}

/* The thread works by itself, and at once when it is told of other settings. */
static uint64_t used_ms(struct fixture *f, uint64_t day)
{
    uint64_t ms = 0;

    assert_int_equal(registry_usage_get(f->registry, TENANT_DEFAULT, day, &ms, NULL), 0);
    return ms;
}

static void usage_of_days_that_are_over_goes(void **state)
{
    const struct config_retention settings = {.executions_age_ms = 10 * DAY_MS};
    struct fixture f = open_all(*state, &settings);

    for (uint64_t day = 17; day <= 20; day++)
        assert_int_equal(registry_usage_add(f.registry, TENANT_DEFAULT, day, day, NULL), 0);
    (void)pass(&f, 20 * DAY_NS);
    assert_int_equal(used_ms(&f, 17), 0);
    assert_int_equal(used_ms(&f, 18), 0);
    assert_int_equal(used_ms(&f, 19), 19);
    assert_int_equal(used_ms(&f, 20), 20);
    close_all(&f);
}

static void the_thread_works(void **state)
{
    struct config_retention settings = {.executions_bytes = 1ull << 30, .interval_ms = 3600000};
    struct fixture f = open_all(*state, &settings);

    for (unsigned i = 1; i <= 100; i++)
        add_execution(&f, i, i, NULL, 100);
    assert_int_equal(retention_start(f.retention, NULL), 0);
    usleep(50000);
    assert_true(has_execution(&f, 1));
    settings.executions_bytes = 1;
    retention_set(f.retention, &settings);
    for (int i = 0; i < 6000 && has_execution(&f, 100); i++)
        usleep(10000);
    assert_false(has_execution(&f, 100));
    close_all(&f);
}

/* Not each use of a session is written, and none so late that it goes meanwhile. */
static void a_use_is_written_when_it_counts(void **state)
{
    struct config_retention settings = {.sessions_age_ms = 16 * DAY_MS};
    struct fixture f = open_all(*state, &settings);
    const uint64_t now_ns = clock_realtime_ns();
    struct registry_session row;
    char digest[SHA256_HEX_SIZE];

    make_object(&f, "tree", digest);
    add_session(&f, "recent", digest, now_ns - DAY_NS / 2);
    add_session(&f, "older", digest, now_ns - 2 * DAY_NS);
    for (int written = 0; written < 2; written++) {
        const char *id = written ? "older" : "recent";
        uint64_t before_ns;

        assert_int_equal(registry_session_get(f.registry, TENANT_DEFAULT, id, &row, NULL), 0);
        before_ns = row.used_ns;
        retention_use_session(f.retention, &row);
        assert_int_equal(row.used_ns > before_ns, written);
        registry_session_finish(&row);
        assert_int_equal(registry_session_get(f.registry, TENANT_DEFAULT, id, &row, NULL), 0);
        assert_int_equal(row.used_ns > before_ns, written);
        registry_session_finish(&row);
    }
    settings.sessions_age_ms = 0;
    retention_set(f.retention, &settings);
    assert_int_equal(registry_session_get(f.registry, TENANT_DEFAULT, "recent", &row, NULL), 0);
    row.used_ns = 0;
    retention_use_session(f.retention, &row);
    assert_int_equal(row.used_ns, 0);
    registry_session_finish(&row);
    close_all(&f);
}

/* How an execution reads: its status, or "" where there is none. */
static const char *status_of(struct fixture *f, unsigned number)
{
    static char status[16];
    struct registry_execution row;
    char id[38];

    snprintf(id, sizeof(id), "exec_%032x", number);
    if (registry_execution_get(f->registry, TENANT_DEFAULT, id, &row, NULL) < 0)
        return "";
    snprintf(status, sizeof(status), "%s", row.status);
    assert_int_equal(registry_execution_read_result(f->registry, &row, NULL), 0);
    if (row.finished_ns > 0 && strcmp(status, "failed") == 0)
        assert_non_null(strstr(row.result, "its result could not be stored: no room"));
    registry_execution_finish(&row);
    return status;
}

static void end_later(struct fixture *f, unsigned number)
{
    char id[38];

    snprintf(id, sizeof(id), "exec_%032x", number);
    retention_end_later(f->retention, TENANT_DEFAULT, id, "no room");
}

/* What was stored after all stays as it is, and what is gone is in nobody's way. */
static void what_could_not_be_stored_ends(void **state)
{
    const struct config_retention settings = {0};
    struct fixture f = open_all(*state, &settings);

    add_execution(&f, 1, DAY_NS, NULL, 0);
    add_execution(&f, 2, 0, NULL, 0);
    add_execution(&f, 3, 0, NULL, 0); /* still runs */
    for (unsigned i = 0; i < 3; i++)
        end_later(&f, i);
    (void)pass(&f, 2 * DAY_NS);
    assert_string_equal(status_of(&f, 1), "success");
    assert_string_equal(status_of(&f, 2), "failed");
    assert_string_equal(status_of(&f, 3), "accepted");
    end_later(&f, 3);
    (void)pass(&f, 2 * DAY_NS);
    assert_string_equal(status_of(&f, 3), "failed");
    /* One that nobody could end yet is no leak. */
    end_later(&f, 2);
    close_all(&f);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(old_executions_go),
        IN_DIR(the_oldest_go_first),
        IN_DIR(files_expire),
        IN_DIR(unused_sessions_go),
        IN_DIR(a_use_is_written_when_it_counts),
        IN_DIR(orphans_are_swept),
        IN_DIR(storage_has_a_limit),
        IN_DIR(tenants_keep_to_their_storage),
        IN_DIR(who_has_too_much_pays_for_it),
        IN_DIR(the_disk_gets_its_room_back),
        IN_DIR(usage_of_days_that_are_over_goes),
        IN_DIR(what_could_not_be_stored_ends),
        IN_DIR(the_thread_works),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
