/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single settings as people write them, and back. Nothing here knows a key.
 */
#ifndef SKILLVM_API_DAEMON_CONFIG_CONFIG_VALUE_H
#define SKILLVM_API_DAEMON_CONFIG_CONFIG_VALUE_H

#include "api/daemon/config/config.h"
#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum config_type {
    CONFIG_TEXT,     /* char *: a path, "" for none */
    CONFIG_ADDRESS,  /* char *: 127.0.0.1:8080, [::1]:8080, "" for none */
    CONFIG_URL,      /* char *: https://host, "" for none */
    CONFIG_HOSTS,    /* char *: as of tenant_network_clean, not "" */
    CONFIG_NAMES,    /* char *: "name=address name=address", "" for none */
    CONFIG_SERVERS,  /* char *: as of fleet_servers_check */
    CONFIG_LABELS,   /* char *: as of fleet_labels_check */
    CONFIG_NODE,     /* char *: as of fleet_node_valid, "" for none */
    CONFIG_COUNT,    /* uint64_t */
    CONFIG_MODE,     /* uint64_t: octal permissions */
    CONFIG_BYTES,    /* uint64_t: 10GiB */
    CONFIG_DURATION, /* uint64_t in ms: 90s, 12h, 7d */
    CONFIG_AMOUNT,   /* struct config_amount: 512MiB or 5% */
    /* What follows has words for values. */
    CONFIG_LEVEL,     /* uint64_t: a log level */
    CONFIG_REUSE,     /* uint64_t: an enum tenant_reuse */
    CONFIG_SCOPE,     /* uint64_t: 0 for "shared", 1 for "tenant" */
    CONFIG_ISOLATION, /* uint64_t: 0 for "best-effort", 1 for "strict" */
    CONFIG_REPLICAS,  /* uint64_t: 0 for "1", 1 for "3" */
};

/* True for those that are a char *, which its struct owns. */
bool config_type_is_text(enum config_type type);
/*
 * Reads text to value, a place for what the type says. 0; -EINVAL when the text is no such
 * value or out of range (bytes and ms are the range's units); -ENOMEM. Text that was there is
 * freed.
 */
int config_value_parse(enum config_type type, uint64_t min, uint64_t max, const char *text,
                       void *value);
/* Says the range, "from 1 to 256", or its words; "" where the type has none. */
void config_value_range(enum config_type type, uint64_t min, uint64_t max, char *text,
                        size_t size);
/* Says what the type and range allow, in a few words. */
void config_value_allowed(enum config_type type, uint64_t min, uint64_t max, char *text,
                          size_t size);
/* Appends a value as it is written in YAML. 0, -E2BIG or -ENOMEM. */
int config_value_write(enum config_type type, const void *value, struct buf *out);

#endif
