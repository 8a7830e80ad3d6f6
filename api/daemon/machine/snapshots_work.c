/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that makes snapshots, has them made anew and drops them; one at a time.
 */
#include "api/daemon/machine/snapshot_files.h"
#include "api/daemon/machine/snapshots_internal.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/*
 * After one that nobody waits for was made, the next begins when so many times its making have
 * passed: what callers may cause is a fifth of a processor.
 */
#define REST_TIMES 4u
/* Then the digests of files can be remembered that were written last (known_digests.h). */
#define SETTLE_NS (2 * NS_PER_SECOND)

/* Says what is being done, or went wrong; with a snapshot there is nothing to wait for. */
static void say(struct snapshots *s, enum snapshots_state state, const char *text)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    if (!s->places[0].current) {
        s->state = state;
        (void)snprintf(s->text, sizeof(s->text), "%s", text);
    }
    (void)pthread_cond_broadcast(&s->changed);
}

static void say_step(void *ctx, const char *text)
{
    say(ctx, SNAPSHOTS_PREPARING, text);
}

/* Takes the current one of a place out of use; the caller has its reference. Under the lock. */
static struct snapshot *detach(struct snapshot_place *p)
{
    struct snapshot *old = p->current;

    if (old)
        __atomic_store_n(&old->is_current, false, __ATOMIC_RELEASE);
    p->current = NULL;
    return old;
}

/* Puts a snapshot into use, in place of another. */
static void publish(struct snapshots *s, struct snapshot_place *p, struct snapshot *snapshot)
{
    struct snapshot *old;

    snapshot->place = (unsigned)(p - s->places);
    (void)pthread_mutex_lock(&s->lock);
    old = detach(p);
    p->current = snapshot;
    memcpy(p->key, snapshot->key, sizeof(p->key));
    p->disk_bytes = snapshot->disk_bytes;
    p->begin_ns = clock_monotonic_ns();
    p->settle_ns = p->begin_ns + SETTLE_NS;
    renewal_begin(&p->renewal, p->begin_ns, snapshot->age_ns);
    if (p == s->places) {
        s->state = SNAPSHOTS_READY;
        (void)snprintf(s->text, sizeof(s->text), "ok");
    }
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    snapshot_unref(old);
}

/* Makes the snapshot of a name, whatever there is. 0 with a reference or -errno. */
static int make(struct snapshots *s, const struct snapshot_name *name, struct snapshot **ret,
                struct err *err)
{
    int r = snapshot_maker_make(&s->maker, name, ret, err);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    s->made += r == 0;
    return r;
}

/* Opens the snapshot of a place, or makes it. 0 with a reference or -errno. */
static int load_or_make(struct snapshots *s, const struct snapshot_name *name,
                        struct snapshot **ret, struct err *err)
{
    struct err refused = {0};
    int r = snapshot_maker_load(&s->maker, name, ret, &refused);

    if (r == 0)
        return 0;
    log_info("snapshot",
             "making scope=\"%s\" image=\"%s\" profile=\"%s\" packages=%.16s reason=\"%s\"",
             name->scope, name->image, name->profile, name->packages,
             refused.code ? refused.message : "there is none yet");
    r = make(s, name, ret, err);
    /* Chance may have stopped the guest: who waits for it need not hear of that. */
    if (r != -EPIPE)
        return r;
    log_warn("snapshot", "made=\"not yet\" reason=\"%s\"", err->message);
    *err = (struct err){0};
    return make(s, name, ret, err);
}

/* What the memory of a snapshot takes on disk; most of the file is holes. */
static uint64_t disk_bytes(const struct snapshots *s, const char *key)
{
    char path[SNAPSHOT_KEY_SIZE + sizeof("/memory")];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/memory", key);
    return fstatat(s->config.snapshots_fd, path, &st, 0) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

/* What was deleted is not kept in a snapshot. */
static bool has_packages(const struct snapshots *s, const struct snapshot_name *name)
{
    struct err ignored = {0};
    _cleanup_fd_ int fd = -1;

    if (name->packages[0] && s->config.open_packages)
        fd = s->config.open_packages(s->config.ctx, name->packages, &ignored);
    return !name->packages[0] || fd >= 0;
}

static bool take_place(struct snapshots *s, const char *key, const struct snapshot_name *name)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);
    struct snapshot_place *p = snapshots_find(s, name);

    if (p)
        return true;
    p = snapshots_take(s, name);
    if (p) {
        p->disk_bytes = disk_bytes(s, key);
        (void)snprintf(p->key, sizeof(p->key), "%s", key);
    }
    return p != NULL;
}

/*
 * Gives a snapshot on disk a place where it is still good and there is room. What that takes
 * (an image may be digested for it) others need not wait for.
 */
static bool adopt(void *ctx, const char *key, const struct snapshot_name *on_disk)
{
    struct snapshots *s = ctx;
    struct snapshot_name name = *on_disk;
    char now[SNAPSHOT_KEY_SIZE];
    unsigned place;
    /* Its key tells whether it is of that one. */
    _cleanup_images_ struct images *images =
        image_tables_find(s->config.images, name.image, "", &place);

    if (!images)
        return false;
    snapshot_name_image(&name, images, place);
    return snapshot_maker_key(&s->maker, &name, now) == 0 && strcmp(now, key) == 0 &&
           has_packages(s, &name) && take_place(s, key, &name);
}

