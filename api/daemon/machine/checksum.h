/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the builder of a guest kernel or image says its digest is: one line of sha256sum(1) in
 * NAME.sha256 beside NAME.erofs, or beside a file without an ending. A file is used only if it
 * has that digest: a copy that was cut short, a sector that went bad and another image under
 * this name are told from what was built. Whoever may write both files is not kept from
 * anything.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_CHECKSUM_H
#define SKILLVM_API_DAEMON_MACHINE_CHECKSUM_H

#include "api/skill/sha256.h"
#include "base/err.h"

/*
 * The digest that the file of a path is to have; what is its name in a message. 0; -EBADMSG:
 * there is no telling; -errno.
 */
int checksum_read(const char *path, const char *what, char ret_hex[SHA256_HEX_SIZE],
                  struct err *err);
/*
 * Whether the file of a path, which has the digest hex, is what was built; what is its name in
 * a message. 0; -EBADMSG: it is another, or there is no telling; -errno.
 */
int checksum_check(const char *path, const char *what, const char hex[SHA256_HEX_SIZE],
                   struct err *err);

#endif
