/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of an execution's files that need no key, as object stores presign them: whoever
 * has one may fetch these files for an hour. Clients of Skillbox follow files_url without their
 * key, so over TCP it is such an address. The id, the time it ends and an HMAC-SHA256 of both
 * (RFC 2104) under a secret that ends with the daemon make it up.
 */
#ifndef SKILLVM_API_DAEMON_DOWNLOAD_LINK_H
#define SKILLVM_API_DAEMON_DOWNLOAD_LINK_H

#include "api/daemon/execution.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOWNLOAD_LINK_PATH      "/v1/downloads/"
#define DOWNLOAD_LINK_SECONDS   3600u
#define DOWNLOAD_LINK_NAME_SIZE 116u /* of the last part of the path, with its end */

struct download_links {
    uint8_t secret[32];
};

/* Draws the secret. 0 or -errno. */
int download_links_init(struct download_links *links, struct err *err);

/*
 * Writes the name for an execution's files, good until expires_s (Unix time, below 2^40). 0 or
 * -ENOMEM.
 */
int download_links_name(const struct download_links *links, const char *id, uint64_t expires_s,
                        char ret[DOWNLOAD_LINK_NAME_SIZE]);

/* True for a name that was made here and is still good at now_s; *ret_id is then whose. */
bool download_links_check(const struct download_links *links, const char *name, uint64_t now_s,
                          char ret_id[EXECUTION_ID_SIZE]);

/*
 * Appends a result (checked JSON) to out, a files_url in it replaced by base and the path of a
 * name that is good from now_s on. 0, -EINVAL when it is no result, -E2BIG or -ENOMEM.
 */
int download_links_present(const struct download_links *links, const char *base,
                           const char *result, size_t len, uint64_t now_s, struct buf *out);

#endif
