/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether other nodes know of an execution that the servers may have lost: where another server
 * leads than before it may lack what the one before it had confirmed.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Since a session of who follows them began: by then all nodes have told what is missing. */
#define UNSURE_NS (60 * NS_PER_SECOND)
/* A server that is gone is missed for 3 s before another one leads in its place. */
#define FRESH_NS (2 * NS_PER_SECOND)
#define ASK_NS   (2 * NS_PER_SECOND) /* all of them together, and a second for the last */
#define AGAIN_MS 50u                 /* until one that has just joined answers */

static bool is_unsure(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    const struct cluster_tail *tail = &c->records;
    uint64_t now_ns = clock_monotonic_ns();

    return !tail->is_good || now_ns - tail->confirmed_ns > FRESH_NS ||
           now_ns - tail->began_ns < UNSURE_NS;
}

/* The next one behind a name, "" for the first, that is not this one. False: there is none. */
static bool next_other(struct cluster *c, char node[FLEET_NODE_SIZE])
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    for (size_t i = 0; i < c->nodes.n; i++) {
        const char *name = c->nodes.list[i]->entry.node;

        if (strcmp(name, node) <= 0 || strcmp(name, c->self.node) == 0)
            continue;
        memcpy(node, name, FLEET_NODE_SIZE);
        return true;
    }
    return false;
}

static int ask(struct cluster *c, const char *node, const struct live_ask *asked,
               uint64_t until_ns, struct err *err)
{
    struct live_copy copy = {0};
    struct err why = {0};
    int r = cluster_ask_live(c, node, asked, &copy, &why);
    bool is_known;

    while (r < 0 && clock_monotonic_ns() < until_ns && !cluster_is_stopping(c)) {
        cluster_pause_ms(c, AGAIN_MS);
        why = (struct err){0};
        r = cluster_ask_live(c, node, asked, &copy, &why);
    }
    is_known = r == 0 && copy.answer.state != LIVE_NONE;
    live_copy_finish(&copy);
    if (r < 0)
        return err_set(err, EAGAIN,
                       "the servers may lack what they had confirmed, and the node %s does not "
                       "say what it knows: %s",
                       node, why.message);
    return is_known ? -EEXIST : 0;
}

int cluster_check_unknown(struct cluster *c, const char *tenant, const char *id,
                          struct err *err)
{
    const uint64_t until_ns = clock_monotonic_ns() + ASK_NS;
    struct live_ask asked = {.log_at = LIMIT_LOG_BYTES, .is_of_row = true};
    char node[FLEET_NODE_SIZE] = "";
    int r = 0;

    if (!is_unsure(c))
        return 0;
    (void)snprintf(asked.tenant, sizeof(asked.tenant), "%s", tenant);
    (void)snprintf(asked.id, sizeof(asked.id), "%s", id);
    while (r == 0 && next_other(c, node)) {
        if (clock_monotonic_ns() > until_ns)
            return err_set(err, EAGAIN,
                           "the servers may lack what they had confirmed, and not all nodes "
                           "have said what they know yet");
        r = ask(c, node, &asked, until_ns, err);
    }
    return r;
}
