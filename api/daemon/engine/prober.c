/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/prober.h"

#include "api/daemon/engine/quota.h"
#include "api/daemon/registry/registry_usage.h"
#include "api/tools/parser.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

/* How long a look that failed is not tried again, and one that took too long; as many are
 * remembered. */
#define FAILURES   64u
#define FAILURE_NS 60000000000ull
#define TIMEOUT_NS 600000000000ull

struct inquiry {
    TAILQ_ENTRY(inquiry) link;
    char tenant[TENANT_ID_SIZE]; /* who asked; "": whoever asks, once it failed */
    struct registry_tool tool;   /* owns its texts */
    char *path;
    char image[IMAGE_NAME_SIZE];
    enum proto_mode mode;
    bool is_running;
    bool was_slow;     /* a look took too long before */
    uint64_t until_ns; /* of one that failed: how long it is remembered */
};

struct prober {
    struct prober_config config;
    int stop_fd; /* eventfd: readable once it shall end */
    pthread_t workers[PROBER_WORKERS];
    unsigned n_workers;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t work;
    pthread_cond_t done;             /* monotonic */
    TAILQ_HEAD(, inquiry) inquiries; /* waiting and running, the oldest first */
    unsigned n_inquiries;
    char last[TENANT_ID_SIZE]; /* whose script was begun last */
    struct inquiry *failures[FAILURES];
    unsigned next_failure;
    bool stopping;
};

static bool is_about(const struct inquiry *j, const struct registry_tool *tool)
{
    return strcmp(j->tool.skill, tool->skill) == 0 &&
           strcmp(j->tool.packages, tool->packages) == 0 &&
           strcmp(j->tool.images, tool->images) == 0 &&
           strcmp(j->tool.script, tool->script) == 0;
}

static struct inquiry *find(struct prober *p, const struct registry_tool *tool)
{
    struct inquiry *j;

    TAILQ_FOREACH(j, &p->inquiries, link) {
        if (is_about(j, tool))
            break;
    }
    return j;
}

static bool failed_lately(const struct prober *p, const char *tenant,
                          const struct registry_tool *tool)
{
    uint64_t now = clock_monotonic_ns();

    for (size_t i = 0; i < FAILURES; i++) {
        const struct inquiry *f = p->failures[i];

        if (f && f->until_ns > now && is_about(f, tool) &&
            (!f->tenant[0] || strcmp(f->tenant, tenant) == 0))
            return true;
    }
    return false;
}

/* NULL is fine. */
static void inquiry_free(struct inquiry *j)
{
    if (!j)
        return;
    free((char *)(uintptr_t)j->tool.skill);
    free((char *)(uintptr_t)j->tool.packages);
    free((char *)(uintptr_t)j->tool.images);
    free((char *)(uintptr_t)j->tool.script);
    free(j->path);
    free(j);
}

/* The oldest that waits, of another tenant than the last one's if there is one. */
static struct inquiry *take(struct prober *p)
{
    struct inquiry *j, *first = NULL;

    TAILQ_FOREACH(j, &p->inquiries, link) {
        if (j->is_running)
            continue;
        if (!first)
            first = j;
        if (strcmp(j->tenant, p->last) != 0) {
            first = j;
            break;
        }
    }
    if (first) {
        first->is_running = true;
        memcpy(p->last, first->tenant, sizeof(p->last));
    }
    return first;
}

/* Remembers one that failed in place of the oldest of those. */
static void remember(struct prober *p, struct inquiry *inquiry, int r)
{
    struct inquiry **place = &p->failures[p->next_failure++ % FAILURES];

    /* Others may have the same skill, and time left to look at it. */
    if (r != -EDQUOT && r != -ENOENT)
        inquiry->tenant[0] = '\0';
    inquiry->until_ns = clock_monotonic_ns() + (r == -ETIME ? TIMEOUT_NS : FAILURE_NS);
    inquiry_free(*place);
    *place = inquiry;
}

/* Where an object was missing that may be had in a moment nothing is known of the script. */
static bool is_failure(int r)
{
    return r < 0 && r != -ENODATA && r != -ECANCELED && r != -EAGAIN && r != -ENOBUFS;
}

