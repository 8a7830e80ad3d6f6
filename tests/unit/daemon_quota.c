/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant may use over time, with made-up clocks over a real registry. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/quota.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/registry/registry_usage.h"
#include "tests/unit/registry_dir.h"
#include "tests/unit/registry_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define S   1000000000ull
#define DAY (86400 * S)
#define ONE "ten_00000000000000000000000000000001"
#define TWO "ten_00000000000000000000000000000002"

/* 2026-11-22 23:59:50 UTC */
#define LATE (1795391990ull * S)

struct fixture {
    void *dir;
    struct registry *registry;
    struct rate *rate;
};

static int begin(void **state)
{
    struct tenant_limits limits = tenant_limits_default();
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    assert_int_equal(make_dir(&f->dir), 0);
    f->registry = open_registry(f->dir);
    assert_int_equal(put_tenant(f->registry, ONE, "one", 1, false, &limits), 0);
    assert_int_equal(put_tenant(f->registry, TWO, "two", 2, false, &limits), 0);
    f->rate = rate_create();
    assert_non_null(f->rate);
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    rate_destroy(f->rate);
    rate_destroy(NULL);
    registry_close(f->registry);
    assert_int_equal(remove_dir(&f->dir), 0);
    free(f);
    return 0;
}

/* Stores the end of an execution that took this CPU time. */
static void use(struct fixture *f, const char *tenant, uint64_t cpu_ms, uint64_t at_ns)
{
    static unsigned n;
    char id[40];
    const struct registry_execution acceptance = {.id = id,
                                                  .skill_name = "x",
                                                  .skill_version = "1",
                                                  .skill_digest = "",
                                                  .accepted_ns = at_ns - S};
    const struct registry_ending ending = {.status = "success",
                                           .result = "{}",
                                           .result_len = 2,
                                           .finished_ns = at_ns,
                                           .cpu_ms = cpu_ms};

    snprintf(id, sizeof(id), "exec_%032x", ++n);
    assert_int_equal(registry_execution_accept(f->registry, tenant, &acceptance, NULL), 0);
    assert_int_equal(registry_execution_end(f->registry, id, &ending, NULL), 0);
}

static void limits_are_those_of_now(void **state)
{
    struct fixture *f = *state;
    struct tenant_limits limits, changed = tenant_limits_default();
    struct err err = {0};

    assert_int_equal(quota_limits(f->registry, ONE, &limits, NULL), 0);
    assert_int_equal(limits.weight, TENANT_WEIGHT_DEFAULT);
    assert_int_equal(limits.max_running, 0);
    changed.max_running = 3;
    changed.cpu_ms_per_day = 1ull << 40;
    assert_int_equal(put_tenant(f->registry, ONE, "one", 1, false, &changed), 0);
    assert_int_equal(quota_limits(f->registry, ONE, &limits, NULL), 0);
    assert_int_equal(limits.max_running, 3);
    assert_int_equal(limits.cpu_ms_per_day, 1ull << 40);
    assert_int_equal(quota_limits(f->registry, TWO, &limits, NULL), 0);
    assert_int_equal(limits.max_running, 0);
    assert_int_equal(quota_limits(f->registry, "ten_unknown", &limits, &err), -ENOENT);
    assert_non_null(strstr(err.message, "deleted"));
}

