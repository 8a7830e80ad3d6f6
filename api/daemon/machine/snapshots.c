/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/snapshots.h"

#include "api/daemon/machine/snapshot_files.h"
#include "api/daemon/machine/snapshots_internal.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One that was asked for lately never gives way: callers cannot take turns in evicting. */
#define BUSY_NS 60000000000ull
/* So much later one that a job asked for is begun: its answer is to leave first. */
#define WANT_DELAY_NS (20 * NS_PER_MS)

void snapshot_unref(struct snapshot *snapshot)
{
    if (!snapshot || __atomic_sub_fetch(&snapshot->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    fd_close(&snapshot->image_fd);
    snapshot_files_close(&snapshot->files);
    free(snapshot);
}

void snapshot_name_image(struct snapshot_name *name, const struct images *images,
                         unsigned place)
{
    images_write(images, place, name->image);
    /* The first one is the same for as long as a daemon runs. */
    name->image_digest[0] = '\0';
    if (place > 0)
        memcpy(name->image_digest, images->list[place].digest, sizeof(name->image_digest));
}

bool snapshot_name_is_plain(const struct snapshot_name *name)
{
    return !name->profile[0] && !name->packages[0];
}

bool snapshot_name_is_common(const struct snapshot_name *name)
{
    return snapshot_name_is_plain(name) && !name->scope[0] && !name->image[0];
}

/* With a NUL behind each text. */
uint64_t snapshot_name_hash(const struct snapshot_name *name, const char *usual)
{
    const char *const texts[] = {name->scope, name->image[0] ? name->image : usual,
                                 name->profile, name->packages};
    uint64_t hash = TEXT_HASH;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        hash = text_hash(hash, texts[i], strlen(texts[i]) + 1);
    return hash;
}

bool snapshot_is_current(const struct snapshot *snapshot)
{
    return __atomic_load_n(&snapshot->is_current, __ATOMIC_ACQUIRE);
}

struct snapshot_place *snapshots_find(struct snapshots *s, const struct snapshot_name *name)
{
    for (unsigned i = 0; i < SNAPSHOTS_PLACES_MAX; i++) {
        struct snapshot_place *p = &s->places[i];

        if (p->is_taken && strcmp(p->name.profile, name->profile) == 0 &&
            strcmp(p->name.packages, name->packages) == 0 &&
            strcmp(p->name.image, name->image) == 0 &&
            strcmp(p->name.image_digest, name->image_digest) == 0 &&
            strcmp(p->name.scope, name->scope) == 0)
            return p;
    }
    return NULL;
}

struct snapshot_place *snapshots_take(struct snapshots *s, const struct snapshot_name *name)
{
    struct snapshot_place *free_one = NULL;
    unsigned n = 0;

    for (unsigned i = 1; i < SNAPSHOTS_PLACES_MAX; i++) {
        n += s->places[i].is_taken;
        if (!s->places[i].is_taken && !free_one)
            free_one = &s->places[i];
    }
    if (n >= s->limits.kept)
        return NULL;
    *free_one = (struct snapshot_place){
        .is_taken = true, .name = *name, .renewal = {.limits = free_one->renewal.limits}};
    return free_one;
}

struct snapshot_place *snapshots_oldest(struct snapshots *s, uint64_t before_ns,
                                        bool with_packages)
{
    struct snapshot_place *found = NULL;

    for (unsigned i = 1; i < SNAPSHOTS_PLACES_MAX; i++) {
        struct snapshot_place *p = &s->places[i];

        if (p->is_taken && p != s->busy && p->waiters == 0 && p->asked_ns < before_ns &&
            (!with_packages || p->name.packages[0]) &&
            (!found || p->asked_ns < found->asked_ns))
            found = p;
    }
    return found;
}

static void set_limits(struct snapshots *s, const struct config_snapshots *limits)
{
    s->limits = *limits;
    for (unsigned i = 0; i < SNAPSHOTS_PLACES_MAX; i++)
        s->places[i].renewal.limits =
            (struct renewal_limits){.age_ms = limits->renew_ms, .uses = limits->max_uses};
}

int snapshots_create(const struct snapshots_config *config, struct snapshots **ret,
                     struct err *err)
{
    struct snapshots *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_no_memory(err);
    s->config = *config;
    s->places[0].is_taken = true;
    set_limits(s, &config->limits);
    snapshot_maker_init(&s->maker, &s->config);
    (void)pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->changed);
    r = pthread_create(&s->thread, NULL, snapshots_work, s);
    if (r != 0) {
        free(s);
        return err_set_errno(err, r, "cannot start a thread");
    }
    *ret = s;
    return 0;
}

void snapshots_destroy(struct snapshots *s)
{
    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->stopping = true;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    snapshot_maker_stop(&s->maker);
    (void)pthread_join(s->thread, NULL);
    snapshot_maker_finish(&s->maker);
    for (unsigned i = 0; i < SNAPSHOTS_PLACES_MAX; i++)
        snapshot_unref(s->places[i].current);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

enum snapshots_state snapshots_get_state(struct snapshots *s, char *text, unsigned size)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    (void)snprintf(text, size, "%s", s->text);
    return s->state;
}

/* A reference to the current one of a place. Under the lock. */
static struct snapshot *reference(struct snapshot_place *p)
{
    if (p->current)
        (void)__atomic_add_fetch(&p->current->references, 1, __ATOMIC_RELAXED);
    return p->current;
}

bool snapshots_have(struct snapshots *s, const struct snapshot_name *name)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);
    const struct snapshot_place *p = snapshots_find(s, name);

    return p && p->current;
}

