/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of an execution's files that need no key, as object stores presign them: whoever
 * has one may fetch these files for an hour. Clients of Skillbox follow files_url without their
 * key, so over TCP it is such an address. The id, the time it ends, the tenant and an
 * HMAC-SHA256 of these (RFC 2104) make it up, under a secret that ends with the daemon, or is
 * that of all nodes of a cluster.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_DOWNLOAD_LINK_H
#define SKILLVM_API_DAEMON_ROUTES_DOWNLOAD_LINK_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/terms/tenant.h"
#include "api/skill/sha256.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOWNLOAD_LINK_PATH      "/v1/downloads/"
#define DOWNLOAD_LINK_SECONDS   3600u
#define DOWNLOAD_LINK_NAME_SIZE 160u /* of the last part of the path, with its end */

struct download_links {
    char secret[SHA256_HEX_SIZE];
};

/* Draws the secret. 0 or -errno. */
int download_links_init(struct download_links *links, struct err *err);
/*
 * Those of a cluster, by the mark of its bucket of changes, which its nodes know and nobody
 * else; "": the daemon's own. 0 or -ENOMEM.
 */
int download_links_of(const struct download_links *own, const char *mark,
                      struct download_links *ret);

/* Whose files a name is for. */
struct download_link {
    char tenant[TENANT_ID_SIZE];
    char id[EXECUTION_ID_SIZE];
};

/* Writes a name, good until expires_s (Unix time, below 2^40). 0 or -ENOMEM. */
int download_links_name(const struct download_links *links, const struct download_link *link,
                        uint64_t expires_s, char ret[DOWNLOAD_LINK_NAME_SIZE]);

/* True for a name that was made under this secret and is still good at now_s; *ret is then
   what it is for. */
bool download_links_check(const struct download_links *links, const char *name, uint64_t now_s,
                          struct download_link *ret);

/*
 * Appends a tenant's result (checked JSON) to out, a files_url in it replaced by base and the
 * path of a name that is good from now_s on. 0, -EINVAL when it is no result, -E2BIG or
 * -ENOMEM.
 */
int download_links_present(const struct download_links *links, const char *base,
                           const char *tenant, const char *result, size_t len, uint64_t now_s,
                           struct buf *out);

#endif
