/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request targets against routes, decoded where they stand. Segments are told apart before
 * anything is decoded, so what is encoded never changes which route a request reaches; what
 * decodes to a NUL, another control byte or a folder's "." and ".." is nowhere.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_MATCH_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_MATCH_H

#include "api/daemon/http/http.h"

/* The path of a request line's target, which may begin with scheme and authority. */
char *http_match_target(char *target);
/*
 * 0: the path, which has no query, has the form, and its names are in params where these are
 * not NULL; -ENOENT: it has another, and is as it was; -EINVAL: what stands for a name is none.
 */
int http_match_path(const char *pattern, char *path, const char *params[HTTP_PARAMS_MAX]);
/*
 * Finds the named parameters in a query, which may be NULL, the first of each name. False where
 * one of them cannot be decoded.
 */
bool http_match_query(char *query, const char *const names[HTTP_QUERY_MAX],
                      const char *values[HTTP_QUERY_MAX]);

#endif
