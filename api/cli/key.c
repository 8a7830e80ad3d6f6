/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm key`: the API keys of tenants and operators. */
#include "api/cli/admin.h"
#include "api/cli/remote.h"
#include "api/cli/show.h"
#include "api/cli/table.h"
#include "base/percent.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void print_created(const cJSON *json)
{
    const char *key = verbs_text(json, "key");

    const char *id = verbs_text(json, "id"), *tenant = verbs_text(json, "tenant_id");
    const char *role = verbs_text(json, "role");

    cli_say("key %s, a%s's, of tenant %s; it is shown this once:", id ? id : "-",
            role && strcmp(role, "operator") == 0 ? "n operator" : " tenant",
            tenant ? tenant : "-");
    show_text(stdout, key ? key : "");
    (void)fputc('\n', stdout);
}

static void print_keys(const cJSON *json)
{
    static const char *const header[] = {"KEY", "ROLE",   "STATE", "USED",
                                         "AGE", "TENANT", "NAME"};
    struct table table = table_begin(header, sizeof(header) / sizeof(header[0]));
    time_t now = time(NULL);
    const cJSON *item;

    cJSON_ArrayForEach(item, json) {
        char used[SHOW_SIZE], age[SHOW_SIZE];

        table_add(&table, (const char *const[]){
                              verbs_text(item, "id"), verbs_text(item, "role"),
                              verbs_text(item, "revoked_at") ? "revoked" : "active",
                              show_age(verbs_text(item, "last_used_at"), now, used),
                              show_age(verbs_text(item, "created_at"), now, age),
                              verbs_text(item, "tenant_id"), verbs_text(item, "name")});
    }
    (void)table_end(&table, 0);
}

static int key_create(const struct cli *cli, const struct options *options)
{
    cJSON *body = cJSON_CreateObject();

    (void)verbs_add_text(body, "tenant", options->tenant);
    (void)verbs_add_text(body, "name", options->name);
    (void)verbs_add_text(body, "role", options->role);
    return admin_send(cli, options, "POST", "/v1/admin/keys", body, print_created);
}

static int key_list(const struct cli *cli, const struct options *options)
{
    _cleanup_buf_ struct buf query = buf_init(SIZE_MAX / 2);

    if (!options->tenant)
        return admin_list(cli, options, "keys", NULL, print_keys);
    if (percent_printf(&query, "tenant=%s", options->tenant) < 0 || !buf_cstr(&query))
        return verbs_no_memory();
    return admin_list(cli, options, "keys", buf_cstr(&query), print_keys);
}

static int key_revoke(const struct cli *cli, const struct options *options)
{
    return admin_remove(cli, "keys", options->args[0]);
}

const struct verb key_verbs[] = {
    {
        .name = "create",
        .args = "[options]",
        .summary = "make one and print it, this once",
        .text = "Makes an API key and prints it to standard output. It is shown this once: the "
                "daemon keeps only a digest of it. It is the default tenant's where none is "
                "named.",
        .examples = "key create --tenant acme --name ci > acme.key\n",
        .options = OPTION_FORMAT | OPTION_TENANT | OPTION_NAME | OPTION_ROLE,
        .run = key_create,
    },
    {
        .name = "list",
        .args = "[--tenant TENANT]",
        .summary = "list them",
        .text = "Lists the keys, of one tenant or of all, without the keys themselves.",
        .examples = "key list --tenant acme\n",
        .options = OPTION_FORMAT | OPTION_TENANT,
        .run = key_list,
    },
    {
        .name = "revoke",
        .args = "KEY_ID",
        .summary = "end one",
        .text = "Ends what a key may do, at once and for good.",
        .examples = "key revoke key_0123456789abcdef0123456789abcdef\n",
        .n_args = 1,
        .run = key_revoke,
    },
    {.name = NULL},
};
