/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was reached and refused, in a table of fixed size: connections to one host and port with
 * one outcome are one row, and what has no row of its own any more is counted together. However
 * much is refused, there is room for who is reached.
 */
#ifndef SKILLVM_API_DAEMON_EGRESS_RECORDS_H
#define SKILLVM_API_DAEMON_EGRESS_RECORDS_H

#include "base/host_pattern.h"

#include <stddef.h>
#include <stdint.h>

#define EGRESS_RECORDS_MAX  64u
#define EGRESS_REFUSALS_MAX 32u /* of these */
#define EGRESS_REFUSED_SIZE 112u

/* Who refused it. */
enum egress_refusal {
    EGRESS_REACHED,
    EGRESS_UNDECLARED, /* the declared list has it not */
    EGRESS_NOT_IN_POLICY,
    EGRESS_NOT_ASKED, /* the list that was asked for */
    EGRESS_NO_SUCH_NAME,
    EGRESS_BAD_ADDRESS, /* it is not public */
    EGRESS_OVER_LIMIT,
    EGRESS_FAILED, /* to be looked up or connected to */
};

struct egress_record {
    char host[HOST_NAME_SIZE];
    uint16_t port; /* 0: it never came to one */
    enum egress_refusal refusal;
    char refused[EGRESS_REFUSED_SIZE]; /* why; "" where it was reached */
    uint64_t connections;              /* or refusals */
    uint64_t bytes_sent;
    uint64_t bytes_received;
};

struct egress_records {
    struct egress_record rows[EGRESS_RECORDS_MAX];
    size_t n, n_refused;
    struct egress_record others; /* all without a row of their own, without a host */
};

/* Counts one more. The row, which stays where it is. refused is cut to what fits. */
struct egress_record *egress_records_add(struct egress_records *records, const char *host,
                                         uint16_t port, enum egress_refusal refusal,
                                         const char *refused);

#endif
