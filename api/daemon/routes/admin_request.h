/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON bodies of /v1/admin, checked: types, sizes, names, and no key that nobody knows.
 * Null is the same as absent.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_ADMIN_REQUEST_H
#define SKILLVM_API_DAEMON_ROUTES_ADMIN_REQUEST_H

#include "api/daemon/terms/tenant.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* What a tenant shall be or become. The name is owned. */
struct admin_tenant {
    char *name; /* NULL where absent */
    bool has_disabled;
    bool is_disabled;
    struct tenant_limits *limits; /* not owned: what the body names changes in them */
};

/*
 * Parses {name?, disabled?, limits?}. 0; -EINVAL; -ENOMEM. The caller finishes *ret, also after
 * a failure.
 */
int admin_tenant_parse(const char *body, size_t len, struct admin_tenant *ret,
                       struct tenant_limits *limits, struct err *err);
void admin_tenant_finish(struct admin_tenant *tenant);
#define _cleanup_admin_tenant_ __attribute__((cleanup(admin_tenant_finish)))

/* A key to make. Strings are owned. */
struct admin_key {
    char *tenant; /* id or name; NULL where absent */
    char *name;   /* NULL where absent */
    bool is_operator;
};

/* Parses {tenant?, name?, role?}. As above. */
int admin_key_parse(const char *body, size_t len, struct admin_key *ret, struct err *err);
void admin_key_finish(struct admin_key *key);
#define _cleanup_admin_key_ __attribute__((cleanup(admin_key_finish)))

#endif
