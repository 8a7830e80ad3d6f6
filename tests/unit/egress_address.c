/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are public, at the edges of every range, and this machine's own. */
#include "api/daemon/egress/address.h"

#include "api/daemon/egress/fixed_names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

static union ip_address address_of(const char *text)
{
    union ip_address a = {.ipv6 = {0}};

    if (inet_pton(AF_INET, text, &a.ipv4.sin_addr) == 1) {
        a.any.sa_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &a.ipv6.sin6_addr), 1);
        a.any.sa_family = AF_INET6;
    }
    return a;
}

static void ranges_are_refused_to_their_edges(void **state)
{
    static const char *const refused[] = {
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",
        "169.254.0.0",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:1.1.1.1",
        "::ffff:10.0.0.1",
        "::ffff:0:1.1.1.1",
        "64:ff9b::1.1.1.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::10.0.0.1",
        "100::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "2001::1",
        "2001:0:1::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:0808:0808::1",
        "3fff::1",
        "3fff:fff::1",
        "4000::1",
        "1fff::1",
    };
    static const char *const public[] = {
        "1.1.1.1",         "9.255.255.255",
        "11.0.0.0",        "100.63.255.255",
        "100.128.0.0",     "126.255.255.255",
        "128.0.0.0",       "168.63.129.15",
        "168.63.129.17",   "169.253.255.255",
        "169.255.0.0",     "172.15.255.255",
        "172.32.0.0",      "192.0.1.0",
        "192.167.255.255", "192.169.0.0",
        "198.17.255.255",  "198.20.0.0",
        "223.255.255.255", "2000::1",
        "2001:200::1",     "2001:4860:4860::8888",
        "2003::1",         "2606:4700::1111",
        "3ffe::1",         "3fff:1000::1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        union ip_address a = address_of(refused[i]);

        if (!egress_address_kind(&a))
            fail_msg("%s counts as public", refused[i]);
    }
    for (size_t i = 0; i < sizeof(public) / sizeof(public[0]); i++) {
        union ip_address a = address_of(public[i]);

        if (egress_address_kind(&a))
            fail_msg("%s is %s", public[i], egress_address_kind(&a));
    }
}

static void no_other_family_is_public(void **state)
{
    union ip_address a = {.ipv6 = {0}};

    (void)state;
    a.any.sa_family = AF_UNIX;
    assert_non_null(egress_address_kind(&a));
}

static void what_can_be_bound_is_ones_own(void **state)
{
    union ip_address own = address_of("127.1.2.3"), other = address_of("1.1.1.1");

    (void)state;
    egress_address_set_port(&own, 80);
    assert_true(egress_address_is_own(&own));
    assert_false(egress_address_is_own(&other));
}

static void fixed_names_have_their_address(void **state)
{
    static const char text[] = " wiki.example=10.0.0.5  Six.example=fd00::5 ";
    union ip_address a;
    struct err err = {0};

    (void)state;
    assert_int_equal(fixed_names_check(text, &err), 0);
    assert_int_equal(fixed_names_check("", &err), 0);
    assert_true(fixed_names_find(text, "wiki.example", &a));
    assert_int_equal(a.ipv4.sin_addr.s_addr, inet_addr("10.0.0.5"));
    assert_true(fixed_names_find(text, "six.example", &a));
    assert_int_equal(a.any.sa_family, AF_INET6);
    assert_false(fixed_names_find(text, "iki.example", &a));
    assert_int_equal(fixed_names_check("wiki.example", &err), -EINVAL);
    assert_non_null(strstr(err.message, "NAME=ADDRESS"));
    assert_int_equal(fixed_names_check("a.b=wiki", NULL), -EINVAL);
    assert_int_equal(fixed_names_check("=10.0.0.5", NULL), -EINVAL);
    assert_int_equal(fixed_names_check("a.b=10.0.0.5:80", NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_refused_to_their_edges),
        cmocka_unit_test(no_other_family_is_public),
        cmocka_unit_test(what_can_be_bound_is_ones_own),
        cmocka_unit_test(fixed_names_have_their_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
