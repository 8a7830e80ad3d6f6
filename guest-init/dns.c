/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/dns.h"

#include <errno.h>
#include <string.h>

#define HEADER_SIZE   12u
#define LABEL_MAX     63u
#define TYPE_A        1u
#define CLASS_IN      1u
#define FLAG_RESPONSE 0x80u
#define FLAGS_OPCODE  0x78u
#define FLAG_RECURSE  0x01u
#define CAN_RECURSE   0x80u
#define TTL_SECONDS   60u

static uint16_t get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint8_t *put_u16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

/* A byte of a label that would be a dot, or an end, where it is read as text. */
static bool is_plain(const uint8_t *label, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (label[i] <= ' ' || label[i] >= 0x7f || label[i] == '.')
            return false;
    }
    return true;
}

/*
 * Reads labels, none of them a pointer, to the root. Their length, or 0. ret->name is "" where
 * it would not be what was asked.
 */
static size_t read_name(const uint8_t *data, size_t len, struct dns_query *ret)
{
    size_t at = 0, used = 0;
    bool plain = true;

    while (at < len && data[at] != 0) {
        size_t label = data[at];

        if (label > LABEL_MAX || label > len - at - 1 || at + label + 2 > 255)
            return 0;
        plain = plain && is_plain(data + at + 1, label);
        if (used > 0)
            ret->name[used++] = '.';
        memcpy(ret->name + used, data + at + 1, label);
        used += label;
        at += label + 1;
    }
    ret->name[plain ? used : 0] = '\0';
    return at < len ? at + 1 : 0;
}

int dns_parse(const uint8_t *data, size_t len, struct dns_query *ret)
{
    size_t name;

    if (len < HEADER_SIZE || (data[2] & (FLAG_RESPONSE | FLAGS_OPCODE)) != 0 ||
        get_u16(data + 4) != 1)
        return -EBADMSG;
    *ret = (struct dns_query){.id = get_u16(data),
                              .recursion_desired = (data[2] & FLAG_RECURSE) != 0};
    data += HEADER_SIZE;
    len -= HEADER_SIZE;
    name = read_name(data, len, ret);
    if (name == 0 || len - name < 4)
        return -EBADMSG;
    ret->question_len = name + 4;
    memcpy(ret->question, data, ret->question_len);
    ret->wants_ipv4 = get_u16(data + name) == TYPE_A && get_u16(data + name + 2) == CLASS_IN;
    return 0;
}

size_t dns_answer(const struct dns_query *query, enum dns_result result, const uint8_t ipv4[4],
                  uint8_t out[DNS_ANSWER_MAX])
{
    bool has_address = result == DNS_GOOD && query->wants_ipv4;
    uint8_t *at = put_u16(out, query->id);

    *at++ = (uint8_t)(FLAG_RESPONSE | (query->recursion_desired ? FLAG_RECURSE : 0));
    *at++ = (uint8_t)(CAN_RECURSE | (unsigned)result);
    at = put_u16(at, 1);
    at = put_u16(at, has_address);
    at = put_u16(at, 0);
    at = put_u16(at, 0);
    memcpy(at, query->question, query->question_len);
    at += query->question_len;
    if (!has_address)
        return (size_t)(at - out);
    at = put_u16(at, 0xc000u | HEADER_SIZE); /* the name of the question */
    at = put_u16(at, TYPE_A);
    at = put_u16(at, CLASS_IN);
    at = put_u16(at, 0);
    at = put_u16(at, TTL_SECONDS);
    at = put_u16(at, 4);
    memcpy(at, ipv4, 4);
    return (size_t)(at + 4 - out);
}