static int prepare(struct snapshots *s, struct snapshot **ret, struct err *err)
{
    static const struct snapshot_name plain;
    int r;

    say(s, SNAPSHOTS_PREPARING, "reading kernel and image");
    r = snapshot_maker_read_inputs(&s->maker, err);
    if (r < 0)
        return r;
    say(s, SNAPSHOTS_PREPARING, "checking the snapshot");
    r = load_or_make(s, &plain, ret, err);
    if (r < 0)
        return r;
    snapshot_remove_others(s->config.snapshots_fd, adopt, s);
    return 0;
}

/* Waits a while before the next try. False when it is time to stop. */
static bool wait_retry(struct snapshots *s)
{
    uint64_t until_ns = clock_monotonic_ns() + s->config.retry_ms * NS_PER_MS;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    while (!s->stopping && cond_wait_until(&s->changed, held, until_ns))
        ;
    return !s->stopping;
}

/* Nobody waits for it, so that it can wait. */
static bool is_optional(const struct snapshots *s, const struct snapshot_place *p)
{
    return p != s->places && p->waiters == 0;
}

/* Counts a try that made none. False when it is time to stop, which may be why. */
static bool note_failure(struct snapshots *s, struct snapshot_place *p, const struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    s->failed += !s->stopping;
    p->failures++;
    (void)snprintf(p->why, sizeof(p->why), "%s", err->message);
    renewal_fail(&p->renewal, clock_monotonic_ns(), s->config.retry_ms);
    /* Chance may have stopped the guest. After a second try it is made for who asks again. */
    if (is_optional(s, p) && !p->current && p->renewal.failures > 1) {
        p->renewal.is_wanted = false;
        p->is_leaving |= p->name.packages[0] != '\0';
    }
    (void)pthread_cond_broadcast(&s->changed);
    return !s->stopping;
}

/* Makes the first one, as often as it takes. False when it is time to stop. */
static bool begin(struct snapshots *s)
{
    do {
        struct snapshot *snapshot;
        struct err err = {0};

        if (prepare(s, &snapshot, &err) == 0) {
            publish(s, s->places, snapshot);
            return true;
        }
        if (!note_failure(s, s->places, &err))
            return false;
        log_error("snapshot", "failed retry_ms=%llu reason=\"%s\"",
                  (unsigned long long)s->config.retry_ms, err.message);
        say(s, SNAPSHOTS_FAILED, err.message);
    } while (wait_retry(s));
    return false;
}

/* Whether time and use are to be looked at: they are nothing to a place where nothing is. */
static bool may_be_due(const struct snapshot_place *p)
{
    return p->is_taken && (p->current || p->renewal.is_wanted);
}

/*
 * One that has to go: by what was set, or because they take too much. Callers decide how much
 * packages take: they go before others do. Under the lock.
 */
static struct snapshot_place *too_many(struct snapshots *s)
{
    struct snapshot_place *p;
    uint64_t bytes = 0;
    unsigned n = 0;

    for (unsigned i = 1; i < SNAPSHOTS_PLACES_MAX; i++) {
        if (s->places[i].is_leaving)
            return &s->places[i];
        n += s->places[i].is_taken;
        bytes += s->places[i].disk_bytes;
    }
    if (n <= s->limits.kept && bytes <= s->limits.kept_bytes)
        return NULL;
    p = snapshots_oldest(s, UINT64_MAX, true);
    return p ? p : snapshots_oldest(s, UINT64_MAX, false);
}

/* What is to be done for a place, and when at the latest. Under the lock. */
static const char *reason_now(const struct snapshots *s, const struct snapshot_place *p,
                              uint64_t now_ns, uint64_t *next_ns)
{
    uint64_t due_ns;
    const char *reason;

    if (!may_be_due(p))
        return NULL;
    reason = renewal_reason(&p->renewal, now_ns);
    due_ns = renewal_next_ns(&p->renewal);
    if (is_optional(s, p) && due_ns < s->rest_ns)
        due_ns = s->rest_ns;
    if (due_ns > now_ns)
        reason = NULL;
    if (due_ns < *next_ns)
        *next_ns = due_ns;
    return reason;
}

/* What is to be done next. */
struct duty {
    struct snapshot_place *place;
    const char *reason; /* to make it, in a word; NULL: to drop it, or */
    bool settles;       /* to have its digests remembered */
};

/* What can wait for all else, so that no start has to read what this one wrote. Under the lock.
 */
static void find_settling(struct snapshots *s, struct duty *ret, uint64_t *next_ns)
{
    uint64_t now_ns = clock_monotonic_ns();

    for (unsigned i = 0; i < SNAPSHOTS_PLACES_MAX && !ret->place; i++) {
        struct snapshot_place *p = &s->places[i];

        if (!p->current || p->settle_ns == 0)
            continue;
        if (p->settle_ns <= now_ns)
            *ret = (struct duty){.place = p, .settles = true};
        else if (p->settle_ns < *next_ns)
            *next_ns = p->settle_ns;
    }
}