size_t snapshots_list(struct snapshots *s, const char *usual, uint64_t *ret, size_t max)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);
    size_t n = 0;

    for (unsigned i = 1; i < SNAPSHOTS_PLACES_MAX && n < max; i++) {
        const struct snapshot_place *p = &s->places[i];

        if (p->is_taken && p->current && !p->is_leaving)
            ret[n++] = snapshot_name_hash(&p->name, usual);
    }
    return n;
}

struct snapshot *snapshots_current(struct snapshots *s, unsigned place)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    return reference(&s->places[place]);
}

/*
 * The place of a name, as somebody asks for it. NULL: there is no room; *ret_soon says whether
 * another has to leave for it. Under the lock.
 */
static struct snapshot_place *ask(struct snapshots *s, const struct snapshot_name *name,
                                  bool *ret_soon)
{
    uint64_t now_ns = clock_monotonic_ns();
    struct snapshot_place *p = snapshots_find(s, name);

    if (!p)
        p = snapshots_take(s, name);
    if (p) {
        p->asked_ns = now_ns;
        /* Packages may have been deleted: those that are not come again. */
        p->is_leaving &= p->name.packages[0] != '\0';
        return p;
    }
    p = s->limits.kept > 0 && now_ns > BUSY_NS ? snapshots_oldest(s, now_ns - BUSY_NS, false)
                                               : NULL;
    if (p) {
        p->is_leaving = true;
        (void)pthread_cond_broadcast(&s->changed);
    }
    *ret_soon = p != NULL;
    return NULL;
}

/* Has the thread make it where there is none. Under the lock. */
static void want(struct snapshots *s, struct snapshot_place *p, uint64_t after_ns)
{
    if (p->current || p->renewal.is_wanted)
        return;
    p->renewal.is_wanted = true;
    if (p->renewal.after_ns < after_ns)
        p->renewal.after_ns = after_ns;
    (void)pthread_cond_broadcast(&s->changed);
}

static bool has_image(const struct snapshots *s, const struct snapshot_name *name)
{
    return image_tables_have(s->config.images, name->image, name->image_digest);
}

void snapshots_want(struct snapshots *s, const struct snapshot_name *name)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);
    bool soon;
    /* The job may have been the last one of an image that is no more. */
    struct snapshot_place *p = has_image(s, name) ? ask(s, name, &soon) : NULL;

    if (p)
        want(s, p, clock_monotonic_ns() + WANT_DELAY_NS);
}

/* Under the lock. */
static void have_leave(struct snapshots *s, struct snapshot_place *p)
{
    p->is_leaving = true;
    (void)pthread_cond_broadcast(&s->changed);
}

void snapshots_forget(struct snapshots *s, const char *packages)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    for (unsigned i = 1; i < SNAPSHOTS_PLACES_MAX; i++) {
        struct snapshot_place *p = &s->places[i];

        if (p->is_taken && strcmp(p->name.packages, packages) == 0)
            have_leave(s, p);
    }
}

