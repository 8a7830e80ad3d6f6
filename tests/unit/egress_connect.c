/* SPDX-License-Identifier: Apache-2.0 */
/* What names resolve to, which of it is refused, and how it is connected to. */
#include "tests/unit/cmocka_all.h"

#include "base/process_stats.h"
#include "tests/unit/egress_world.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_bad(const char *name, enum egress_refusal refusal, const char *why)
{
    const struct egress_record *last;

    assert_int_equal(ask(name), refusal == EGRESS_FAILED ? PROTO_NET_FAILED : PROTO_NET_NOBODY);
    last = row(egress_log(w.egress)->n - 1);
    assert_string_equal(last->host, name);
    assert_int_equal(last->refusal, refusal);
    if (!strstr(last->refused, why))
        fail_msg("%s", last->refused);
}

static void names_of_private_addresses_are_refused(void **state)
{
    (void)state;
    resolve_to(1, "10.0.0.1", "0.0.0.0");
    expect_bad("a.example.test", EGRESS_BAD_ADDRESS, "it resolves to 10.0.0.1: a private");
    resolve_to(1, "169.254.169.254", "0.0.0.0");
    expect_bad("b.example.test", EGRESS_BAD_ADDRESS, "metadata");
    /* One of each: an address for the check, and one for the connection. */
    resolve_to(2, "93.184.216.34", "127.0.0.1");
    expect_bad("c.example.test", EGRESS_BAD_ADDRESS, "loopback");
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    expect_bad("d.example.test", EGRESS_NO_SUCH_NAME, "no such name");
    assert_int_equal(open_key(0), 0);
    take(PROTO_NET_REFUSED);
    assert_int_equal(went, 0);
}

static void what_was_checked_is_what_is_connected_to(void **state)
{
    int peer;

    (void)state;
    resolve_to(1, "93.184.216.34", "0.0.0.0");
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    /* From now on the name means this machine. */
    resolve_to(1, "127.0.0.1", "0.0.0.0");
    dns_asked = 0;
    peer = connect_key(0);
    close(peer);
    take(PROTO_NET_HOST_END);
    assert_string_equal(went_to, "93.184.216.34");
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    close(connect_key(1));
    assert_string_equal(went_to, "93.184.216.34");
    assert_int_equal(dns_asked, 0);
}

static void a_peer_that_is_not_there_is_refused(void **state)
{
    (void)state;
    assert_int_equal(ask("here.test"), PROTO_NET_GOOD);
    close(w.listener);
    w.listener = -1;
    assert_int_equal(open_key(0), 0);
    take(PROTO_NET_REFUSED);
    assert_int_equal(row(0)->refusal, EGRESS_FAILED);
    assert_non_null(strstr(row(0)->refused, "refused"));
}

/* One that comes after more than are connected to is checked like the first. */
static void all_addresses_are_checked(void **state)
{
    char text[INET_ADDRSTRLEN];

    (void)state;
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    for (unsigned i = 1; i <= 20; i++) {
        (void)snprintf(text, sizeof(text), "93.184.217.%u", i);
        resolve_also(text);
    }
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    resolve_also("10.0.0.1");
    expect_bad("b.example.test", EGRESS_BAD_ADDRESS, "it resolves to 10.0.0.1: a private");
    resolve_to(1, ADDRESS_HERE, "0.0.0.0");
    resolve_also("fd00::1");
    expect_bad("c.example.test", EGRESS_BAD_ADDRESS, "it resolves to fd00::1: a private");
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    for (unsigned i = 0; i < 28; i++)
        resolve_also(ADDRESS_HERE);
    for (unsigned i = 0; i < 5; i++)
        resolve_also("2606:4700::1");
    expect_bad("d.example.test", EGRESS_BAD_ADDRESS, "it has more than 32 addresses");
    assert_int_equal(went, 0);
}

static void families_take_turns(void **state)
{
    (void)state;
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    for (unsigned i = 0; i < 6; i++) {
        resolve_also("2606:4700::1");
        resolve_also(ADDRESS_REFUSES);
    }
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    assert_int_equal(open_key(0), 0);
    take(PROTO_NET_REFUSED);
    assert_int_equal(went, 8);
    for (unsigned i = 1; i < went; i++)
        assert_true(went_families[i] != went_families[i - 1]);
}

