/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/cluster_internal.h"

#include "api/daemon/cluster/driver_load.h"
#include "api/daemon/terms/ids.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void destroy(struct cluster *c)
{
    if (!c)
        return;
    /* The casts: what was made here by strdup. */
    free((void *)(uintptr_t)c->access.credentials);
    free((void *)(uintptr_t)c->access.tls_ca);
    free((void *)(uintptr_t)c->access.tls_cert);
    free((void *)(uintptr_t)c->access.tls_key);
    nodes_finish(&c->nodes);
    cluster_load_finish(&c->load);
    (void)pthread_mutex_destroy(&c->follow.writer);
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->wake);
    (void)pthread_cond_destroy(&c->room);
    (void)pthread_cond_destroy(&c->links.given);
    (void)pthread_cond_destroy(&c->live.answered);
    free(c);
}
CLEANUP_WITH(struct cluster *, destroy)

/* A file of the settings, which must be there. "" is none. */
static int take_file(const char *key, const char *path, const char **ret, struct err *err)
{
    if (*path && access(path, R_OK) < 0)
        return err_set_errno(err, errno, "cluster.%s: cannot read %.200s", key, path);
    *ret = strdup(path);
    return *ret ? 0 : err_no_memory(err);
}

static int take_files(struct cluster *c, const struct cluster_config *config, struct err *err)
{
    if ((*config->tls_cert != '\0') != (*config->tls_key != '\0'))
        return err_set(err, EINVAL, "cluster.tls_cert and cluster.tls_key go together");
    if (take_file("credentials", config->credentials, &c->access.credentials, err) < 0 ||
        take_file("tls_ca", config->tls_ca, &c->access.tls_ca, err) < 0 ||
        take_file("tls_cert", config->tls_cert, &c->access.tls_cert, err) < 0 ||
        take_file("tls_key", config->tls_key, &c->access.tls_key, err) < 0)
        return -EINVAL;
    return 0;
}

int cluster_name_node(const char *name, char ret[FLEET_NODE_SIZE], struct err *err)
{
    char host[256] = "";

    if (!*name) {
        if (gethostname(host, sizeof(host) - 1) < 0)
            return err_set_errno(err, errno, "cannot ask for the host's name");
        host[strcspn(host, ".")] = '\0';
        name = host;
    }
    if (!fleet_node_valid(name))
        return err_set(err, EINVAL,
                       "\"%.80s\", which this host is called, cannot be a node's name: set "
                       "cluster.node to letters, digits, - and _",
                       name);
    memcpy(ret, name, strlen(name) + 1);
    return 0;
}

static void take_labels(struct node_entry *self, const char *text)
{
    char word[2 * FLEET_LABEL_SIZE];

    while (self->n_labels < FLEET_LABELS_MAX && fleet_take_word(&text, word, sizeof(word))) {
        struct node_label *label = &self->labels[self->n_labels];

        if (fleet_label_part(word, label->key, label->value))
            self->n_labels++;
    }
}

static int take_self(struct cluster *c, const struct cluster_config *config, struct err *err)
{
    int r;

    c->self = *config->facts;
    c->self.n_labels = 0;
    c->self.started_ns = clock_realtime_ns();
    (void)snprintf(c->self.state, sizeof(c->self.state), "joining");
    take_labels(&c->self, config->labels);
    r = ids_make_digits((NODE_INSTANCE_SIZE - 1) / 2, c->self.instance);
    if (r < 0)
        return err_set_errno(err, -r, "no random bytes");
    c->access.name = c->self.node;
    return cluster_name_node(config->node, c->self.node, err);
}

static void take_servers(struct cluster *c, const char *text)
{
    while (c->n_servers < FLEET_SERVERS_MAX &&
           fleet_take_word(&text, c->servers[c->n_servers], FLEET_SERVER_SIZE))
        c->n_servers++;
}

int cluster_create(const struct cluster_config *config, struct cluster **ret, struct err *err)
{
    _cleanup_(destroy) struct cluster *c = calloc(1, sizeof(*c));
    int r;

    if (!c)
        return err_no_memory(err);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_mutex_init(&c->follow.writer, NULL);
    cluster_load_init(&c->load);
    cond_init(&c->wake);
    cond_init(&c->room);
    cond_init(&c->links.given);
    cond_init(&c->live.answered);
    c->replicas = config->replicas;
    c->objects_bytes = config->objects_bytes;
    c->artifacts_bytes = config->artifacts_bytes;
    c->since_ns = clock_realtime_ns();
    take_servers(c, config->servers);
    r = take_self(c, config, err);
    if (r < 0)
        return r;
    r = take_files(c, config, err);
    if (r < 0)
        return r;
    c->driver = config->driver;
    r = c->driver ? 0 : driver_load(&c->driver, err);
    if (r < 0)
        return r;
    r = pthread_create(&c->thread, NULL, cluster_run, c);
    if (r != 0)
        return err_set_errno(err, r, "cannot start a thread");
    *ret = steal_ptr(&c);
    return 0;
}

