/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/admin.h"

#include "api/cli/remote.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE_MAX  200
#define PAGES_MAX 10000 /* a daemon that never ends its list ends here */

CLEANUP_WITH(cJSON *, cJSON_Delete)
CLEANUP_WITH(char *, cJSON_free)

char *admin_path(const char *collection, const char *id)
{
    char *encoded = skillvm_escape(id), *path = NULL;

    if (!encoded || asprintf(&path, "/v1/admin/%s/%s", collection, encoded) < 0)
        path = NULL;
    skillvm_free(encoded);
    return path;
}

int admin_send(const struct cli *cli, const struct options *options, const char *method,
               const char *path, struct cJSON *body,
               void (*print_table)(const struct cJSON *json))
{
    struct skillvm_error error;
    _cleanup_(cJSON_free) char *text = body ? cJSON_PrintUnformatted(body) : NULL;
    bool failed = !path || (body && !text);
    char *json = NULL;
    int result;

    cJSON_Delete(body);
    if (failed)
        return verbs_no_memory();
    result = skillvm_request(cli->client, method, path, text, &json, &error);
    return verbs_print(cli, options, result, &error, json, print_table);
}

int admin_remove(const struct cli *cli, const char *collection, const char *id)
{
    struct skillvm_error error;
    _cleanup_free_ char *path = admin_path(collection, id);

    if (!path)
        return verbs_no_memory();
    if (skillvm_request(cli->client, "DELETE", path, NULL, NULL, &error) < 0)
        return remote_failed(cli, &error);
    return CLI_OK;
}

/* Moves a page's entries to all. The next page's cursor, which the caller frees, or NULL. */
static char *take_page(cJSON *page, const char *collection, cJSON *all)
{
    cJSON *entries = cJSON_GetObjectItemCaseSensitive(page, collection);
    const char *cursor = verbs_text(page, "next_cursor");

    while (entries && entries->child)
        cJSON_AddItemToArray(all, cJSON_DetachItemViaPointer(entries, entries->child));
    return cursor ? skillvm_escape(cursor) : NULL;
}

/* Gets the page behind *cursor, which becomes that of the next one. 0 or an exit status. */
static int get_page(const struct cli *cli, const char *collection, const char *query,
                    char **cursor, cJSON *all)
{
    struct skillvm_error error;
    _cleanup_free_ char *path = NULL;
    _cleanup_(cJSON_Delete) cJSON *page = NULL;

    if (asprintf(&path, "/v1/admin/%s?limit=%d%s%s%s%s", collection, PAGE_MAX, query ? "&" : "",
                 query ? query : "", *cursor ? "&cursor=" : "", *cursor ? *cursor : "") < 0)
        return verbs_no_memory();
    skillvm_free(*cursor);
    *cursor = NULL;
    if (remote_request_json(cli->client, "GET", path, &page, &error) < 0)
        return remote_failed(cli, &error);
    *cursor = take_page(page, collection, all);
    return 0;
}

int admin_list(const struct cli *cli, const struct options *options, const char *collection,
               const char *query, void (*print_table)(const struct cJSON *json))
{
    cJSON *json = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(json, collection);
    char *cursor = NULL;
    int status = all ? 0 : verbs_no_memory();

    for (unsigned i = 0; status == 0 && i < PAGES_MAX && (i == 0 || cursor); i++)
        status = get_page(cli, collection, query, &cursor, all);
    skillvm_free(cursor);
    if (status == 0 && options->json)
        return verbs_print_tree(json);
    if (status == 0)
        print_table(all);
    cJSON_Delete(json);
    return status;
}