static void a_machine_without_ipv6_takes_the_other_address(void **state)
{
    int peer;

    (void)state;
    w.has_no_ipv6 = true;
    resolve_to(1, ADDRESS_HERE, "0.0.0.0");
    resolve_also("2606:4700::1");
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    peer = connect_key(0);
    assert_string_equal(went_to, ADDRESS_HERE);
    /* What is not public is refused here, too. */
    resolve_also("fd00::1");
    expect_bad("b.example.test", EGRESS_BAD_ADDRESS, "it resolves to fd00::1: a private");
    close(peer);
}

static void one_that_has_no_other_is_refused(void **state)
{
    (void)state;
    w.has_no_ipv6 = true;
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    resolve_also("2606:4700::1");
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    assert_int_equal(open_key(0), 0);
    take(PROTO_NET_REFUSED);
    assert_non_null(strstr(row(0)->refused, "Address family not supported"));
}

static void a_silent_address_is_passed_over(void **state)
{
    (void)state;
    resolve_to(2, ADDRESS_SILENT, ADDRESS_SILENT);
    resolve_also(ADDRESS_REFUSES);
    resolve_also(ADDRESS_SILENT);
    resolve_also(ADDRESS_HERE);
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    close(connect_key(0));
    assert_int_equal(went, 5);
    assert_int_equal(row(0)->refusal, EGRESS_REACHED);
}

/* It goes on while others are tried, and may be the one that answers. */
static void a_slow_address_is_not_given_up(void **state)
{
    (void)state;
    resolve_to(2, ADDRESS_SILENT, ADDRESS_REFUSES);
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    assert_int_equal(open_key(0), 0);
    while (went < 2)
        assert_false(take_now());
    end_silence();
    take(PROTO_NET_OPENED);
}

static bool is_open(int fd, ino_t inode)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_ino == inode;
}

/* Nor where there are more than two, all of which are silent. */
static void the_first_of_many_is_not_given_up(void **state)
{
    struct stat st;
    int first;

    (void)state;
    resolve_to(2, ADDRESS_SILENT, ADDRESS_SILENT);
    resolve_also(ADDRESS_SILENT);
    resolve_also(ADDRESS_SILENT);
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    assert_int_equal(open_key(0), 0);
    while (went < 1)
        assert_false(take_now());
    first = went_fd;
    assert_int_equal(fstat(first, &st), 0);
    while (went < 4)
        assert_false(take_now());
    assert_true(is_open(first, st.st_ino));
    end_silence();
    take(PROTO_NET_OPENED);
}

/* Of eight no more than four are under way at once. */
static void attempts_are_bounded(void **state)
{
    uint64_t before, most = 0;

    (void)state;
    resolve_to(0, "0.0.0.0", "0.0.0.0");
    for (unsigned i = 0; i < 8; i++)
        resolve_also(ADDRESS_SILENT);
    assert_int_equal(ask("a.example.test"), PROTO_NET_GOOD);
    before = process_open_fds();
    assert_int_equal(open_key(0), 0);
    while (went < 5) {
        assert_false(take_now());
        if (process_open_fds() - before > most)
            most = process_open_fds() - before;
    }
    assert_int_equal(most, 4);
    end_silence();
    take(PROTO_NET_OPENED);
    assert_int_equal(process_open_fds(), before + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_of_private_addresses_are_refused),
        TEST(what_was_checked_is_what_is_connected_to),
        TEST(a_peer_that_is_not_there_is_refused),
        TEST(all_addresses_are_checked),
        TEST(families_take_turns),
        TEST(a_machine_without_ipv6_takes_the_other_address),
        TEST(one_that_has_no_other_is_refused),
        TEST(a_silent_address_is_passed_over),
        TEST(a_slow_address_is_not_given_up),
        TEST(the_first_of_many_is_not_given_up),
        TEST(attempts_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