/* What took too long is looked at once more, after all others: it may have been the machine
   that was slow. */
static void look_again(struct prober *p, struct inquiry *inquiry)
{
    inquiry->was_slow = true;
    inquiry->is_running = false;
    TAILQ_REMOVE(&p->inquiries, inquiry, link);
    TAILQ_INSERT_TAIL(&p->inquiries, inquiry, link);
    (void)pthread_cond_signal(&p->work);
}

static void finish(struct prober *p, struct inquiry *inquiry, int r)
{
    if (r == -ETIME && !inquiry->was_slow) {
        look_again(p, inquiry);
        return;
    }
    TAILQ_REMOVE(&p->inquiries, inquiry, link);
    p->n_inquiries--;
    (void)pthread_cond_broadcast(&p->done);
    if (is_failure(r))
        remember(p, inquiry, r);
    else
        inquiry_free(inquiry);
}

static void charge(const struct prober *p, const struct inquiry *inquiry, uint64_t cpu_us)
{
    struct err err = {0};

    if (cpu_us > 0 && registry_usage_add(p->config.registry, inquiry->tenant,
                                         registry_usage_day(clock_realtime_ns()),
                                         (cpu_us + 999) / 1000, &err) < 0)
        log_error("tools", "tenant=%s usage=\"%s\"", inquiry->tenant, err.message);
}

/* What a look takes counts as the tenant's, and without time left there is none. */
static int ask(struct prober *p, const struct inquiry *inquiry, uint64_t *ret_cpu_us,
               struct buf *ret, struct err *err)
{
    const char *packages = inquiry->tool.packages;
    const struct tool_script script = {.digest = inquiry->tool.skill,
                                       .packages = *packages ? packages : NULL,
                                       .path = inquiry->path,
                                       .mode = inquiry->mode,
                                       .image = inquiry->image};
    struct tenant_limits limits;
    int r = quota_check_turn(p->config.registry, inquiry->tenant, &limits, err);

    return r < 0 ? r
                 : tool_probe_run(&p->config.env, inquiry->tenant, &script, p->stop_fd,
                                  ret_cpu_us, ret, err);
}

/* Looks at a script and writes down what there is. */
static int look(struct prober *p, const struct inquiry *inquiry)
{
    _cleanup_buf_ struct buf text = buf_init(PARSER_BYTES_MAX + 1);
    uint64_t start_ns = clock_monotonic_ns();
    struct err err = {0}, lost = {0};
    uint64_t cpu_us = 0;
    int r = ask(p, inquiry, &cpu_us, &text, &err);

    charge(p, inquiry, cpu_us);
    log_info("tools", "looked digest=%.12s script=\"%s\" result=\"%s\" ms=%.1f",
             inquiry->tool.skill, inquiry->path, r < 0 ? err.message : "described",
             (double)(clock_monotonic_ns() - start_ns) / 1e6);
    if (r == 0 || r == -ENODATA) {
        const char *found = r == 0 ? buf_cstr(&text) : NULL;
        int stored = r == 0 && !found ? -ENOMEM
                                      : registry_tool_schema_put(p->config.registry,
                                                                 &inquiry->tool, found, &lost);

        if (stored < 0) {
            log_error("tools", "digest=%.12s lost=\"%s\"", inquiry->tool.skill, lost.message);
            r = stored;
        }
    }
    return r;
}

static void *worker(void *arg)
{
    struct prober *p = arg;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&p->lock);

    while (!p->stopping) {
        struct inquiry *inquiry = take(p);
        int r;

        if (!inquiry) {
            (void)pthread_cond_wait(&p->work, held);
            continue;
        }
        (void)pthread_mutex_unlock(held);
        r = look(p, inquiry);
        (void)pthread_mutex_lock(held);
        finish(p, inquiry, r);
    }
    return NULL;
}

