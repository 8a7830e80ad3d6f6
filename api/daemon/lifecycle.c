/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/lifecycle.h"

#include "api/daemon/config/config_keys.h"
#include "api/daemon/engine/retention.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STATUS_MS    5000u /* how often a manager hears of us where it did not say */
#define STOP_POLL_MS 100u
#define STOP_MORE_MS 30000u /* after the stop timeout: cancelling, last answers, closing */

/* Waits for a signal; 0 when the time is up. */
static int wait_signal(const sigset_t *signals, uint64_t wait_ms)
{
    const struct timespec wait = {.tv_sec = (time_t)(wait_ms / 1000),
                                  .tv_nsec = (long)(wait_ms % 1000) * 1000000};
    int r = wait_ms > 0 ? sigtimedwait(signals, NULL, &wait) : sigwaitinfo(signals, NULL);

    return r > 0 ? r : 0;
}

/*
 * Says that the daemon is alive, which it is when the engine's lock can be had, and how it is.
 * refused is why the last reload was, where it was.
 */
static void tell_status(const struct lifecycle *l, const struct err *refused)
{
    char text[ERR_MESSAGE_MAX];
    enum snapshots_state state;
    struct err short_of = {0};
    unsigned queued, running;

    if (l->notify->fd < 0)
        return;
    engine_count(l->daemon->engine, &queued, &running);
    state = snapshots_get_state(l->daemon->snapshots, text, sizeof(text));
    if (state != SNAPSHOTS_READY)
        notify_send(l->notify, "WATCHDOG=1\nSTATUS=%s: %.400s",
                    state == SNAPSHOTS_FAILED ? "failed" : "getting ready", text);
    else if (watermarks_check(l->daemon->watermarks, &short_of) < 0)
        notify_send(l->notify, "WATCHDOG=1\nSTATUS=accepting nothing new: %s",
                    short_of.message);
    else if (pool_check_starts(l->daemon->pool, &short_of) < 0)
        notify_send(l->notify, "WATCHDOG=1\nSTATUS=%s", short_of.message);
    else
        notify_send(l->notify, "WATCHDOG=1\nSTATUS=%s%u running, %u waiting%s%s",
                    engine_is_draining(l->daemon->engine) ? "drained: " : "", running, queued,
                    refused->code ? "; settings not reloaded: " : "", refused->message);
}

void lifecycle_warn(void *ctx, const char *text)
{
    (void)ctx;
    log_warn("config", "%s", text);
}

_Static_assert(SNAPSHOTS_KEPT_MAX == 64, "snapshots.kept goes so far");

/* Puts what may change into force. */
static void apply(const struct lifecycle *l)
{
    const struct config *config = l->config;

    pool_set(l->daemon->pool, &config->machines);
    snapshots_set(l->daemon->snapshots, &config->snapshots);
    log_set_level((enum log_level)config->log_level);
    engine_set_max_queued(l->daemon->engine, (unsigned)config->max_queued);
    watermarks_set(l->daemon->watermarks, &config->watermarks);
    retention_set(l->daemon->retention, &config->retention);
}

struct looker {
    struct daemon *daemon;
    bool done; /* atomic */
};

static void *look_at_images(void *arg)
{
    struct looker *looker = arg;
    struct image_changes *changes = calloc(1, sizeof(*changes));
    struct err err = {0};
    int r = changes ? daemon_reload_images(looker->daemon, changes, &err) : err_no_memory(&err);

    if (r < 0)
        log_warn("images", "reload=refused reason=\"%s\"", err.message);
    else
        log_info("images", "reload=done changed=%u", changes->n);
    free(changes);
    __atomic_store_n(&looker->done, true, __ATOMIC_RELEASE);
    return NULL;
}

