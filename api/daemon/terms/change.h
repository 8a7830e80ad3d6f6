/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of a tenant or a key, as the whole of what it is to be from then on: made twice it
 * is made once, and only the last one of a thing counts. Values alone.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_CHANGE_H
#define SKILLVM_API_DAEMON_TERMS_CHANGE_H

#include "api/daemon/terms/limits.h"
#include "api/daemon/terms/tenant.h"

/* "ten_" or "key_" and 32 hexadecimal digits, or TENANT_DEFAULT. */
#define CHANGE_ID_SIZE     37u
#define CHANGE_NAME_SIZE   (LIMIT_TENANT_NAME_BYTES + 1)
#define CHANGE_DIGEST_SIZE 65u /* SHA-256, hexadecimal */
#define CHANGE_MARK_SIZE   33u /* of a bucket: 128 bits, hexadecimal, with the NUL */

enum change_kind { CHANGE_TENANT, CHANGE_KEY };

struct change_tenant {
    char name[CHANGE_NAME_SIZE];
    bool is_disabled;
    uint64_t created_ns; /* realtime, as all here */
    struct tenant_limits limits;
};

struct change_key {
    char tenant[TENANT_ID_SIZE]; /* whose it is, for ever */
    char digest[CHANGE_DIGEST_SIZE];
    char name[CHANGE_NAME_SIZE]; /* for people */
    bool is_operator;
    uint64_t created_ns;
    uint64_t revoked_ns; /* 0: not revoked */
};

struct change {
    enum change_kind kind;
    char id[CHANGE_ID_SIZE];
    bool is_removed; /* with all that belongs to it; nothing below counts */
    union {
        struct change_tenant tenant;
        struct change_key key;
    };
};

/* How far the changes of a cluster are made here. */
struct change_place {
    char bucket[CHANGE_MARK_SIZE]; /* of which bucket; "": of none */
    uint64_t revision;             /* up to this one */
    uint64_t noted_ns;             /* when that was all there was */
};

/*
 * Works a change out from the rows as they are. Called anew where they were changed meanwhile,
 * so it keeps nothing of an earlier call. 0, or why there is nothing to change.
 */
typedef int change_plan(void *ctx, struct change *ret, struct err *err);

#endif
