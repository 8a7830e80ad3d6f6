/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/egress/records.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct egress_record *find(struct egress_records *records, const char *host,
                                  uint16_t port, const char *refused)
{
    for (size_t i = 0; i < records->n; i++) {
        struct egress_record *row = &records->rows[i];

        if (row->port == port && strcmp(row->host, host) == 0 &&
            strncmp(row->refused, refused, sizeof(row->refused) - 1) == 0)
            return row;
    }
    return NULL;
}

struct egress_record *egress_records_add(struct egress_records *records, const char *host,
                                         uint16_t port, enum egress_refusal refusal,
                                         const char *refused)
{
    struct egress_record *row = find(records, host, port, refused);
    bool is_refusal = refusal != EGRESS_REACHED;

    if (!row && records->n < EGRESS_RECORDS_MAX &&
        (!is_refusal || records->n_refused < EGRESS_REFUSALS_MAX)) {
        records->n_refused += is_refusal;
        row = &records->rows[records->n++];
        *row = (struct egress_record){.port = port, .refusal = refusal};
        (void)snprintf(row->host, sizeof(row->host), "%s", host);
        (void)snprintf(row->refused, sizeof(row->refused), "%s", refused);
    }
    if (!row)
        row = &records->others;
    row->connections++;
    return row;
}