int prober_create(const struct prober_config *config, struct prober **ret, struct err *err)
{
    struct prober *p = calloc(1, sizeof(*p));

    if (!p)
        return err_no_memory(err);
    p->config = *config;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->work, NULL);
    cond_init(&p->done);
    TAILQ_INIT(&p->inquiries);
    p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->stop_fd < 0) {
        int r = err_set_errno(err, errno, "cannot make an event descriptor");

        prober_destroy(p);
        return r;
    }
    for (; p->n_workers < PROBER_WORKERS; p->n_workers++) {
        int r = pthread_create(&p->workers[p->n_workers], NULL, worker, p);

        if (r != 0) {
            prober_destroy(p);
            return err_set_errno(err, r, "cannot start a thread");
        }
    }
    *ret = p;
    return 0;
}

void prober_stop(struct prober *p)
{
    const uint64_t one = 1;

    (void)pthread_mutex_lock(&p->lock);
    p->stopping = true;
    (void)pthread_cond_broadcast(&p->work);
    (void)pthread_cond_broadcast(&p->done);
    (void)pthread_mutex_unlock(&p->lock);
    if (p->stop_fd >= 0 && write(p->stop_fd, &one, sizeof(one)) < 0)
        log_warn("tools", "cannot end what is looked at");
}

void prober_destroy(struct prober *p)
{
    if (!p)
        return;
    prober_stop(p);
    for (unsigned i = 0; i < p->n_workers; i++)
        (void)pthread_join(p->workers[i], NULL);
    while (!TAILQ_EMPTY(&p->inquiries)) {
        struct inquiry *first = TAILQ_FIRST(&p->inquiries);

        TAILQ_REMOVE(&p->inquiries, first, link);
        inquiry_free(first);
    }
    for (size_t i = 0; i < FAILURES; i++)
        inquiry_free(p->failures[i]);
    fd_close(&p->stop_fd);
    (void)pthread_cond_destroy(&p->done);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

uint64_t prober_timeout_ms(const struct prober *p)
{
    return tool_probe_timeout_ms(&p->config.env) + 1000;
}

static bool copy_tool(const struct registry_tool *tool, struct registry_tool *ret)
{
    ret->skill = strdup(tool->skill);
    ret->packages = strdup(tool->packages);
    ret->images = strdup(tool->images);
    ret->script = strdup(tool->script);
    return ret->skill && ret->packages && ret->images && ret->script;
}

/* Adds one at the end. With the lock held. */
static bool enqueue(struct prober *p, const char *tenant, const struct tool_script *script,
                    const struct registry_tool *tool)
{
    struct inquiry *inquiry = calloc(1, sizeof(*inquiry));

    if (inquiry) {
        (void)snprintf(inquiry->tenant, sizeof(inquiry->tenant), "%s", tenant);
        (void)snprintf(inquiry->image, sizeof(inquiry->image), "%s", script->image);
        inquiry->mode = script->mode;
        inquiry->path = strdup(script->path);
    }
    if (!inquiry || !inquiry->path || !copy_tool(tool, &inquiry->tool)) {
        inquiry_free(inquiry);
        return false;
    }
    TAILQ_INSERT_TAIL(&p->inquiries, inquiry, link);
    p->n_inquiries++;
    (void)pthread_cond_signal(&p->work);
    return true;
}

int prober_ask(struct prober *p, const char *tenant, const struct tool_script *script,
               const struct registry_tool *tool)
{
    struct err ignored = {0};
    bool short_of = watermarks_check(p->config.watermarks, &ignored) < 0;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&p->lock);
    const struct inquiry *j;
    unsigned of_tenant = 0;

    TAILQ_FOREACH(j, &p->inquiries, link)
        of_tenant += strcmp(j->tenant, tenant) == 0;
    if (find(p, tool))
        return 0;
    if (failed_lately(p, tenant, tool))
        return -ENODATA;
    if (short_of || p->stopping || p->n_inquiries >= PROBER_QUEUE_MAX ||
        of_tenant >= PROBER_TENANT_MAX)
        return -EAGAIN;
    return enqueue(p, tenant, script, tool) ? 0 : -EAGAIN;
}

void prober_wait(struct prober *p, const struct registry_tool *tool, uint64_t deadline_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&p->lock);

    while (!p->stopping && find(p, tool) && cond_wait_until(&p->done, held, deadline_ns))
        ;
}
