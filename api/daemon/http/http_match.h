/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request targets against routes. Segments are told apart before anything is decoded, so what
 * is encoded never changes which route a request reaches; what decodes to a NUL, another
 * control byte or a folder's "." and ".." matches nothing.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_MATCH_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_MATCH_H

#include "api/daemon/http/http.h"

/* Path and query of a request line's target, which may begin with scheme and authority. */
const char *http_match_target(const char *target);
/* 0: params are filled, owned by the caller; -ENOENT: another path; -ENOMEM. */
int http_match_path(const char *pattern, const char *target, char *params[HTTP_PARAMS_MAX]);
/*
 * Takes the named parameters out of the target's query, the first of each name, into values
 * owned by the caller. 0; -EINVAL where one of them cannot be decoded; -ENOMEM.
 */
int http_match_query(const char *target, const char *const names[HTTP_QUERY_MAX],
                     char *values[HTTP_QUERY_MAX]);
/* Frees params or values and empties them. */
void http_match_free(char **values, size_t n);

#endif
