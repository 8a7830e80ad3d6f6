/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm status`: what is known about the daemon and its host, without changing anything. */
#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "api/cli/mark.h"
#include "api/cli/remote.h"
#include "api/cli/verbs.h"
#include "api/host/host.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct status {
    struct daemon_state daemon;
    struct host_status host;
    bool ready;
    char detail[ERR_MESSAGE_MAX]; /* why it is not ready */
    double uptime_s;
    /* Of the daemon's metrics, which are the operator's; none where they cannot be read. */
    bool has_machines;
    double machines, parked_fresh, parked_used;
    char isolation[ERR_MESSAGE_MAX]; /* "ok", or what its jail lacks; "": not known */
    char cluster[ERR_MESSAGE_MAX];   /* "ok", or why it is not joined; "": it has none */
};

/* Seconds since a process started. */
static double process_age_s(pid_t pid)
{
    double started = (double)mark_start_time(pid) / (double)sysconf(_SC_CLK_TCK);
    struct timespec now;

    if (started <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        return 0;
    double age = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - started;
    return age > 0 ? age : 0;
}

/* The value of a series; 0 where there is none. */
static double series_value(const char *metrics, const char *series)
{
    const char *at = strstr(metrics, series);

    return at ? strtod(at + strlen(series), NULL) : 0;
}

static void read_machines(struct skillvm *client, struct status *s)
{
    struct skillvm_error why = {0};
    char *text = NULL;

    if (skillvm_request(client, "GET", "/metrics", NULL, &text, &why) < 0)
        return;
    s->has_machines = true;
    s->machines = series_value(text, "\nskillvm_machines ");
    s->parked_fresh = series_value(text, "\nskillvm_machines_parked{kind=\"fresh\"} ");
    s->parked_used = series_value(text, "\nskillvm_machines_parked{kind=\"used\"} ");
    skillvm_free(text);
}

static void take_check(const cJSON *checks, const char *name, char out[ERR_MESSAGE_MAX])
{
    const cJSON *said = cJSON_GetObjectItem(checks, name);

    if (cJSON_IsString(said))
        snprintf(out, ERR_MESSAGE_MAX, "%s", said->valuestring);
}

/* What /ready says of the jail and of the cluster, where it is ready. */
static void read_checks(struct skillvm *client, struct status *s)
{
    cJSON *json = NULL;

    if (remote_request_json(client, "GET", "/ready", &json, NULL) < 0)
        return;
    take_check(cJSON_GetObjectItem(json, "checks"), "isolation", s->isolation);
    take_check(cJSON_GetObjectItem(json, "checks"), "cluster", s->cluster);
    cJSON_Delete(json);
}

static int read_status(const struct cli *cli, struct status *s, struct err *err)
{
    struct skillvm_error why = {0};
    int result = daemon_find(cli, &s->daemon, err);

    if (result < 0)
        return result;
    /* A daemon that is up and no software host's has nothing to do with one. */
    if ((s->daemon.up && !s->daemon.soft) || host_status_read(cli->data_dir, &s->host, NULL))
        s->host = (struct host_status){0};
    if (!s->daemon.up)
        return 0;
    s->uptime_s = process_age_s(s->daemon.pid);
    s->ready = skillvm_ready(cli->client, &why) == 0;
    read_machines(cli->client, s);
    read_checks(cli->client, s);
    if (!s->ready)
        snprintf(s->detail, sizeof(s->detail), "%s", why.message);
    return 0;
}

static const char *host_name(const struct status *s)
{
    return s->daemon.soft || s->host.state != HOST_STOPPED ? "soft" : "native";
}

static int print_json(const struct cli *cli, const struct status *s)
{
    cJSON *json = cJSON_CreateObject();
    bool up = s->daemon.up, soft = s->host.state != HOST_STOPPED;

    cJSON_AddBoolToObject(json, "up", up);
    cJSON_AddBoolToObject(json, "ready", s->ready);
    cJSON_AddItemToObject(json, "host",
                          up || soft ? cJSON_CreateString(host_name(s)) : cJSON_CreateNull());
    cJSON_AddItemToObject(json, "pid",
                          up ? cJSON_CreateNumber(s->daemon.pid) : cJSON_CreateNull());
    cJSON_AddNumberToObject(json, "uptime_seconds", (double)(int64_t)s->uptime_s);
    if (s->detail[0])
        cJSON_AddStringToObject(json, "detail", s->detail);
    if (s->has_machines) {
        cJSON *machines = cJSON_AddObjectToObject(json, "machines");
        cJSON_AddNumberToObject(machines, "processes", s->machines);
        cJSON_AddNumberToObject(machines, "parked_fresh", s->parked_fresh);
        cJSON_AddNumberToObject(machines, "parked_used", s->parked_used);
    }
    if (s->isolation[0])
        cJSON_AddStringToObject(json, "isolation", s->isolation);
    if (s->cluster[0])
        cJSON_AddStringToObject(json, "cluster", s->cluster);
    cJSON_AddStringToObject(json, "socket", cli->socket_path);
    cJSON_AddStringToObject(json, "data", cli->data_dir);
    cJSON_AddStringToObject(json, "version", SKILLVM_VERSION);
    if (soft) {
        cJSON *host = cJSON_AddObjectToObject(json, "software_host");
        cJSON_AddStringToObject(host, "state", host_state_name(s->host.state));
        cJSON_AddNumberToObject(host, "supervisor_pid", s->host.supervisor_pid);
        cJSON_AddNumberToObject(host, "qemu_pid", s->host.qemu_pid);
        cJSON_AddNumberToObject(host, "restarts", s->host.restarts);
        cJSON_AddNumberToObject(host, "boot_ms", (double)s->host.boot_ms);
        cJSON_AddNumberToObject(host, "memory_mib", s->host.memory_mib);
        cJSON_AddStringToObject(host, "last_restart_reason", s->host.last_reason);
        cJSON_AddBoolToObject(host, "disk_full", s->host.is_full);
        cJSON_AddStringToObject(host, "log", s->host.log_path);
    }
    int status = verbs_print_tree(json);

    return status == CLI_OK && !up ? CLI_NO : status;
}

static int print_text(const struct cli *cli, const struct status *s)
{
    unsigned long long uptime = (unsigned long long)s->uptime_s;

    if (!s->daemon.up) {
        if (s->host.state != HOST_STOPPED)
            printf("not up: the software host is %s\n", host_state_name(s->host.state));
        else
            printf("not up (start it with `skillvm up`)\n");
    } else {
        printf("up       %s\n", s->ready ? "and ready" : s->detail);
        printf("host     %s\n", s->daemon.soft ? "software (QEMU)" : "native (KVM)");
        printf("pid      %d\n", (int)s->daemon.pid);
        printf("uptime   %lluh %02llum %02llus\n", uptime / 3600, uptime / 60 % 60,
               uptime % 60);
    }
    if (s->has_machines)
        printf("machines %.0f, of which %.0f fresh and %.0f used ones wait\n", s->machines,
               s->parked_fresh, s->parked_used);
    if (s->isolation[0])
        printf("jail     %s\n", strcmp(s->isolation, "ok") == 0 ? "whole" : s->isolation);
    if (s->cluster[0])
        printf("cluster  %s\n", strcmp(s->cluster, "ok") == 0 ? "joined" : s->cluster);
    if (s->host.state != HOST_STOPPED) {
        printf("restarts %u%s%s\n", s->host.restarts, s->host.last_reason[0] ? ", last: " : "",
               s->host.last_reason);
        if (s->host.is_full)
            printf("disk     full: the software host stands still until there is room in %s\n",
                   cli->data_dir);
        printf("log      %s\n", s->host.log_path);
    }
    printf("socket   %s\n", cli->socket_path);
    printf("data     %s\n", cli->data_dir);
    return s->daemon.up ? CLI_OK : CLI_NO;
}

/* Of a server only its answer is known. */
static int server_status(const struct cli *cli, bool json)
{
    struct skillvm_error error = {0};
    bool ready = skillvm_ready(cli->client, &error) == 0;
    bool up = ready || error.http_status > 0;
    cJSON *tree;

    if (json) {
        tree = cJSON_CreateObject();
        cJSON_AddBoolToObject(tree, "up", up);
        cJSON_AddBoolToObject(tree, "ready", ready);
        if (!ready)
            cJSON_AddStringToObject(tree, "detail", error.message);
        cJSON_AddStringToObject(tree, "server", cli->server);
        cJSON_AddStringToObject(tree, "version", SKILLVM_VERSION);
        return verbs_print_tree(tree) != CLI_OK ? CLI_FAILED : up ? CLI_OK : CLI_NO;
    }
    printf("%-8s %s\n", up ? "up" : "not up", ready ? "and ready" : error.message);
    printf("server   %s (%s)\n", cli->server, cli->server_from);
    return up ? CLI_OK : CLI_NO;
}

int cmd_status(const struct cli *cli, const struct options *options)
{
    struct status s = {0};
    struct err err = {0};

    if (cli->server[0])
        return server_status(cli, options->json);
    if (read_status(cli, &s, &err) < 0)
        return verbs_failed(&err);
    return options->json ? print_json(cli, &s) : print_text(cli, &s);
}
