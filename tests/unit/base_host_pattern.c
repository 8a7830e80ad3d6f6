/* SPDX-License-Identifier: Apache-2.0 */
/* base/host_pattern: what is a host, and what a list of them permits. */
#include "base/host_pattern.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

static void names_are_hosts_and_never_addresses(void **state)
{
    static const char *const good[][2] = {
        {"api.example.com", "api.example.com"},
        {"API.Example.COM.", "api.example.com"},
        {"a", "a"},
        {"a-b.c_d.e1", "a-b.c_d.e1"},
        {"1.2.3.4.com", "1.2.3.4.com"},
        {"0x.example", "0x.example"},
    };
    static const char *const bad[] = {
        "",       ".",          "..",    "a..b",  ".a",      "-a.b",          "a-.b",
        "a b",    "a/b",        "a@b",   "a:b",   "1.2.3.4", "127.1",         "2130706433",
        "a.0x7f", "0x7f000001", "[::1]", "*.a.b", "a\n",     "caf\xc3\xa9.fr"};
    char name[HOST_NAME_SIZE], label[66], longest[300];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(host_name_clean(good[i][0], strlen(good[i][0]), name), 0);
        assert_string_equal(name, good[i][1]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(host_name_clean(bad[i], strlen(bad[i]), name), -EINVAL);
    assert_int_equal(host_name_clean("a\0b", 3, name), -EINVAL);
    memset(label, 'a', sizeof(label));
    assert_int_equal(host_name_clean(label, 63, name), 0);
    assert_int_equal(host_name_clean(label, 64, name), -EINVAL);
    for (size_t i = 0; i < sizeof(longest); i++)
        longest[i] = i % 2 ? '.' : 'a';
    assert_int_equal(host_name_clean(longest, 253, name), 0);
    assert_int_equal(host_name_clean(longest, 255, name), -EINVAL);
}

static void patterns_say_what_is_wrong_with_them(void **state)
{
    static const struct {
        const char *text;
        bool broad;
        const char *clean; /* NULL: refused */
        const char *why;
    } cases[] = {
        {"API.example.com", false, "api.example.com", NULL},
        {"api.example.com:8443", false, "api.example.com:8443", NULL},
        {"*.example.org:443", false, "*.example.org:443", NULL},
        {"api.example.com:00443", false, "api.example.com:443", NULL},
        {"*", true, "*", NULL},
        {"*:*", true, "*:*", NULL},
        {"*.com", true, "*.com", NULL},
        {"*", false, NULL, "every host"},
        {"*.com", false, NULL, "too wide"},
        {"a.example:*", false, NULL, "no port"},
        {"a.example:0", true, NULL, "no port"},
        {"a.example:65536", true, NULL, "no port"},
        {"a.example:", true, NULL, "no port"},
        {"a.example:80:81", true, NULL, "no port"},
        {"https://a.example/b", false, NULL, "without https://"},
        {"10.0.0.1", false, NULL, "is an address"},
        {"10.0.0.1:80", true, NULL, "is an address"},
        {"a.*.example", true, NULL, "no host"},
        {"*a.example", true, NULL, "no host"},
        {"*.*.example", true, NULL, "no host"},
        {"", true, NULL, "no host"},
    };
    char clean[HOST_PATTERN_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};
        int r = host_pattern_clean(cases[i].text, strlen(cases[i].text), cases[i].broad, clean,
                                   &err);

        if (cases[i].clean) {
            assert_int_equal(r, 0);
            assert_string_equal(clean, cases[i].clean);
            continue;
        }
        assert_int_equal(r, -EINVAL);
        if (!strstr(err.message, cases[i].why))
            fail_msg("%s: %s", cases[i].text, err.message);
    }
}

static const char *list_of(struct buf *list, const char *text)
{
    struct err err = {0};

    *list = buf_init(65536);
    assert_int_equal(host_list_add(list, text, strlen(text), true, &err), 0);
    return buf_cstr(list);
}

static void a_list_permits_what_it_names(void **state)
{
    struct buf b;
    const char *list =
        list_of(&b, "  a.example, *.b.example:8443\tc.example:22  a.example *.d:*");

    (void)state;
    assert_string_equal(list, "a.example *.b.example:8443 c.example:22 *.d:*");
    assert_true(host_list_permits(list, "a.example", 80));
    assert_true(host_list_permits(list, "a.example", 443));
    assert_false(host_list_permits(list, "a.example", 8443));
    assert_false(host_list_permits(list, "x.a.example", 443));
    assert_false(host_list_permits(list, "xa.example", 443));
    assert_false(host_list_permits(list, "a.example.evil", 443));
    assert_true(host_list_permits(list, "x.b.example", 8443));
    assert_true(host_list_permits(list, "x.y.b.example", 8443));
    assert_false(host_list_permits(list, "b.example", 8443));
    assert_false(host_list_permits(list, ".b.example", 8443));
    assert_false(host_list_permits(list, "xb.example", 8443));
    assert_false(host_list_permits(list, "x.b.example", 443));
    assert_true(host_list_permits(list, "x.d", 1));
    assert_true(host_list_permits(list, "c.example", 22));
    assert_false(host_list_permits(list, "e.example", 80));
    assert_false(host_list_permits("", "a.example", 80));
    assert_true(host_list_permits("*:*", "whatever", 65535));
    assert_false(host_list_permits("*", "whatever", 22));
    buf_finish(&b);
}

static void ports_come_once_and_are_few(void **state)
{
    uint16_t ports[HOST_PORTS_MAX];
    struct buf b;
    const char *list = list_of(&b, "a.b.c *.b.c:443 a.b.c:22 *:*");

    (void)state;
    assert_int_equal(host_list_ports(list, "a.b.c", ports), 3);
    assert_int_equal(ports[0], 80);
    assert_int_equal(ports[1], 443);
    assert_int_equal(ports[2], 22);
    assert_int_equal(host_list_ports(list, "other.c", ports), 0);
    buf_finish(&b);
    list = list_of(&b, "a.b:1 a.b:2 a.b:3 a.b:4 a.b:5 a.b:6 a.b:7 a.b:8 a.b:9 a.b");
    assert_int_equal(host_list_ports(list, "a.b", ports), HOST_PORTS_MAX);
    assert_int_equal(ports[7], 8);
    buf_finish(&b);
}

static void a_list_has_an_end(void **state)
{
    struct buf list = buf_init(1u << 20);
    struct err err = {0};
    char text[32];

    (void)state;
    for (unsigned i = 0; i < HOST_LIST_MAX; i++) {
        int n = snprintf(text, sizeof(text), "h%u.example", i);

        assert_int_equal(host_list_add(&list, text, (size_t)n, false, &err), 0);
    }
    assert_int_equal(host_list_add(&list, "h0.example", 10, false, &err), 0);
    assert_int_equal(host_list_add(&list, "more.example", 12, false, &err), -E2BIG);
    buf_finish(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_hosts_and_never_addresses),
        cmocka_unit_test(patterns_say_what_is_wrong_with_them),
        cmocka_unit_test(a_list_permits_what_it_names),
        cmocka_unit_test(ports_come_once_and_are_few),
        cmocka_unit_test(a_list_has_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
