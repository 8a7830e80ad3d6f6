/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of a tenant, a key, a skill, an uploaded file or a session, as the whole of what it
 * is to be from then on: made twice it is made once, and only the last one of a thing counts.
 * Values alone.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_CHANGE_H
#define SKILLVM_API_DAEMON_TERMS_CHANGE_H

#include "api/daemon/terms/limits.h"
#include "api/daemon/terms/tenant.h"

/* "ten_", "key_", "skl_", "fil_" or "ses_" and 32 hexadecimal digits, or TENANT_DEFAULT. */
#define CHANGE_ID_SIZE     37u
#define CHANGE_NAME_SIZE   (LIMIT_TENANT_NAME_BYTES + 1)
#define CHANGE_DIGEST_SIZE 65u /* SHA-256, hexadecimal */
#define CHANGE_MARK_SIZE   33u /* of a bucket: 128 bits, hexadecimal, with the NUL */

enum change_kind { CHANGE_TENANT, CHANGE_KEY, CHANGE_SKILL, CHANGE_FILE, CHANGE_SESSION };
#define CHANGE_KINDS (CHANGE_SESSION + 1)

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

#define CHANGE_SKILL_NAME_SIZE  (LIMIT_NAME_BYTES + 1)
#define CHANGE_VERSION_SIZE     (LIMIT_VERSION_BYTES + 1)
#define CHANGE_DESCRIPTION_SIZE 4097u
#define CHANGE_PACKAGES_SIZE    8193u
#define CHANGE_PLACE_MAX        (1ull << 53)

/* A version of a skill; of a tenant's versions each has a name and version of its own. */
struct change_skill {
    char tenant[TENANT_ID_SIZE];
    char name[CHANGE_SKILL_NAME_SIZE];
    char version[CHANGE_VERSION_SIZE];
    char digest[CHANGE_DIGEST_SIZE];
    char description[CHANGE_DESCRIPTION_SIZE];
    uint64_t created_ns;
    uint64_t bytes; /* of its objects */
    uint64_t place; /* among those of its name: the newest has the largest */
    bool is_floating;
    char packages_digest[CHANGE_DIGEST_SIZE]; /* "": none */
    char packages[CHANGE_PACKAGES_SIZE];      /* a JSON array; "": none were wanted */
    uint64_t packages_python;
};

#define CHANGE_FILE_ID_SIZE   38u
#define CHANGE_FILE_NAME_SIZE (LIMIT_FILE_NAME_BYTES + 1)
#define CHANGE_TYPE_SIZE      (LIMIT_TYPE_BYTES + 1)

/* An uploaded file; what it holds is an object. */
struct change_file {
    char tenant[TENANT_ID_SIZE];
    char id[CHANGE_FILE_ID_SIZE]; /* "file_" and 32 hexadecimal digits, no other file's */
    char name[CHANGE_FILE_NAME_SIZE];
    char content_type[CHANGE_TYPE_SIZE];
    char digest[CHANGE_DIGEST_SIZE];
    uint64_t bytes;
    uint64_t created_ns;
    uint64_t expires_ns; /* INT64_MAX: never */
};

#define CHANGE_SESSION_NAME_SIZE (LIMIT_SESSION_ID_BYTES + 1)

/* A session; what is in it is an object. */
struct change_session {
    char tenant[TENANT_ID_SIZE];
    char name[CHANGE_SESSION_NAME_SIZE]; /* the caller's word for it, no other one's */
    char digest[CHANGE_DIGEST_SIZE];
    uint64_t bytes;         /* of its object */
    uint64_t files;         /* in it, and empty folders */
    uint64_t content_bytes; /* of these */
    uint64_t created_ns;
    uint64_t changed_ns;
    uint64_t used_ns;
};

struct change {
    enum change_kind kind;
    char id[CHANGE_ID_SIZE];
    bool is_removed; /* with all that belongs to it; nothing below counts */
    union {
        struct change_tenant tenant;
        struct change_key key;
        struct change_skill skill;
        struct change_file file;
        struct change_session session;
    };
};

/* Whose a skill, a file or a session is that is not removed; NULL of all else. */
const char *change_owner(const struct change *change);

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
