/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/remote.h"

#include "api/cli/admin.h"
#include "api/cli/verbs.h"
#include "base/cleanup.h"
#include "base/nearest.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)

int remote_open(const struct cli *cli, struct skillvm **ret_client, struct err *err)
{
    struct skillvm_error error;
    struct skillvm *client;
    int result = skillvm_open(cli->server[0] ? cli->server : cli->socket_path,
                              cli->key[0] ? cli->key : NULL, &client, &error);

    if (result == 0 && skillvm_set_tenant(client, cli->tenant, &error) < 0) {
        result = -error.code;
        skillvm_close(client);
    }
    if (result < 0)
        return err_set(err, error.code, "%s", error.message);
    *ret_client = client;
    return 0;
}

int remote_request_json(struct skillvm *client, const char *method, const char *path,
                        cJSON **ret, struct skillvm_error *error)
{
    char *text = NULL;
    int r = skillvm_request(client, method, path, NULL, &text, error);

    if (r < 0)
        return r;
    *ret = cJSON_Parse(text);
    skillvm_free(text);
    if (!*ret && error)
        *error = (struct skillvm_error){.code = EPROTO,
                                        .message = "the daemon's answer cannot be read"};
    return *ret ? 0 : -EPROTO;
}

/* Whether the daemon says to the operator that it does not know the tenant to work for. */
static bool is_no_tenant(const struct cli *cli)
{
    _cleanup_free_ char *path = admin_path("tenants", cli->tenant);
    struct skillvm_error error = {0};

    return path && skillvm_request(cli->client, "GET", path, NULL, NULL, &error) < 0 &&
           error.http_status == 404;
}

/* The end of a message on a tenant that is not there: the names of some that are. */
static void list_tenants(const struct cli *cli, char *out, size_t size)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    const char *before = "; there is ";
    const cJSON *item;

    (void)remote_request_json(cli->client, "GET", "/v1/admin/tenants?limit=10", &json, NULL);
    cJSON_ArrayForEach(item, verbs_member(json, "tenants")) {
        const size_t used = strlen(out);

        if (verbs_text(item, "name"))
            (void)snprintf(out + used, size - used, "%s%.64s", before,
                           verbs_text(item, "name"));
        before = ", ";
    }
    if (verbs_text(json, "next_cursor"))
        (void)snprintf(out + strlen(out), size - strlen(out), "%s",
                       ", … (`skillvm tenant list`)");
}

/* Whether the operator works for a tenant that is not there; out then has which ones are. */
static bool lacks_tenant(const struct cli *cli, char *out, size_t size)
{
    bool lacks;

    out[0] = '\0';
    if (!cli->tenant || !cli->client || skillvm_set_tenant(cli->client, NULL, NULL) < 0)
        return false;
    lacks = is_no_tenant(cli);
    if (lacks)
        list_tenants(cli, out, size);
    (void)skillvm_set_tenant(cli->client, cli->tenant, NULL);
    return lacks;
}

/* What to do about it, with "; " before it, or "". */
static void advise(const struct cli *cli, const struct skillvm_error *error, char *out,
                   size_t size)
{
    out[0] = '\0';
    if (error->http_status == 401 && cli->key_from)
        (void)snprintf(out, size, "; the key is that of %s", cli->key_from);
    else if (error->http_status == 401)
        (void)snprintf(out, size, "; give a key with SKILLVM_API_KEY or --key @FILE");
    else if (error->http_status == 429 && error->retry_after_s)
        (void)snprintf(out, size, "; try again in %u s", error->retry_after_s);
    else if (error->http_status || !(error->code == ENOENT || error->code == ECONNREFUSED))
        return;
    else if (cli->server[0])
        (void)snprintf(out, size, "; the server was named by %s", cli->server_from);
    else
        (void)snprintf(out, size, "; start one with `skillvm up`");
}

int remote_explain(const struct cli *cli, const struct skillvm_error *error, struct err *err)
{
    char advice[256];

    if (error->http_status == 404 && lacks_tenant(cli, advice, sizeof(advice)))
        return err_set(err, error->code, "there is no tenant \"%s\" (%s)%s", cli->tenant,
                       error->name, advice);
    advise(cli, error, advice, sizeof(advice));
    return err_set(err, error->code, "%s%s", error->message, advice);
}

int remote_note_id(void *ctx, const char *execution_id, const char *status)
{
    (void)status;
    (void)snprintf(ctx, REMOTE_ID_SIZE, "%s", execution_id);
    return 0;
}

int remote_should_stop(void *ctx)
{
    (void)ctx;
    return cli_interrupted() != 0;
}

int remote_failed(const struct cli *cli, const struct skillvm_error *error)
{
    struct err err = {0};

    (void)remote_explain(cli, error, &err);
    return verbs_failed(&err);
}

void remote_hint_skill(const cJSON *skills, const char *name, char out[NEAREST_HINT_SIZE])
{
    struct nearest nearest = nearest_init(name);
    const cJSON *item;

    cJSON_ArrayForEach(item, skills) {
        if (verbs_text(item, "name"))
            nearest_offer(&nearest, verbs_text(item, "name"));
    }
    (void)nearest_hint(&nearest, out);
    if (cJSON_IsArray(skills) && cJSON_GetArraySize(skills) == 0)
        (void)snprintf(out, NEAREST_HINT_SIZE, "%s", REMOTE_NO_SKILLS);
}

int remote_failed_skill(const struct cli *cli, const struct skillvm_error *error,
                        const char *name)
{
    _cleanup_(cJSON_Delete) cJSON *skills = NULL;
    char advice[NEAREST_HINT_SIZE] = "";
    struct err err = {0};

    (void)remote_explain(cli, error, &err);
    if (error->http_status == 404) {
        (void)remote_request_json(cli->client, "GET", "/v1/skills", &skills, NULL);
        remote_hint_skill(skills, name, advice);
    }
    cli_say("%s%s", err.message, advice);
    return CLI_FAILED;
}
