/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/callers/auth.h"

#include "api/daemon/registry/registry_keys.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/terms/ids.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEY_DIGITS 64u
/* last_used_ns is written at most this often: it is a write to disk. */
#define TOUCH_NS (300ull * 1000000000ull)

int auth_make_key(char ret_key[AUTH_KEY_SIZE], char ret_digest[SHA256_HEX_SIZE])
{
    int r;

    memcpy(ret_key, "sk-", 4);
    r = ids_make_digits(KEY_DIGITS / 2, ret_key + 3);
    if (r < 0)
        return r;
    r = sha256_of(ret_key, strlen(ret_key), ret_digest);
    return r < 0 ? -EIO : 0;
}

static bool is_key(const char *text)
{
    return strncmp(text, "sk-", 3) == 0 && strlen(text) == KEY_DIGITS + 3 &&
           strspn(text + 3, "0123456789abcdef") == KEY_DIGITS;
}

static int refuse(const struct auth *auth, const char *actor, const char *why)
{
    audit_refused(auth->audit, actor, why);
    return -EACCES;
}

/*
 * Finds a key by its digest. How long the look-up takes may tell how far a digest agrees with
 * one in the index; that is of no use to anybody, for it neither tells the 256 random bits
 * behind that digest nor how to find others whose digest agrees further. So nothing here needs
 * to compare in constant time.
 */
static int find_by_digest(const struct auth *auth, const char *bearer, struct registry_key *ret,
                          struct err *err)
{
    char digest[SHA256_HEX_SIZE];
    int r = sha256_of(bearer, strlen(bearer), digest);

    return r < 0 ? r : registry_key_by_digest(auth->registry, digest, ret, err);
}

static int find_key(const struct auth *auth, const char *bearer, struct registry_key *ret)
{
    struct err err = {0};
    int r = find_by_digest(auth, bearer, ret, &err);

    if (r == 0 || r == -ENOENT)
        return r;
    log_error("auth", "key=\"cannot be looked up\" reason=\"%s\"", err.message);
    return -EIO;
}

static void touch(const struct auth *auth, const struct registry_key *key)
{
    uint64_t now_ns = clock_realtime_ns();
    struct err err = {0};

    if (now_ns > key->last_used_ns && now_ns - key->last_used_ns < TOUCH_NS)
        return;
    if (registry_key_touch(auth->registry, key->id, now_ns, &err) < 0)
        log_warn("auth", "key=%s use=\"not noted\" reason=\"%s\"", key->id, err.message);
}

static int take_key(const struct auth *auth, const char *from, const char *bearer,
                    struct caller *ret)
{
    _cleanup_registry_key_ struct registry_key key = {0};
    int r = is_key(bearer) ? find_key(auth, bearer, &key) : -ENOENT;

    if (r == -ENOENT)
        return refuse(auth, from, "a key nobody has");
    if (r < 0)
        return r;
    if (key.revoked_ns)
        return refuse(auth, key.id, "a revoked key");
    if (key.tenant_disabled)
        return refuse(auth, key.id, "a key of a disabled tenant");
    touch(auth, &key);
    *ret = (struct caller){.is_operator = key.is_operator};
    memcpy(ret->tenant, key.tenant, sizeof(ret->tenant));
    memcpy(ret->actor, key.id, sizeof(key.id));
    return 0;
}

/* What the header X-Tenant-ID changes. */
static int choose_tenant(const struct auth *auth, const char *wanted, struct caller *caller)
{
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};
    struct err err = {0};
    int r;

    if (!wanted || strcmp(wanted, caller->tenant) == 0)
        return 0;
    r = registry_tenant_find(auth->registry, wanted, &tenant, &err);
    if (r < 0 && r != -ENOENT) {
        log_error("auth", "tenant=\"cannot be looked up\" reason=\"%s\"", err.message);
        return -EIO;
    }
    /* To another tenant, one that is there and one that is not are the same. */
    if (!caller->is_operator)
        return r == 0 && strcmp(tenant.id, caller->tenant) == 0 ? 0 : -EPERM;
    if (r == 0)
        memcpy(caller->tenant, tenant.id, sizeof(caller->tenant));
    return r;
}

int auth_authorize(const struct auth *auth, const struct http_origin *origin,
                   const char *bearer, struct caller *ret)
{
    struct caller caller;
    char from[CALLER_ACTOR_SIZE] = "tcp";
    int r = 0;

    if (origin->is_unix)
        (void)snprintf(from, sizeof(from), "uid:%u", origin->uid);
    if (bearer && !auth->takes_keys)
        r = -EAGAIN;
    else if (bearer)
        r = take_key(auth, from, bearer, &caller);
    else if (origin->is_unix && (origin->uid == 0 || origin->uid == geteuid()))
        caller = caller_operator(from);
    else
        r = refuse(auth, from, "no key");
    if (r < 0)
        return r;
    r = choose_tenant(auth, origin->tenant_header, &caller);
    if (r < 0)
        return r;
    *ret = caller;
    return 0;
}
