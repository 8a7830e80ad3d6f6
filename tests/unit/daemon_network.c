/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of an execution's connections: its warnings, and its rows of the audit. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/network.h"
#include "api/daemon/registry/registry_audit.h"
#include "tests/unit/registry_dir.h"

#include <string.h>
#include <unistd.h>

#define ROWS_MAX (EGRESS_RECORDS_MAX + 8u)

/* How often the database waited for the disk: SQLite's calls come here. */
static unsigned syncs;

int fsync(int fd)
{
    (void)fd;
    syncs++;
    return 0;
}

int fdatasync(int fd)
{
    return fsync(fd);
}

static struct execution *make_execution(void)
{
    struct execution *e = execution_create("default", NULL);

    assert_non_null(e);
    assert_int_equal(execution_set_skill(e, "reacher", "1", "abc"), 0);
    return e;
}

/* The newest row of the audit, of all that are there. How many. */
static size_t newest(struct registry *registry, char detail[ERR_MESSAGE_MAX])
{
    struct registry_audit rows[ROWS_MAX];
    size_t n = 0;

    assert_int_equal(registry_audit_list(registry, NULL, 0, "", ROWS_MAX, rows, &n, NULL), 0);
    assert_true(n > 0);
    (void)snprintf(detail, ERR_MESSAGE_MAX, "%s", rows[0].detail);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(rows[i].action, "network");
        assert_string_equal(rows[i].target, "reacher");
        registry_audit_finish(&rows[i]);
    }
    return n;
}

static void a_row_says_what_was_reached(void **state)
{
    struct registry *registry = open_registry(*state);
    struct execution *e = make_execution();
    struct egress_records log = {.n = 0};
    char detail[ERR_MESSAGE_MAX];
    struct egress_record *row;

    network_tell(registry, e, &log);
    row = egress_records_add(&log, "a.test", 443, EGRESS_REACHED, "");
    row->bytes_sent = 5;
    row->bytes_received = 7;
    network_tell(registry, e, &log);
    assert_int_equal(newest(registry, detail), 1);
    assert_string_equal(detail, "a.test:443 1 connections, 5 bytes sent, 7 received");
    (void)egress_records_add(&log, "b.test", 0, EGRESS_UNDECLARED, "it is not declared");
    network_tell(registry, e, &log);
    assert_int_equal(newest(registry, detail), 3);
    assert_string_equal(detail, "b.test refused 1 times: it is not declared");
    execution_unref(e);
    registry_close(registry);
}

/* Each tells what happened to which host, and what to do. */
static void what_was_not_reached_is_warned_of(void **state)
{
    static const struct {
        enum egress_refusal refusal;
        const char *refused, *warning;
    } cases[] = {
        {EGRESS_REACHED, "", NULL},
        {EGRESS_UNDECLARED, "why",
         "network: h.test is not among the hosts that it declares: add it to network: in "
         "SKILL.md, or to the request's network for code"},
        {EGRESS_NOT_IN_POLICY, "why",
         "network: h.test is not permitted by the tenant's policy: the operator changes its "
         "limit network, or the setting network.policy"},
        {EGRESS_NOT_ASKED, "why",
         "network: h.test is declared, but the request's network leaves it out"},
        {EGRESS_NO_SUCH_NAME, "there is no such name",
         "network: h.test was not found: there is no such name: correct the name where it is "
         "asked for"},
        {EGRESS_BAD_ADDRESS, "it resolves to 10.0.0.1: a private network",
         "network: h.test was refused: it resolves to 10.0.0.1: a private network: only public "
         "addresses are reached, or what the operator's network.allow_private names"},
        {EGRESS_OVER_LIMIT, "there were 64 names before it",
         "network: h.test was refused: there were 64 names before it"},
        {EGRESS_FAILED, "it cannot be looked up now",
         "network: h.test was not reached from the daemon's machine: it cannot be looked up "
         "now: if it is there, try again later"},
    };
    struct registry *registry = open_registry(*state);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct execution *e = make_execution();
        struct egress_records log = {.n = 0};

        (void)egress_records_add(&log, "h.test", 80, cases[i].refusal, cases[i].refused);
        network_tell(registry, e, &log);
        assert_int_equal(e->warnings.len, cases[i].warning ? 1 : 0);
        if (cases[i].warning)
            assert_string_equal(e->warnings.items[0], cases[i].warning);
        execution_unref(e);
    }
    registry_close(registry);
}

/* However many are not there at all: of these nobody can permit one. */
static void what_can_be_permitted_is_warned_of_first(void **state)
{
    struct registry *registry = open_registry(*state);
    struct execution *e = make_execution();
    struct egress_records log = {.n = 0};
    char host[16];

    for (unsigned i = 0; i < 6; i++) {
        (void)snprintf(host, sizeof(host), "h%u.test", i);
        (void)egress_records_add(&log, host, 80, i == 5 ? EGRESS_UNDECLARED : EGRESS_FAILED,
                                 "why");
    }
    network_tell(registry, e, &log);
    assert_int_equal(e->warnings.len, 4);
    assert_ptr_equal(strstr(e->warnings.items[0], "h5.test"), e->warnings.items[0] + 9);
    assert_non_null(strstr(e->warnings.items[1], "h0.test"));
    execution_unref(e);
    registry_close(registry);
}

/* A skill that reaches for thousands of hosts makes one commit, and so many rows. */
static void many_hosts_are_one_commit(void **state)
{
    struct registry *registry = open_registry(*state);
    struct execution *e = make_execution();
    struct egress_records log = {.n = 0};
    char detail[ERR_MESSAGE_MAX], host[32];

    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(host, sizeof(host), "h%u.test", i);
        (void)egress_records_add(&log, host, 0, EGRESS_UNDECLARED, "it is not declared");
    }
    syncs = 0;
    network_tell(registry, e, &log);
    assert_in_range(syncs, 1, 3);
    assert_int_equal(newest(registry, detail), EGRESS_REFUSALS_MAX + 1);
    assert_string_equal(detail, "4968 more connections and refusals, 0 bytes sent, 0 received");
    execution_unref(e);
    registry_close(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_says_what_was_reached, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_was_not_reached_is_warned_of, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(what_can_be_permitted_is_warned_of_first, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(many_hosts_are_one_commit, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
