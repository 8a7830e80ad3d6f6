/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls between nodes. Nodes of the same images are one group, and a node is of its group only
 * while it has room: so a call finds one that has, or hears at once that there is none.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT_SIZE 48u
#define GROUPS_MAX   8u  /* of other images that are tried */
#define DRAIN_MS     20u /* between two looks at whether all that came was answered */

/* Where two sets of images are taken for one a call may find a node without its image,
   which does not take it. */
static uint64_t hash_of_images(const struct node_entry *node)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < node->n_images; i++)
        sum += text_hash(TEXT_HASH, node->images[i], strlen(node->images[i]));
    return sum;
}

static void name_subject(uint64_t group, char ret[SUBJECT_SIZE])
{
    (void)snprintf(ret, SUBJECT_SIZE, "skillvm.run.%016llx", (unsigned long long)group);
}

static bool has_image(const struct node_entry *node, const char *image)
{
    for (size_t i = 0; i < node->n_images; i++) {
        if (strcmp(node->images[i], image) == 0)
            return true;
    }
    return false;
}

void cluster_set_images(struct cluster *c, const struct node_entry *facts)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    memcpy(c->self.images, facts->images, sizeof(c->self.images));
    c->self.n_images = facts->n_images;
    c->has_other_images = true;
    (void)pthread_cond_broadcast(&c->room);
}

bool cluster_take_images(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    bool is_new = c->has_other_images;

    c->has_other_images = false;
    return is_new;
}

static uint64_t own_group(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    return hash_of_images(&c->self);
}

bool cluster_leaves_image(struct cluster *c, const char *image)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    bool is_elsewhere = false;

    for (size_t i = 0; i < c->nodes.n; i++)
        is_elsewhere = is_elsewhere || has_image(&c->nodes.list[i]->entry, image);
    return is_elsewhere && !has_image(&c->self, image);
}

bool cluster_is_alone(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    size_t n;

    (void)nodes_place(&c->nodes, c->self.node, &n);
    return n == 1;
}

/* The groups of nodes that have an image, this node's own first. */
static size_t find_groups(struct cluster *c, const char *image, uint64_t ret[GROUPS_MAX])
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    size_t n = 1;

    ret[0] = hash_of_images(&c->self);
    for (size_t i = 0; i < c->nodes.n && n < GROUPS_MAX; i++) {
        const struct node_entry *node = &c->nodes.list[i]->entry;
        uint64_t group = hash_of_images(node);
        bool is_new = has_image(node, image);

        for (size_t k = 0; k < n; k++)
            is_new = is_new && ret[k] != group;
        if (is_new)
            ret[n++] = group;
    }
    return n;
}

void cluster_name_subject(const char *what, const char *node, char ret[CLUSTER_SUBJECT_SIZE])
{
    (void)snprintf(ret, CLUSTER_SUBJECT_SIZE, "skillvm.%s%s", what, node);
}

enum cluster_fault cluster_call_subject(struct cluster *c, const char *subject,
                                        const char *data, size_t len, struct buf *ret_answer,
                                        bool *ret_sent, struct err *err)
{
    struct cluster_entry answer = {0};
    struct cluster_link *link;
    enum cluster_fault fault;
    bool is_used;

    *ret_sent = false;
    if (cluster_link_take(c, &link, &is_used, err) < 0)
        return CLUSTER_UNREACHABLE;
    *ret_sent = true;
    /* Once: somebody may have it whose answer does not come. */
    fault = c->driver->call(link, subject, data, len, CLUSTER_CALL_MS, &answer, err);
    cluster_link_give(c, link, fault == CLUSTER_OK || fault == CLUSTER_NO_ENTRY);
    if (fault == CLUSTER_OK)
        (void)buf_append(ret_answer, answer.data, answer.len);
    c->driver->release(&answer);
    return fault;
}

int cluster_call(struct cluster *c, const char *image, const char *data, size_t len,
                 struct buf *ret_answer, struct err *err)
{
    uint64_t groups[GROUPS_MAX];
    size_t n = find_groups(c, image, groups);

    if (!cluster_is_joined(c))
        return err_set(err, ENOENT, "this node is not joined: it calls nobody");
    for (size_t i = 0; i < n; i++) {
        char subject[SUBJECT_SIZE];
        enum cluster_fault fault;
        bool is_sent;

        name_subject(groups[i], subject);
        fault = cluster_call_subject(c, subject, data, len, ret_answer, &is_sent, err);
        if (fault == CLUSTER_OK)
            return 0;
        if (fault != CLUSTER_NO_ENTRY)
            return is_sent ? -EAGAIN : -ENOENT;
        *err = (struct err){0};
    }
    return err_set(err, ENOENT, "no other node has room");
}

static void count_serving(struct cluster *c, int n)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->n_serving += n;
}

