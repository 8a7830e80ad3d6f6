/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a session in the shape of a list of files. */
#ifndef SKILLVM_API_DAEMON_ROUTES_SESSION_FILES_H
#define SKILLVM_API_DAEMON_ROUTES_SESSION_FILES_H

#include "api/daemon/routes/daemon.h"

#include <stddef.h>

/*
 * Replies with up to limit files of a session of the caller's, without the first offset of
 * them; none where there is no such session. It counts as used.
 */
void session_files_reply(struct daemon *d, const struct http_request *request, const char *id,
                         size_t limit, size_t offset, struct http_reply *reply);

#endif
