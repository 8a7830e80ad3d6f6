/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the audit as the nodes of a cluster tell each other of it: what it says never
 * changes, and nobody but its node writes it. Values alone.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_DEED_H
#define SKILLVM_API_DAEMON_TERMS_DEED_H

#include "api/daemon/terms/fleet_words.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/tenant.h"

#include <stdint.h>

/* What a cluster calls one: the node that wrote it, a '.', and ID_DIGITS random digits. */
#define DEED_ENTRY_SIZE (FLEET_NODE_SIZE + 1u + ID_DIGITS)
/* Texts are shorter than that; what is longer is cut off where it is told. */
#define DEED_ACTION_SIZE 64u
#define DEED_TARGET_SIZE 1024u
#define DEED_DETAIL_SIZE 2048u

struct deed {
    char entry[DEED_ENTRY_SIZE];
    uint64_t id;                 /* of the row, at its node */
    uint64_t at_ns;              /* realtime, by that node's clock */
    char tenant[TENANT_ID_SIZE]; /* "": nobody knows */
    char actor[CALLER_ACTOR_SIZE];
    char action[DEED_ACTION_SIZE];
    char target[DEED_TARGET_SIZE];
    char detail[DEED_DETAIL_SIZE];
};

#endif