void cluster_stop(struct cluster *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->is_stopping = true;
    (void)pthread_cond_broadcast(&c->wake);
    (void)pthread_cond_broadcast(&c->room);
    (void)pthread_cond_broadcast(&c->links.given);
    (void)pthread_mutex_unlock(&c->lock);
    cluster_load_stop(&c->load);
}

void cluster_destroy(struct cluster *c)
{
    if (!c)
        return;
    cluster_stop(c);
    (void)pthread_join(c->thread, NULL);
    tail_join(&c->follow.tail);
    tail_join(&c->records);
    tail_join(&c->audit);
    while (c->links.n > 0)
        c->driver->close(c->links.idle[--c->links.n]);
    destroy(c);
}

bool cluster_is_confirmed(const struct cluster *c)
{
    return c->confirmed_ns > 0 &&
           clock_monotonic_ns() - c->confirmed_ns < CLUSTER_LEASE_MS * NS_PER_MS;
}

/* Of a node that is joined otherwise. */
static void look_at_tail(const struct cluster_tail *f, struct cluster_status *ret)
{
    uint64_t age_ns = clock_monotonic_ns() - f->confirmed_ns;
    struct err late = {0};

    if (!f->has_thread || (f->is_good && age_ns < CLUSTER_LEASE_MS * NS_PER_MS))
        return;
    ret->state = f->is_good || f->fault != CLUSTER_OK ? CLUSTER_CUT_OFF : CLUSTER_CONNECTING;
    if (ret->state == CLUSTER_CONNECTING)
        return;
    ret->reason = cluster_fault_names[f->is_good ? CLUSTER_NO_QUORUM : f->fault];
    (void)snprintf(ret->message, sizeof(ret->message), "%s", f->message);
    if (!f->is_good)
        return;
    (void)err_set(&late, EIO, "%s of others do not arrive", f->kind->what);
    cluster_explain(CLUSTER_NO_QUORUM, &late, ret->message);
}

void cluster_state_now(const struct cluster *c, struct cluster_status *ret)
{
    static const struct err late = {.message = "this node's entry did not come back in time"};

    *ret = (struct cluster_status){.state = c->state};
    (void)snprintf(ret->message, sizeof(ret->message), "%s", c->message);
    if (c->state == CLUSTER_JOINED && !cluster_is_confirmed(c)) {
        ret->state = CLUSTER_CUT_OFF;
        ret->reason = cluster_fault_names[CLUSTER_NO_QUORUM];
        cluster_explain(CLUSTER_NO_QUORUM, &late, ret->message);
    } else if (c->state == CLUSTER_CUT_OFF) {
        ret->reason = cluster_fault_names[c->fault];
    } else if (c->state == CLUSTER_JOINED) {
        look_at_tail(&c->follow.tail, ret);
        if (ret->state == CLUSTER_JOINED)
            look_at_tail(&c->records, ret);
    }
}

void cluster_look(struct cluster *c, struct cluster_status *ret)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    cluster_state_now(c, ret);
}

void cluster_measure(struct cluster *c, struct cluster_measure *ret)
{
    struct cluster_status now;

    *ret = (struct cluster_measure){.takes_keys = true};
    if (!c)
        return;
    cluster_load_measure(c, &ret->load);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    cluster_state_now(c, &now);
    ret->is_draining = c->is_draining;
    ret->is_joined = now.state == CLUSTER_JOINED;
    ret->nodes = (unsigned)c->nodes.n;
    ret->revision = c->follow.tail.revision;
    ret->records_revision = c->records.revision;
    ret->takes_keys = cluster_keys_good(&c->follow);
    for (int i = 0; i < NODE_REFUSALS; i++)
        ret->refused[i] = c->nodes.refused.n[i] + c->follow.tail.refused.n[i] +
                          c->records.refused.n[i] + c->audit.refused.n[i] +
                          ret->load.refused.n[i];
}
