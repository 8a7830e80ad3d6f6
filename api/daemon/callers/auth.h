/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who calls: keys, and the credentials of unix peers. A key is "sk-" and 64 hexadecimal digits
 * (256 random bits); the daemon keeps its SHA-256 only.
 */
#ifndef SKILLVM_API_DAEMON_CALLERS_AUTH_H
#define SKILLVM_API_DAEMON_CALLERS_AUTH_H

#include "api/daemon/callers/audit.h"
#include "api/daemon/http/http.h"
#include "api/daemon/registry/registry.h"
#include "api/skill/sha256.h"

#define AUTH_KEY_SIZE 68u /* with its NUL */

/* Borrowed. */
struct auth {
    struct registry *registry;
    struct audit *audit;
    bool takes_keys; /* what is known of keys is new enough */
};

/*
 * Says who sent a request, as an http_authorize_fn does. A key makes its tenant the caller
 * wherever it comes from; without one, root and the daemon's own user on the unix socket are
 * the operator. The operator may work for any tenant by naming it in X-Tenant-ID. 0; -EACCES:
 * nobody we know; -EPERM: the header names another tenant than the key's; -ENOENT: the header
 * names no tenant; -EAGAIN: no key is looked at now; -EIO.
 */
int auth_authorize(const struct auth *auth, const struct http_origin *origin,
                   const char *bearer, struct caller *ret);

/* Makes a key and its digest. 0 or -EIO. The caller wipes the key once it was shown. */
int auth_make_key(char ret_key[AUTH_KEY_SIZE], char ret_digest[SHA256_HEX_SIZE]);

#endif
