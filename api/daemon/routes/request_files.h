/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "files" of an execution's request: what was uploaded, what another execution left, and
 * content that comes with the request, of which only the place is kept.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_REQUEST_FILES_H
#define SKILLVM_API_DAEMON_ROUTES_REQUEST_FILES_H

#include "api/daemon/routes/request.h"
#include "api/json/json_text.h"
#include "base/err.h"

/*
 * Parses the value of the key, a member that lies in body and was checked, into q->files. 0;
 * -EINVAL; -EFBIG; -ENOMEM. What q holds is its owner's to finish, on failure too.
 */
int request_files_parse(const char *body, const struct json_member *m, struct request *q,
                        struct err *err);

#endif