void snapshots_forget_images(struct snapshots *s)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    for (unsigned i = 1; i < SNAPSHOTS_PLACES_MAX; i++) {
        struct snapshot_place *p = &s->places[i];

        if (p->is_taken && !has_image(s, &p->name))
            have_leave(s, p);
    }
}

/* Why a plain one is not there yet; 0: it may come. Under the lock. */
static int check_hope(const struct snapshots *s, const struct snapshot_place *p,
                      unsigned failures, struct err *err)
{
    const uint64_t now_ns = clock_monotonic_ns();

    if (s->state == SNAPSHOTS_FAILED)
        return err_set(err, ENODEV, "there is no snapshot to start from: %s", s->text);
    if (!p || p == s->places)
        return 0;
    if (p->failures != failures)
        return err_set(err, ENODEV, "there is no snapshot to start from: %s", p->why);
    /* The first pause is waited for, the longer ones are not. */
    if (p->renewal.failures > 0 &&
        p->renewal.after_ns > now_ns + s->config.retry_ms * NS_PER_MS)
        return err_set(
            err, ENODEV, "there is no snapshot to start from: %s; the next try is in %llu s",
            p->why, (unsigned long long)((p->renewal.after_ns - now_ns) / NS_PER_SECOND));
    return 0;
}

/* Waits for the plain one of a scope. Under the lock. */
static int wait_plain(struct snapshots *s, const struct snapshot_name *name, int cancel_fd,
                      struct snapshot **ret, struct err *err)
{
    struct snapshot_place *p = NULL;
    unsigned failures = 0;
    bool soon = true;
    int r = 0;

    do {
        if (!p && (p = ask(s, name, &soon))) {
            p->waiters++;
            failures = p->failures;
            want(s, p, 0);
        }
        if (s->stopping || fd_is_readable(cancel_fd))
            r = err_set(err, ECANCELED, "cancelled before there was a machine");
        else if (!p && !soon)
            r = err_set(err, EBUSY, "too many snapshots are in use (snapshots.kept)");
        else if (!p || !p->current)
            r = check_hope(s, p, failures, err);
        if (r == 0 && (!p || !p->current))
            (void)cond_wait_until(&s->changed, &s->lock,
                                  clock_monotonic_ns() + 100 * NS_PER_MS);
    } while (r == 0 && (!p || !p->current));
    if (r == 0)
        *ret = reference(p);
    if (p)
        p->waiters--;
    return r;
}

int snapshots_wait(struct snapshots *s, const struct snapshot_name *name, int cancel_fd,
                   struct snapshot **ret, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);
    struct snapshot_place *p = snapshots_find(s, name);
    struct snapshot_name plain = *name;

    memset(plain.profile, 0, sizeof(plain.profile));
    memset(plain.packages, 0, sizeof(plain.packages));
    *ret = NULL;
    if (p && !snapshot_name_is_plain(name)) {
        p->asked_ns = clock_monotonic_ns();
        *ret = reference(p);
    }
    return *ret ? 0 : wait_plain(s, &plain, cancel_fd, ret, err);
}

void snapshots_set(struct snapshots *s, const struct config_snapshots *limits)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    set_limits(s, limits);
    (void)pthread_cond_broadcast(&s->changed);
}

void snapshots_count_use(struct snapshots *s, const struct snapshot *snapshot)
{
    struct renewal *renewal = &s->places[snapshot->place].renewal;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    if (snapshot == s->places[snapshot->place].current &&
        ++renewal->uses == renewal->limits.uses)
        (void)pthread_cond_broadcast(&s->changed);
}

void snapshots_measure(struct snapshots *s, struct snapshots_measure *ret)
{
    const struct snapshot_place *plain = &s->places[0];
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    *ret = (struct snapshots_measure){.is_ready = s->state == SNAPSHOTS_READY,
                                      .made = s->made,
                                      .failed = s->failed,
                                      .dropped = s->dropped};
    if (plain->current) {
        ret->age_ns = renewal_age_ns(&plain->renewal, clock_monotonic_ns());
        ret->uses = plain->renewal.uses;
    }
    for (unsigned i = 1; i < SNAPSHOTS_PLACES_MAX; i++) {
        ret->kept += s->places[i].current != NULL;
        ret->kept_bytes += s->places[i].disk_bytes;
    }
}
