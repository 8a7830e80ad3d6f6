/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the registry: who may speak for a tenant. The keys themselves are nowhere. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_KEYS_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_KEYS_H

#include "api/daemon/registry/registry.h"

/* "key_" and 32 hexadecimal digits. */
#define REGISTRY_KEY_ID_SIZE 37u

/* A key. The name is owned. */
struct registry_key {
    char id[REGISTRY_KEY_ID_SIZE];
    char tenant[TENANT_ID_SIZE];
    char *name;            /* for people */
    bool is_operator;      /* else it only speaks for its tenant */
    bool tenant_disabled;  /* its tenant is */
    uint64_t created_ns;   /* realtime, as all here */
    uint64_t last_used_ns; /* 0: never; may be some minutes behind */
    uint64_t revoked_ns;   /* 0: not revoked */
};

void registry_key_finish(struct registry_key *key);
#define _cleanup_registry_key_ __attribute__((cleanup(registry_key_finish)))

/* Finds a key, also one that was revoked. 0, -ENOENT, -ENOMEM or -EIO. */
int registry_key_by_digest(struct registry *registry, const char *digest,
                           struct registry_key *ret, struct err *err);
/*
 * Reads up to max keys of a tenant (NULL: of all) to rows, the newest first, from after a place
 * (after_id NULL: the beginning). *ret_n are the caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_key_list(struct registry *registry, const char *tenant, uint64_t after_ns,
                      const char *after_id, size_t max, struct registry_key *rows,
                      size_t *ret_n, struct err *err);
/* Notes that a key was used. 0 or -EIO. */
int registry_key_touch(struct registry *registry, const char *id, uint64_t now_ns,
                       struct err *err);

#endif
