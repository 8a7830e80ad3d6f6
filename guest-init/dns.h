/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of a resolver that knows addresses of names and nothing else (RFC 1035). They
 * come from the skill: what is no plain question is none. No I/O.
 */
#ifndef SKILLVM_GUEST_DNS_H
#define SKILLVM_GUEST_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest-init/proto.h"

#define DNS_QUESTION_MAX (255u + 4u)
#define DNS_ANSWER_MAX   (12u + DNS_QUESTION_MAX + 16u)

struct dns_query {
    uint16_t id;
    bool recursion_desired;
    bool wants_ipv4;                    /* else there is nothing to answer, and no error */
    char name[PROTO_NET_NAME_MAX + 1];  /* "" where it is none of a host */
    uint8_t question[DNS_QUESTION_MAX]; /* as it came */
    size_t question_len;
};

enum dns_result { DNS_GOOD = 0, DNS_FAILED = 2, DNS_NOBODY = 3 };

/* Reads a packet. 0, or -EBADMSG for one that gets no answer. */
int dns_parse(const uint8_t *data, size_t len, struct dns_query *ret);
/* Writes the answer: ipv4 where it is wanted and the result good. Its length. */
size_t dns_answer(const struct dns_query *query, enum dns_result result, const uint8_t ipv4[4],
                  uint8_t out[DNS_ANSWER_MAX]);

#endif