enum cluster_fault cluster_serve_one(struct cluster *c, struct cluster_link *link,
                                     const struct cluster_caller *caller, unsigned wait_ms,
                                     bool *ret_some, struct err *err)
{
    _cleanup_buf_ struct buf answer = buf_init(4096);
    struct cluster_entry call = {0};
    enum cluster_fault fault = c->driver->next_call(link, wait_ms, ret_some, &call, err);

    if (!*ret_some)
        return fault;
    caller->take(caller->ctx, call.data, call.len, &answer);
    fault = c->driver->answer(link, &call, buf_cstr(&answer), answer.len, err);
    c->driver->release(&call);
    return fault;
}

bool cluster_has_room(struct cluster *c)
{
    return c->service.has_room(c->service.ctx);
}

enum cluster_fault cluster_serve_while_room(struct cluster *c, struct cluster_link *link,
                                            const struct cluster_desk *desk, struct err *err)
{
    const struct cluster_service *service = &c->service;
    const struct cluster_caller caller = {.ctx = service->ctx, .take = service->take};
    enum cluster_fault fault =
        c->driver->serve(link, desk->subject, desk->group, CLUSTER_PENDING, err);
    bool some = true, is_serving = fault == CLUSTER_OK && desk->is_for_all;

    count_serving(c, is_serving);
    while (fault == CLUSTER_OK && !cluster_is_stopping(c) && desk->has_room(c) &&
           (!desk->is_for_all || desk->images == own_group(c)))
        fault = cluster_serve_one(c, link, &caller, CLUSTER_SLICE_MS, &some, err);
    count_serving(c, -is_serving);
    /* Who asked meanwhile hears at once that there is no room. */
    if (fault == CLUSTER_OK)
        fault = c->driver->serve(link, NULL, NULL, 0, err);
    while (fault == CLUSTER_OK && !cluster_is_stopping(c))
        fault = cluster_serve_one(c, link, &caller, DRAIN_MS, &some, err);
    return fault == CLUSTER_NO_ENTRY ? CLUSTER_OK : fault;
}

bool cluster_is_joined(struct cluster *c)
{
    struct cluster_status status;

    cluster_look(c, &status);
    return status.state == CLUSTER_JOINED;
}

void cluster_pause_ms(struct cluster *c, unsigned ms)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    uint64_t deadline_ns = clock_monotonic_ns() + ms * NS_PER_MS;

    while (!c->is_stopping && cond_wait_until(&c->wake, &c->lock, deadline_ns))
        ;
}

void cluster_note_room(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    (void)pthread_cond_broadcast(&c->room);
}

/* Who makes room says so; a stop is seen within a slice. */
void cluster_wait_room(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    (void)cond_wait_until(&c->room, &c->lock,
                          clock_monotonic_ns() + CLUSTER_SLICE_MS * NS_PER_MS);
}

static void *serve_calls(void *cluster)
{
    struct cluster *c = cluster;
    struct cluster_link *link = NULL;
    char subject[SUBJECT_SIZE];
    struct cluster_desk desk = {subject, "nodes", cluster_has_room, true, 0};

    while (!cluster_is_stopping(c)) {
        struct err err = {0};
        enum cluster_fault fault = CLUSTER_OK;

        if (!cluster_is_joined(c)) {
            cluster_pause_ms(c, CLUSTER_JOIN_MS);
            continue;
        }
        if (!cluster_has_room(c)) {
            if (!c->service.lend(c->service.ctx))
                cluster_wait_room(c);
            continue;
        }
        if (!link && cluster_connect(c, 0, false, &link, &err) < 0)
            link = NULL;
        desk.images = own_group(c);
        name_subject(desk.images, subject);
        fault = link ? cluster_serve_while_room(c, link, &desk, &err) : CLUSTER_UNREACHABLE;
        if (fault == CLUSTER_OK)
            continue;
        log_warn("cluster", "calls=\"not taken\" node=%s reason=\"%s\"", c->self.node,
                 err.message);
        c->driver->close(link);
        link = NULL;
        cluster_pause_ms(c, CLUSTER_BACKOFF_MAX_MS);
    }
    c->driver->close(link);
    return NULL;
}

int cluster_threads_start(struct cluster *c, struct cluster_threads *threads,
                          cluster_thread_fn *const *work, size_t n, struct err *err)
{
    while (threads->n < n) {
        int r = pthread_create(&threads->list[threads->n], NULL, work[threads->n], c);

        if (r != 0)
            return err_set_errno(err, r, "cannot start a thread");
        threads->n++;
    }
    return 0;
}

void cluster_threads_join(struct cluster_threads *threads)
{
    while (threads->n > 0)
        (void)pthread_join(threads->list[--threads->n], NULL);
}

int cluster_serve(struct cluster *c, const struct cluster_service *service, struct err *err)
{
    static cluster_thread_fn *const servers[] = {cluster_serve_wishes, cluster_serve_live,
                                                 cluster_serve_snapshots, serve_calls,
                                                 serve_calls};

    c->service = *service;
    return cluster_threads_start(c, &c->servers_of_others, servers,
                                 sizeof(servers) / sizeof(servers[0]), err);
}

void cluster_serve_end(struct cluster *c)
{
    if (c)
        cluster_threads_join(&c->servers_of_others);
}
