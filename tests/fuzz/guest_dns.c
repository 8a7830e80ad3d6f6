/* SPDX-License-Identifier: Apache-2.0 */
/* Packets to the guest's resolver: what is a question is answered within its bounds. */
#include <stdlib.h>
#include <string.h>

#include "guest-init/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum dns_result results[] = {DNS_GOOD, DNS_FAILED, DNS_NOBODY};
    static const uint8_t ipv4[] = {127, 127, 0, 1};
    struct dns_query q;

    if (dns_parse(data, size, &q) < 0)
        return 0;
    if (strlen(q.name) > PROTO_NET_NAME_MAX || q.question_len > DNS_QUESTION_MAX)
        abort();
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        uint8_t out[DNS_ANSWER_MAX];
        struct dns_query again;
        size_t len = dns_answer(&q, results[i], ipv4, out);

        if (len > sizeof(out) || memcmp(out + 12, q.question, q.question_len) != 0)
            abort();
        /* An answer is no question. */
        if (dns_parse(out, len, &again) == 0)
            abort();
    }
    return 0;
}