static void a_day_of_cpu_time_ends_at_midnight(void **state)
{
    struct fixture *f = *state;
    const struct tenant_limits limits = {.weight = 10, .cpu_ms_per_day = 1000};
    const struct tenant_limits higher = {.weight = 10, .cpu_ms_per_day = 1500};
    const struct tenant_limits none = {.weight = 10};
    struct refusal refusal = {0};
    struct err err = {0};

    use(f, ONE, 999, LATE - 3600 * S);
    assert_int_equal(quota_check_cpu(f->registry, ONE, &limits, LATE, &refusal, NULL), 0);
    use(f, ONE, 1, LATE - 60 * S);
    assert_int_equal(quota_check_cpu(f->registry, ONE, &limits, LATE, &refusal, &err), -EDQUOT);
    assert_string_equal(refusal.code, "quota_exceeded");
    /* The truth: at midnight, and not a second before. */
    assert_int_equal(refusal.retry_after_s, 10);
    assert_non_null(strstr(err.message, "cpu_ms_per_day: 1000 ms"));
    assert_int_equal(
        quota_check_cpu(f->registry, ONE, &limits, LATE + 10 * S - 1, &refusal, NULL), -EDQUOT);
    assert_int_equal(refusal.retry_after_s, 1);
    assert_int_equal(quota_check_cpu(f->registry, ONE, &limits, LATE + 10 * S, &refusal, NULL),
                     0);
    /* It is that tenant's, and a higher limit or none lets it go on the same day. */
    assert_int_equal(quota_check_cpu(f->registry, TWO, &limits, LATE, &refusal, NULL), 0);
    assert_int_equal(quota_check_cpu(f->registry, ONE, &higher, LATE, &refusal, NULL), 0);
    assert_int_equal(quota_check_cpu(f->registry, ONE, &none, LATE, &refusal, NULL), 0);
    /* What ends after midnight is the next day's. */
    use(f, ONE, 5000, LATE + 11 * S);
    assert_int_equal(quota_check_cpu(f->registry, ONE, &limits, LATE + 12 * S, &refusal, NULL),
                     -EDQUOT);
    assert_int_equal(refusal.retry_after_s, 86400 - 2);
    assert_int_equal(
        quota_check_cpu(f->registry, ONE, &limits, LATE + DAY + 10 * S, &refusal, NULL), 0);
}

/* A result that cannot be stored charges nothing, one that is stored charges once. */
static void usage_and_result_are_one_change(void **state)
{
    struct fixture *f = *state;
    const struct registry_ending ending = {
        .status = "failed", .result = "{}", .result_len = 2, .finished_ns = LATE, .cpu_ms = 7};
    uint64_t used = 1;

    assert_int_equal(registry_execution_end(f->registry, "exec_nobody", &ending, NULL), 0);
    assert_int_equal(
        registry_usage_get(f->registry, ONE, registry_usage_day(LATE), &used, NULL), 0);
    assert_int_equal(used, 0);
    use(f, ONE, 7, LATE);
    use(f, ONE, 0, LATE);
    use(f, ONE, 8, LATE);
    use(f, TWO, 100, LATE);
    assert_int_equal(
        registry_usage_get(f->registry, ONE, registry_usage_day(LATE), &used, NULL), 0);
    assert_int_equal(used, 15);
}

static void a_rate_is_refused_with_the_time_to_wait(void **state)
{
    struct fixture *f = *state;
    const struct tenant_limits limits = {.weight = 10, .rate_per_minute = 2};
    const struct tenant_limits none = {.weight = 10};
    struct refusal refusal = {0};
    struct err err = {0};
    uint64_t now = 1000 * S;

    assert_int_equal(quota_take_rate(f->rate, ONE, &limits, now, &refusal, NULL), 0);
    assert_int_equal(quota_take_rate(f->rate, ONE, &limits, now, &refusal, NULL), 0);
    assert_int_equal(quota_take_rate(f->rate, ONE, &limits, now, &refusal, &err), -EDQUOT);
    assert_string_equal(refusal.code, "rate_limited");
    assert_int_equal(refusal.retry_after_s, 30);
    assert_non_null(strstr(err.message, "rate_per_minute: the tenant may begin 2 executions"));
    assert_int_equal(quota_take_rate(f->rate, ONE, &limits, now + 29 * S, &refusal, NULL),
                     -EDQUOT);
    assert_int_equal(refusal.retry_after_s, 1);
    assert_int_equal(quota_take_rate(f->rate, ONE, &limits, now + 30 * S, &refusal, NULL), 0);
    assert_int_equal(quota_take_rate(f->rate, TWO, &limits, now + 30 * S, &refusal, NULL), 0);
    assert_int_equal(quota_take_rate(f->rate, ONE, &none, now + 30 * S, &refusal, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(limits_are_those_of_now, begin, end),
        cmocka_unit_test_setup_teardown(a_day_of_cpu_time_ends_at_midnight, begin, end),
        cmocka_unit_test_setup_teardown(usage_and_result_are_one_change, begin, end),
        cmocka_unit_test_setup_teardown(a_rate_is_refused_with_the_time_to_wait, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