/* New ones are digested: for so long somebody says that the daemon is alive. */
static void reload_images(const struct lifecycle *l)
{
    struct looker looker = {.daemon = l->daemon};
    sigset_t none;
    pthread_t thread;

    (void)sigemptyset(&none);
    if (pthread_create(&thread, NULL, look_at_images, &looker) != 0) {
        (void)look_at_images(&looker);
        return;
    }
    while (!__atomic_load_n(&looker.done, __ATOMIC_ACQUIRE)) {
        (void)wait_signal(&none, STOP_POLL_MS);
        notify_send(l->notify, "WATCHDOG=1");
    }
    (void)pthread_join(thread, NULL);
}

/* *refused gets why it was refused, or nothing. */
static void reload_settings(const struct lifecycle *l, struct err *refused)
{
    struct config fresh;
    unsigned changed = 0, waiting = 0;

    *refused = (struct err){0};
    if (config_read(l->sources, lifecycle_warn, NULL, &fresh, refused) < 0) {
        log_warn("config", "reload=refused reason=\"%s\"", refused->message);
        return;
    }
    for (const struct config_key *key = config_keys; key->name; key++) {
        if (config_key_equal(key, l->config, &fresh))
            continue;
        if (key->live) {
            config_key_adopt(key, l->config, &fresh);
            changed++;
        } else {
            log_warn("config", "key=%s needs=restart", key->name);
            waiting++;
        }
    }
    config_finish(&fresh);
    apply(l);
    log_info("config", "reload=done changed=%u need_restart=%u", changed, waiting);
}

static void reload(const struct lifecycle *l, struct err *refused)
{
    notify_send(l->notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
                (unsigned long long)(clock_monotonic_ns() / 1000));
    reload_settings(l, refused);
    reload_images(l);
    notify_send(l->notify, "READY=1");
}

struct stopper {
    struct engine *engine;
    uint64_t wait_ms;
    bool done; /* atomic */
};

static void *stop_engine(void *arg)
{
    struct stopper *s = arg;

    engine_stop(s->engine, s->wait_ms);
    __atomic_store_n(&s->done, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Stops the engine while this thread still hears signals. */
static void drain(const struct lifecycle *l)
{
    struct stopper s = {.engine = l->daemon->engine, .wait_ms = l->config->stop_timeout_ms};
    pthread_t thread;

    if (pthread_create(&thread, NULL, stop_engine, &s) != 0) {
        engine_stop(s.engine, 0);
        return;
    }
    while (!__atomic_load_n(&s.done, __ATOMIC_ACQUIRE)) {
        int number = wait_signal(l->signals, STOP_POLL_MS);

        if (number == SIGTERM || number == SIGINT) {
            log_info("skillvmd", "stopping=now signal=%d", number);
            engine_hurry(s.engine);
        }
        notify_send(l->notify, "WATCHDOG=1");
    }
    (void)pthread_join(thread, NULL);
}

static void stop(const struct lifecycle *l, int number)
{
    unsigned queued, running;

    engine_count(l->daemon->engine, &queued, &running);
    log_info("skillvmd", "stopping signal=%d running=%u waiting=%u", number, running, queued);
    notify_send(l->notify,
                "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu\nSTATUS=stopping: %u executions may go "
                "on for %llu s",
                (unsigned long long)(l->config->stop_timeout_ms + STOP_MORE_MS) * 1000, running,
                (unsigned long long)l->config->stop_timeout_ms / 1000);
    __atomic_store_n(&l->daemon->stopping, true, __ATOMIC_RELAXED);
    /* First: who finds no socket any more knows that nothing else is taken either. */
    engine_close(l->daemon->engine);
    http_quiesce(l->http);
    drain(l);
}

void lifecycle_run(const struct lifecycle *l)
{
    struct err refused = {0};
    uint64_t wait_ms = 0;
    int number;

    if (l->notify->fd >= 0)
        wait_ms = l->notify->watchdog_ms > 0 && l->notify->watchdog_ms / 3 < STATUS_MS
                      ? l->notify->watchdog_ms / 3 + 1
                      : STATUS_MS;
    notify_send(l->notify, "READY=1");
    for (;;) {
        tell_status(l, &refused);
        number = wait_signal(l->signals, wait_ms);
        if (number == SIGHUP)
            reload(l, &refused);
        else if (number != 0)
            break;
    }
    stop(l, number);
}
