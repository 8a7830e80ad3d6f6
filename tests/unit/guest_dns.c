/* SPDX-License-Identifier: Apache-2.0 */
/* guest-init/dns: questions as resolvers send them, and bytes that are none. */
#include "guest-init/dns.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

/* "a.example" of type A, with an EDNS record behind it, as glibc and others ask. */
static const uint8_t plain[] = {0x12, 0x34, 0x01, 0x20, 0,   1,   0,   0,   0,   0, 0, 1, 1,
                                'a',  7,    'e',  'x',  'a', 'm', 'p', 'l', 'e', 0, 0, 1, 0,
                                1,    0,    0,    41,   4,   208, 0,   0,   0,   0, 0, 0};
#define QUESTION 15u

static void a_question_is_answered(void **state)
{
    static const uint8_t ipv4[] = {127, 127, 0, 9};
    static const uint8_t answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 127, 0, 9};
    uint8_t out[DNS_ANSWER_MAX];
    struct dns_query q;

    (void)state;
    assert_int_equal(dns_parse(plain, sizeof(plain), &q), 0);
    assert_string_equal(q.name, "a.example");
    assert_true(q.wants_ipv4);
    assert_int_equal(dns_answer(&q, DNS_GOOD, ipv4, out), 12 + QUESTION + sizeof(answer));
    assert_memory_equal(out, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0", 12);
    assert_memory_equal(out + 12, plain + 12, QUESTION);
    assert_memory_equal(out + 12 + QUESTION, answer, sizeof(answer));
    assert_int_equal(dns_answer(&q, DNS_NOBODY, ipv4, out), 12 + QUESTION);
    assert_memory_equal(out, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0", 12);
}

static void other_types_have_no_answer_and_no_error(void **state)
{
    static const uint8_t ipv4[4];
    uint8_t data[sizeof(plain)], out[DNS_ANSWER_MAX];
    struct dns_query q;

    (void)state;
    memcpy(data, plain, sizeof(plain));
    data[12 + QUESTION - 3] = 28; /* AAAA */
    assert_int_equal(dns_parse(data, sizeof(data), &q), 0);
    assert_false(q.wants_ipv4);
    assert_int_equal(dns_answer(&q, DNS_GOOD, ipv4, out), 12 + QUESTION);
    assert_int_equal(out[3], 0x80);
    assert_int_equal(out[7], 0);
}

static void no_part_of_a_question_is_one(void **state)
{
    struct dns_query q;

    (void)state;
    for (size_t len = 0; len < 12 + QUESTION; len++)
        assert_int_equal(dns_parse(plain, len, &q), -EBADMSG);
    assert_int_equal(dns_parse(plain, 12 + QUESTION, &q), 0);
}

static void what_is_no_question_is_left(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {2, 0x81},                          /* an answer */
        {2, 0x11},                          /* another operation */
        {5, 0},                             /* no question, two, many */
        {5, 2},     {4, 1},     {12, 0xc0}, /* a pointer, where no name began */
        {12, 0x40}, {14, 0xc0}, {12, 63},   /* a label over the end */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        uint8_t data[sizeof(plain)];
        struct dns_query q;

        memcpy(data, plain, sizeof(plain));
        data[changes[i].at] = changes[i].value;
        assert_int_equal(dns_parse(data, sizeof(data), &q), -EBADMSG);
    }
}

static void names_that_read_as_others_are_none(void **state)
{
    static const uint8_t odd[] = {'.', 0, ' ', 0x80, '\n'};

    (void)state;
    for (size_t i = 0; i < sizeof(odd); i++) {
        uint8_t data[sizeof(plain)];
        struct dns_query q;

        memcpy(data, plain, sizeof(plain));
        data[16] = odd[i];
        assert_int_equal(dns_parse(data, sizeof(data), &q), 0);
        assert_string_equal(q.name, "");
    }
}

static void a_name_has_255_bytes_at_most(void **state)
{
    uint8_t data[12 + 400] = {0, 1, 1, 0, 0, 1};
    struct dns_query q;
    uint8_t out[DNS_ANSWER_MAX];
    static const uint8_t ipv4[4];
    size_t at = 12;

    (void)state;
    for (int i = 0; i < 3; i++) {
        data[at] = 63;
        memset(data + at + 1, 'a', 63);
        at += 64;
    }
    data[at] = 61;
    memset(data + at + 1, 'b', 62);
    data[at + 62] = 0;
    data[at + 62 + 2] = 1;
    data[at + 62 + 4] = 1;
    assert_int_equal(dns_parse(data, at + 62 + 5, &q), 0);
    assert_int_equal(strlen(q.name), PROTO_NET_NAME_MAX);
    assert_int_equal(dns_answer(&q, DNS_GOOD, ipv4, out), DNS_ANSWER_MAX);
    data[at] = 62;
    data[at + 63] = 0;
    assert_int_equal(dns_parse(data, at + 63 + 5, &q), -EBADMSG);
}

static void the_root_is_no_host(void **state)
{
    static const uint8_t root[] = {0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1};
    struct dns_query q;

    (void)state;
    assert_int_equal(dns_parse(root, sizeof(root), &q), 0);
    assert_string_equal(q.name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_answered),
        cmocka_unit_test(other_types_have_no_answer_and_no_error),
        cmocka_unit_test(no_part_of_a_question_is_one),
        cmocka_unit_test(what_is_no_question_is_left),
        cmocka_unit_test(names_that_read_as_others_are_none),
        cmocka_unit_test(a_name_has_255_bytes_at_most),
        cmocka_unit_test(the_root_is_no_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
