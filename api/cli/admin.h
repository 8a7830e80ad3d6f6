/* SPDX-License-Identifier: Apache-2.0 */
/* What `skillvm tenant` and `skillvm key` share: the daemon's /v1/admin. */
#ifndef SKILLVM_API_CLI_ADMIN_H
#define SKILLVM_API_CLI_ADMIN_H

#include "api/cli/verbs.h"

/* "/v1/admin/COLLECTION/ID", with the id encoded; NULL without memory. The caller frees it. */
char *admin_path(const char *collection, const char *id);

/*
 * Sends body, which is deleted (NULL: none), to the path (NULL: there was no memory for it) and
 * prints the answer. Returns the exit status.
 */
int admin_send(const struct cli *cli, const struct options *options, const char *method,
               const char *path, struct cJSON *body,
               void (*print_table)(const struct cJSON *json));

/* DELETE of one of a collection. Returns the exit status. */
int admin_remove(const struct cli *cli, const char *collection, const char *id);

/*
 * Gets every page of a collection and prints it as JSON, {COLLECTION: […]}, or by print_table.
 * query is "tenant=…" or NULL. Returns the exit status.
 */
int admin_list(const struct cli *cli, const struct options *options, const char *collection,
               const char *query, void (*print_table)(const struct cJSON *json));

#endif