/* Under the lock. False: nothing until *next_ns. Those come first that somebody waits for. */
static bool find_duty(struct snapshots *s, struct duty *ret, uint64_t *next_ns)
{
    uint64_t now_ns = clock_monotonic_ns();

    *ret = (struct duty){.place = too_many(s)};
    *next_ns = RENEWAL_NEVER;
    for (unsigned i = 0; !ret->place && i < 2 * SNAPSHOTS_PLACES_MAX; i++) {
        struct snapshot_place *p = &s->places[i % SNAPSHOTS_PLACES_MAX];
        bool first_round = i < SNAPSHOTS_PLACES_MAX;
        const char *reason = reason_now(s, p, now_ns, next_ns);

        if (reason && is_optional(s, p) != first_round) {
            bool is_unwanted = p != s->places && p->current && p->asked_ns < p->begin_ns;

            *ret = (struct duty){.place = p, .reason = is_unwanted ? NULL : reason};
        }
    }
    find_settling(s, ret, next_ns);
    return ret->place != NULL;
}

/* Waits until there is something to do. False when it is time to stop. */
static bool wait_duty(struct snapshots *s, struct duty *ret)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);
    uint64_t next_ns;

    s->busy = NULL;
    while (!s->stopping && !find_duty(s, ret, &next_ns))
        (void)cond_wait_until(&s->changed, held, next_ns);
    s->busy = s->stopping ? NULL : ret->place;
    return !s->stopping;
}

/* Empties a place: its snapshot goes, from the disk too. */
static void drop(struct snapshots *s, struct snapshot_place *p)
{
    struct snapshot *old;

    if (p->key[0])
        fd_remove_folder(s->config.snapshots_fd, p->key);
    snapshot_maker_forget(&s->maker);
    log_info("snapshot", "dropped key=%.16s image=\"%s\" profile=\"%s\"", p->key, p->name.image,
             p->name.profile);
    (void)pthread_mutex_lock(&s->lock);
    old = detach(p);
    /* Who came meanwhile waits for another. */
    *p = (struct snapshot_place){
        .is_taken = p->waiters > 0,
        .name = p->name,
        .waiters = p->waiters,
        .asked_ns = p->asked_ns,
        .renewal = {.limits = p->renewal.limits, .is_wanted = p->waiters > 0}};
    s->dropped++;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    snapshot_unref(old);
}

static bool find_optional(struct snapshots *s, const struct snapshot_place *p)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    return is_optional(s, p);
}

/* Makes what is due, or opens it where it lies on disk and was not in use yet. */
static void renew(struct snapshots *s, struct snapshot_place *p, const char *reason)
{
    /* Asked now: once it is made, who waited for it may have gone, or not yet. */
    bool optional = find_optional(s, p);
    uint64_t start_ns = clock_monotonic_ns();
    struct snapshot *snapshot;
    struct err err = {0};
    int r;

    if (p->current)
        log_info("snapshot", "renewing key=%.16s reason=%s age_s=%llu uses=%llu",
                 p->current->key, reason,
                 (unsigned long long)(renewal_age_ns(&p->renewal, start_ns) / NS_PER_SECOND),
                 (unsigned long long)p->renewal.uses);
    r = p->current ? make(s, &p->name, &snapshot, &err)
                   : load_or_make(s, &p->name, &snapshot, &err);
    if (r == 0)
        publish(s, p, snapshot);
    else if (note_failure(s, p, &err))
        log_error("snapshot", "renewal=failed profile=\"%s\" reason=\"%s\"", p->name.profile,
                  err.message);
    (void)pthread_mutex_lock(&s->lock);
    if (optional) {
        uint64_t now_ns = clock_monotonic_ns();

        s->rest_ns = now_ns + REST_TIMES * (now_ns - start_ns);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* Has the digests remembered; a snapshot that is no longer what was sealed is made anew. */
static void settle(struct snapshots *s, struct snapshot_place *p)
{
    struct err err = {0};
    int r = snapshot_contents_check(&p->current->files, &s->maker.known, &p->current->contents,
                                    &err);

    (void)pthread_mutex_lock(&s->lock);
    p->settle_ns = 0;
    (void)pthread_mutex_unlock(&s->lock);
    if (r == 0)
        log_info("snapshot", "digests=settled");
    else
        log_warn("snapshot", "digests=\"not settled\" reason=\"%s\"", err.message);
    if (r == -EINVAL)
        renew(s, p, "damaged");
}

void *snapshots_work(void *arg)
{
    struct snapshots *s = arg;
    struct duty duty;

    s->maker.say = say_step;
    s->maker.ctx = s;
    if (!begin(s))
        return NULL;
    while (wait_duty(s, &duty)) {
        if (duty.settles)
            settle(s, duty.place);
        else if (duty.reason)
            renew(s, duty.place, duty.reason);
        else
            drop(s, duty.place);
    }
    return NULL;
}
