/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm tenant`: who owns skills and executions, and what each may use. */
#include "api/cli/admin.h"
#include "api/cli/show.h"
#include "api/cli/table.h"
#include "api/skill/duration.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum amount { AMOUNT_COUNT, AMOUNT_TIME, AMOUNT_SIZE };

/* A limit by its names here and in the daemon's JSON. */
static const struct limit {
    const char *option;
    const char *member;
    const char *shown;
    enum amount amount;
    size_t offset;
} limits[] = {
#define MEMBER(member) offsetof(struct options, member)
    {"weight", "weight", "weight", AMOUNT_COUNT, MEMBER(weight)},
    {"max-running", "max_running", "max running", AMOUNT_COUNT, MEMBER(max_running)},
    {"max-queued", "max_queued", "max queued", AMOUNT_COUNT, MEMBER(max_queued)},
    {"rate", "rate_per_minute", "per minute", AMOUNT_COUNT, MEMBER(rate)},
    {"cpu-per-day", "cpu_ms_per_day", "CPU per day", AMOUNT_TIME, MEMBER(cpu_per_day)},
    {"storage", "storage_bytes", "storage", AMOUNT_SIZE, MEMBER(storage)},
    {"max-timeout", "max_timeout_ms", "max timeout", AMOUNT_TIME, MEMBER(max_timeout)},
    {"max-memory", "max_memory_bytes", "max memory", AMOUNT_SIZE, MEMBER(max_memory)},
#undef MEMBER
};

#define N_LIMITS (sizeof(limits) / sizeof(limits[0]))

/* "none" is 0. 0 or -EINVAL. */
static int parse_amount(enum amount amount, const char *text, double *ret)
{
    uint64_t value = 0;
    char *end;
    int result = 0;

    if (strcmp(text, "none") == 0) {
        *ret = 0;
        return 0;
    }
    if (amount == AMOUNT_TIME) {
        result = duration_parse(text, &value);
    } else if (amount == AMOUNT_SIZE) {
        result = size_parse(text, &value);
    } else {
        value = strtoul(text, &end, 10);
        result = *text >= '0' && *text <= '9' && !*end && value <= 1000000000 ? 0 : -EINVAL;
    }
    *ret = (double)value;
    return result;
}

/* Names between commas as an array, which is empty for none. */
static void add_images(cJSON *object, const char *text)
{
    cJSON *array = cJSON_AddArrayToObject(object, "images");

    for (const char *at = strcmp(text, "none") == 0 ? "" : text; *at;) {
        size_t len = strcspn(at, ",");
        _cleanup_free_ char *name = strndup(at, len);

        cJSON_AddItemToArray(array, name ? cJSON_CreateString(name) : NULL);
        at += len + (at[len] == ',');
    }
}

/* Adds what was given as "limits". -1: go on; else the exit status. */
static int add_limits(const struct options *options, cJSON *body)
{
    static const char *const hints[] = {
        [AMOUNT_COUNT] = "a number",
        [AMOUNT_TIME] = "an amount such as 30s, 10m or 2h",
        [AMOUNT_SIZE] = "an amount such as 512Mi or 10Gi",
    };
    cJSON *object = NULL;

    for (size_t i = 0; i < N_LIMITS; i++) {
        const char *text;
        double value;

        memcpy(&text, (const char *)options + limits[i].offset, sizeof(text));
        if (!text)
            continue;
        if (parse_amount(limits[i].amount, text, &value))
            return help_usage_error("tenant", "--%s %s: use %s, or none", limits[i].option,
                                    text, hints[limits[i].amount]);
        if (!object)
            object = cJSON_AddObjectToObject(body, "limits");
        cJSON_AddNumberToObject(object, limits[i].member, value);
    }
    if (options->reuse && !object)
        object = cJSON_AddObjectToObject(body, "limits");
    if (options->reuse)
        cJSON_AddStringToObject(object, "reuse",
                                strcmp(options->reuse, "none") == 0 ? "" : options->reuse);
    if (options->images && !object)
        object = cJSON_AddObjectToObject(body, "limits");
    if (options->images)
        add_images(object, options->images);
    return -1;
}

static const char *show_amount(enum amount amount, double value, char out[SHOW_SIZE])
{
    if (amount == AMOUNT_TIME)
        return show_ms(value, out);
    if (amount == AMOUNT_SIZE)
        return show_bytes(value, out);
    (void)snprintf(out, SHOW_SIZE, "%.0f", value);
    return out;
}

/* What it may use, between commas. */
static void show_images(const cJSON *given)
{
    _cleanup_buf_ struct buf text = buf_init(SIZE_MAX / 2);
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(given, "images")) {
        if (cJSON_IsString(item))
            (void)buf_printf(&text, "%s%s", text.len > 0 ? ", " : "", item->valuestring);
    }
    show_field("images", 11, text.len > 0 ? buf_cstr(&text) : "no limit");
}

static const char *state_of(const cJSON *json)
{
    return cJSON_IsTrue(verbs_member(json, "disabled")) ? "disabled" : "active";
}

static void print_tenant(const cJSON *json)
{
    const cJSON *given = verbs_member(json, "limits");
    const cJSON *usage = verbs_member(json, "usage");
    const char *reuse = verbs_text(given, "reuse");
    char text[SHOW_SIZE];

    show_field("tenant", 11, verbs_text(json, "id"));
    show_field("name", 11, verbs_text(json, "name"));
    show_field("state", 11, state_of(json));
    show_field("created", 11, verbs_text(json, "created_at"));
    show_field("stored", 11, show_bytes(verbs_number(usage, "stored_bytes"), text));
    show_field("CPU today", 11, show_ms(verbs_number(usage, "cpu_ms_today"), text));
    for (size_t i = 0; i < N_LIMITS; i++) {
        double value = verbs_number(given, limits[i].member);

        show_field(limits[i].shown, 11,
                   value > 0 ? show_amount(limits[i].amount, value, text) : "no limit");
    }
    show_field("reuse", 11, reuse && *reuse ? reuse : "no limit");
    show_images(given);
}

static void print_tenants(const cJSON *json)
{
    static const char *const header[] = {"TENANT",    "STATE", "WEIGHT", "STORED",
                                         "CPU TODAY", "AGE",   "NAME"};
    struct table table = table_begin(header, sizeof(header) / sizeof(header[0]));
    time_t now = time(NULL);
    const cJSON *item;

    cJSON_ArrayForEach(item, json) {
        const cJSON *given = verbs_member(item, "limits");
        const cJSON *usage = verbs_member(item, "usage");
        char weight[SHOW_SIZE], stored[SHOW_SIZE], cpu[SHOW_SIZE], age[SHOW_SIZE];

        (void)snprintf(weight, sizeof(weight), "%.0f", verbs_number(given, "weight"));
        table_add(&table,
                  (const char *const[]){verbs_text(item, "id"), state_of(item), weight,
                                        show_bytes(verbs_number(usage, "stored_bytes"), stored),
                                        show_ms(verbs_number(usage, "cpu_ms_today"), cpu),
                                        show_age(verbs_text(item, "created_at"), now, age),
                                        verbs_text(item, "name")});
    }
    (void)table_end(&table, 0);
}

static int tenant_create(const struct cli *cli, const struct options *options)
{
    cJSON *body = cJSON_CreateObject();
    int status;

    cJSON_AddStringToObject(body, "name", options->args[0]);
    status = add_limits(options, body);
    if (status >= 0) {
        cJSON_Delete(body);
        return status;
    }
    return admin_send(cli, options, "POST", "/v1/admin/tenants", body, print_tenant);
}

static int tenant_list(const struct cli *cli, const struct options *options)
{
    return admin_list(cli, options, "tenants", NULL, print_tenants);
}

/* Sends to one tenant, or only asks for it where body is NULL. */
static int tenant_one(const struct cli *cli, const struct options *options, const char *method,
                      cJSON *body)
{
    _cleanup_free_ char *path = admin_path("tenants", options->args[0]);

    return admin_send(cli, options, method, path, body, print_tenant);
}

static int tenant_show(const struct cli *cli, const struct options *options)
{
    return tenant_one(cli, options, "GET", NULL);
}

static int tenant_set(const struct cli *cli, const struct options *options)
{
    cJSON *body;
    int status;

    if (options->enable && options->disable)
        return help_usage_error("tenant", "give --enable or --disable, not both");
    body = cJSON_CreateObject();
    (void)verbs_add_text(body, "name", options->name);
    if (options->enable || options->disable)
        cJSON_AddBoolToObject(body, "disabled", options->disable);
    status = add_limits(options, body);
    if (status < 0 && body && !body->child)
        status = help_usage_error("tenant", "say what to set");
    if (status >= 0) {
        cJSON_Delete(body);
        return status;
    }
    return tenant_one(cli, options, "PATCH", body);
}

static int tenant_rm(const struct cli *cli, const struct options *options)
{
    return admin_remove(cli, "tenants", options->args[0]);
}

const struct verb tenant_verbs[] = {
    {
        .name = "create",
        .args = "NAME [limits]",
        .summary = "make one",
        .text = "Makes a tenant: an owner of skills and executions that no other tenant sees. "
                "Give it a key with `skillvm key create --tenant NAME`. A limit that is not "
                "given is none of its own.",
        .examples = "tenant create acme --max-running 4 --storage 5Gi\n",
        .options = OPTION_FORMAT | OPTION_LIMITS,
        .n_args = 1,
        .run = tenant_create,
    },
    {
        .name = "list",
        .args = "",
        .summary = "list them with what they use",
        .text = "Lists the tenants with what they use.",
        .examples = "tenant list\n",
        .options = OPTION_FORMAT,
        .run = tenant_list,
    },
    {
        .name = "show",
        .args = "TENANT",
        .summary = "show one and its limits",
        .text = "Shows a tenant, its limits and what it uses. TENANT is an id or a name.",
        .examples = "tenant show acme\n",
        .options = OPTION_FORMAT,
        .n_args = 1,
        .run = tenant_show,
    },
    {
        .name = "set",
        .args = "TENANT [options]",
        .summary = "change a name or limits, disable or enable it",
        .text = "Changes what is given and nothing else; none takes a limit away. A disabled "
                "tenant's keys are refused; what it has stays.",
        .examples = "tenant set acme --max-running 8 --storage none\n",
        .options = OPTION_FORMAT | OPTION_LIMITS | OPTION_NAME | OPTION_SWITCH,
        .n_args = 1,
        .run = tenant_set,
    },
    {
        .name = "rm",
        .args = "TENANT",
        .summary = "remove one with all it has",
        .text = "Removes a tenant with its keys, skills, executions and files. None of its "
                "executions may wait or run.",
        .examples = "tenant rm acme\n",
        .n_args = 1,
        .run = tenant_rm,
    },
    {.name = NULL},
};
