/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm cluster`: the nodes that know each other, as one of them sees it. */
#include "api/cli/admin.h"
#include "api/cli/cluster_drain.h"
#include "api/cli/show.h"
#include "api/cli/table.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#define CLUSTER_PATH "/v1/admin/cluster"

/* What it has from others, beside the nodes themselves. */
static const char *const followed[] = {"changes", "executions", "audit", "loads"};

static void print_made(const cJSON *json)
{
    puts(cJSON_IsTrue(verbs_member(json, "made")) ? "initialised"
                                                  : "it is initialised already");
}

/* What a node says of itself; one that stopped saying anything is gone. */
static const char *node_state(const cJSON *node)
{
    return cJSON_IsTrue(verbs_member(node, "alive")) ? verbs_text(node, "state") : "gone";
}

static void print_nodes(const cJSON *nodes)
{
    static const char *const header[] = {"NODE",  "STATE",  "RENEWED", "VERSION",
                                         "SLOTS", "MEMORY", "KVM",     "CPU"};
    struct table table = table_begin(header, sizeof(header) / sizeof(header[0]));
    const cJSON *node;

    cJSON_ArrayForEach(node, nodes) {
        char age[SHOW_SIZE], memory[SHOW_SIZE], slots[SHOW_SIZE], renewed[SHOW_SIZE + 8];

        show_ms(verbs_number(node, "age_ms"), age);
        (void)snprintf(renewed, sizeof(renewed), "%s ago", age);
        (void)snprintf(slots, sizeof(slots), "%.0f", verbs_number(node, "slots"));
        table_add(&table,
                  (const char *const[]){verbs_text(node, "node"), node_state(node), renewed,
                                        verbs_text(node, "version"), slots,
                                        show_bytes(verbs_number(node, "memory_bytes"), memory),
                                        cJSON_IsTrue(verbs_member(node, "kvm")) ? "yes" : "no",
                                        verbs_text(node, "cpu")});
    }
    (void)table_end(&table, 0);
}

/* How many entries were not taken; nothing where all were. what: "nodes". */
static void print_refused(const char *what, const cJSON *of)
{
    const cJSON *refused = verbs_member(of, "refused");
    const cJSON *each;
    double n = 0;

    cJSON_ArrayForEach(each, refused) {
        if (cJSON_IsNumber(each))
            n += each->valuedouble;
    }
    if (n > 0) {
        char text[256];

        (void)snprintf(text, sizeof(text), "%.0f entries of %s, the last one %.160s", n, what,
                       verbs_text(refused, "last") ? verbs_text(refused, "last") : "-");
        show_field("left out", 8, text);
    }
}

/* How far tenants and keys are what they are to be. */
static void print_changes(const cJSON *changes)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "revision %.0f%s", verbs_number(changes, "revision"),
                   cJSON_IsTrue(verbs_member(changes, "takes_keys")) ? ""
                                                                     : ", no keys are taken");
    show_field("changes", 8, text);
    if (verbs_text(changes, "no_room"))
        show_field("full", 8, verbs_text(changes, "no_room"));
}

/* A node is joined without it, so nothing else says so. */
static void print_audit(const cJSON *audit)
{
    const char *message = verbs_text(audit, "message");
    char text[512];

    if (!audit || cJSON_IsTrue(verbs_member(audit, "followed")))
        return;
    (void)snprintf(text, sizeof(text), "not followed: %.480s", message ? message : "not yet");
    show_field("audit", 8, text);
}

static void print_left_out(const cJSON *json)
{
    print_refused("nodes", json);
    for (size_t i = 0; i < sizeof(followed) / sizeof(followed[0]); i++)
        print_refused(followed[i], verbs_member(json, followed[i]));
}

static void print_status(const cJSON *json)
{
    const char *state = verbs_text(json, "state"), *message = verbs_text(json, "message");
    const char *server = verbs_text(json, "server");

    show_field("node", 8, verbs_text(json, "node"));
    show_field("state", 8, state && strcmp(state, "cut_off") == 0 ? "cut off" : state);
    if (cJSON_IsTrue(verbs_member(json, "draining")))
        show_field("drained", 8, "it takes no executions");
    if (message)
        show_field("why", 8, message);
    show_field("since", 8, verbs_text(json, "since"));
    show_field("server", 8, server ? server : "-");
    print_changes(verbs_member(json, "changes"));
    print_audit(verbs_member(json, "audit"));
    print_left_out(json);
    (void)putchar('\n');
    print_nodes(verbs_member(json, "nodes"));
}

static int cluster_init(const struct cli *cli, const struct options *options)
{
    return admin_send(cli, options, "POST", CLUSTER_PATH, NULL, print_made);
}

static int cluster_status(const struct cli *cli, const struct options *options)
{
    return admin_send(cli, options, "GET", CLUSTER_PATH, NULL, print_status);
}

static int cluster_rm(const struct cli *cli, const struct options *options)
{
    return admin_remove(cli, "cluster/nodes", options->args[0]);
}

const struct verb cluster_verbs[] = {
    {
        .name = "init",
        .args = "[-o json|table]",
        .summary = "make what its nodes share, once",
        .text = "Makes the buckets that the nodes share on the NATS servers, with the replicas "
                "of the daemon's settings. Any node of the cluster can be asked, and doing it "
                "again changes nothing. Buckets with other replicas are left as they are, and "
                "that is an error.",
        .examples = "cluster init\n",
        .options = OPTION_FORMAT,
        .run = cluster_init,
    },
    {
        .name = "status",
        .args = "[-o json|table]",
        .summary = "show its state and its nodes",
        .text = "Shows whether the daemon is joined to its cluster, why not where it is not, "
                "and the nodes that it knows of.",
        .examples = "cluster status\n",
        .options = OPTION_FORMAT,
        .run = cluster_status,
    },
    {
        .name = "drain",
        .args = "NODE [--timeout 10m] [--undo] [-o json|table]",
        .summary = "let a node take no more executions, and wait until it has none",
        .text =
            "The node takes no more executions: those that are sent to it another node runs, "
            "or "
            "they are refused with a time to try again. It goes on with what runs and waits "
            "there, and this command waits until nothing does. It stays drained, also when its "
            "daemon or the machine starts again, until --undo takes that back. Any node of the "
            "cluster can be asked.\n"
            "\n"
            "Exit status: 0 nothing runs there; 124 the time was up first; 125 it cannot be "
            "asked; 128 + the signal of an interrupt. But for the last but one it is drained "
            "all the same.",
        .examples = "cluster drain rack1-3\ncluster drain --timeout 10m rack1-3\n"
                    "cluster drain --undo rack1-3\n",
        .options = OPTION_FORMAT | OPTION_DRAIN,
        .n_args = 1,
        .run = cluster_drain,
    },
    {
        .name = "rm",
        .args = "NODE",
        .summary = "remove the entry of a node that is gone",
        .text = "Removes the entry of a node that is gone before its time does. A node that is "
                "alive is not removed: end its daemon.",
        .examples = "cluster rm rack1-3\n",
        .n_args = 1,
        .run = cluster_rm,
    },
    {.name = NULL},
};
