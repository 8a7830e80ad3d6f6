/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/cluster_drain.h"

#include "api/cli/admin.h"
#include "api/cli/progress.h"
#include "api/cli/remote.h"
#include "api/skill/duration.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS (2 * NS_PER_SECOND)
/* How long nobody may know how it is: as long as a node may be cut off before others notice. */
#define SILENT_NS (15 * NS_PER_SECOND)

struct draining {
    const struct cli *cli;
    const struct options *options;
    const char *node;
    char *path;
    char *last; /* what the node said last, as JSON; of the client */
    unsigned running, waiting;
    uint64_t deadline_ns; /* 0: none */
    uint64_t heard_ns;
};

/* 0, or what failed. */
static int ask(struct draining *d, const char *method, struct skillvm_error *error)
{
    char *text = NULL;
    cJSON *json;
    int r = skillvm_request(d->cli->client, method, d->path, NULL, &text, error);

    if (r < 0)
        return r;
    json = cJSON_Parse(text);
    d->running = (unsigned)verbs_number(json, "running");
    d->waiting = (unsigned)verbs_number(json, "waiting");
    cJSON_Delete(json);
    skillvm_free(d->last);
    d->last = text;
    d->heard_ns = clock_monotonic_ns();
    return 0;
}

static int give_up(const struct draining *d, const char *why, int status)
{
    cli_say("%s: %s is still being drained (%u run and %u wait there); `skillvm cluster drain "
            "%s` waits on, with --undo it takes executions again",
            why, d->node, d->running, d->waiting, d->node);
    return status;
}

/* Until the next look, the end of the time, or an interrupt. */
static void rest(const struct draining *d)
{
    uint64_t now = clock_monotonic_ns(), ns = LOOK_NS;
    struct timespec wait;

    if (d->deadline_ns > 0 && d->deadline_ns < now + ns)
        ns = d->deadline_ns > now ? d->deadline_ns - now : 0;
    wait = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND),
                             .tv_nsec = (long)(ns % NS_PER_SECOND)};
    (void)nanosleep(&wait, NULL);
}

/* -1 once nothing runs there, else the exit status. */
static int wait_drained(struct draining *d, struct progress *progress)
{
    while (d->running + d->waiting > 0) {
        struct skillvm_error error = {0};
        char text[160];

        (void)snprintf(text, sizeof(text), "draining %.80s: %u running, %u waiting", d->node,
                       d->running, d->waiting);
        progress_tick(progress, text);
        rest(d);
        if (cli_interrupted())
            return give_up(d, "interrupted", 128 + cli_interrupted());
        if (d->deadline_ns > 0 && clock_monotonic_ns() >= d->deadline_ns)
            return give_up(d, "the time is up", CLI_TIMEOUT);
        /* What passes, as while servers elect a leader, ends no wait. */
        if (ask(d, "GET", &error) < 0 &&
            (error.http_status != 503 || clock_monotonic_ns() - d->heard_ns > SILENT_NS))
            return remote_failed(d->cli, &error);
    }
    return -1;
}

static int report(const struct draining *d, const char *text)
{
    if (d->options->json)
        return verbs_print_json(d->last);
    printf("%s %s\n", d->node, text);
    return CLI_OK;
}

static int drain(struct draining *d)
{
    struct skillvm_error error = {0};
    struct progress progress;
    int status;

    if (ask(d, d->options->undo ? "DELETE" : "POST", &error) < 0)
        return remote_failed(d->cli, &error);
    if (d->options->undo)
        return report(d, "takes executions again");
    cli_catch_interrupts();
    progress_begin(&progress);
    status = wait_drained(d, &progress);
    progress_end(&progress);
    return status >= 0 ? status : report(d, "is drained: nothing runs there");
}

int cluster_drain(const struct cli *cli, const struct options *options)
{
    struct draining d = {.cli = cli, .options = options, .node = options->args[0]};
    _cleanup_free_ char *nodes = NULL;
    uint64_t ms = 0;
    int status;

    if (options->timeout && (duration_parse(options->timeout, &ms) || ms == 0))
        return help_usage_error("cluster", "--timeout %s: use an amount such as 30s or 2m",
                                options->timeout);
    if (ms > 0)
        d.deadline_ns = clock_monotonic_ns() + ms * NS_PER_MS;
    nodes = admin_path("cluster/nodes", d.node);
    if (!nodes || asprintf(&d.path, "%s/drain", nodes) < 0)
        return verbs_no_memory();
    status = drain(&d);
    skillvm_free(d.last);
    free(d.path);
    return status;
}
