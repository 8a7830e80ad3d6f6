/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/image_tables.h"

#include "base/cleanup.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image_tables {
    char share[PATH_MAX];
    char added[PATH_MAX];
    void (*gone)(void *ctx);
    void *ctx;
    pthread_mutex_t looking; /* held by who looks; before the other */

    pthread_mutex_t lock;     /* for these, and the references and links of tables */
    LIST_HEAD(, images) list; /* the newest, which is that of now, first */
    unsigned n;
    uint64_t number; /* of the newest */
};

/* What was left out, for who looks. */
struct look {
    struct images *fresh;
    struct image_changes *changes;
};

static void note(struct image_changes *changes, enum image_change_kind kind, const char *name,
                 const struct err *why)
{
    struct image_change *change = &changes->list[changes->n];

    if (why)
        log_warn("images", "image=%s is=refused reason=\"%s\"", name, why->message);
    else
        log_info("images", "image=%s is=%s", name, image_change_word(kind));
    if (changes->n == IMAGE_CHANGES_MAX)
        return;
    changes->n++;
    *change = (struct image_change){.kind = kind};
    (void)snprintf(change->name, sizeof(change->name), "%s", name);
    if (why)
        (void)snprintf(change->why, sizeof(change->why), "%s", why->message);
}

static bool has_change(const struct image_changes *changes, const char *name)
{
    for (unsigned i = 0; i < changes->n; i++)
        if (strcmp(changes->list[i].name, name) == 0)
            return true;
    return false;
}

/* A recipe is none of the images. */
static void note_left_out(void *ctx, const char *file, const struct err *why)
{
    char name[IMAGE_NAME_SIZE];

    if (image_name_in(file, ".erofs", name))
        note(ctx, IMAGE_REFUSED, name, why);
    else
        log_warn("images", "file=\"%s\" reason=\"%s\"", file, why->message);
}

static void free_images(struct images *images)
{
    if (!images)
        return;
    images_finish(images);
    free(images);
}
CLEANUP_WITH(struct images *, free_images)

/* What there is in the folders; those that are left out are among the changes. */
static int read_folders(struct image_tables *tables, struct image_changes *changes,
                        struct images **ret, struct err *err)
{
    _cleanup_(free_images) struct images *images = calloc(1, sizeof(*images));
    int r = images ? images_read(tables->share, images, err) : err_no_memory(err);

    if (r < 0)
        return r;
    images_read_added(tables->added, images, note_left_out, changes);
    *ret = steal_ptr(&images);
    return 0;
}

/* Has it be that of now, and gives the one before, or NULL. */
static struct images *publish(struct image_tables *tables, struct images *images)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tables->lock);
    struct images *before = LIST_FIRST(&tables->list);

    images->of = tables;
    images->references = 1;
    images->number = ++tables->number;
    LIST_INSERT_HEAD(&tables->list, images, link);
    tables->n++;
    return before;
}

int image_tables_create(const char *share, const char *added, struct image_tables **ret,
                        struct err *err)
{
    _cleanup_free_ struct image_changes *changes = calloc(1, sizeof(*changes));
    struct image_tables *tables = calloc(1, sizeof(*tables));
    struct images *images;
    int r;

    if (!tables || !changes) {
        free(tables);
        return err_no_memory(err);
    }
    LIST_INIT(&tables->list);
    (void)snprintf(tables->share, sizeof(tables->share), "%s", share);
    (void)snprintf(tables->added, sizeof(tables->added), "%s", added);
    (void)pthread_mutex_init(&tables->looking, NULL);
    (void)pthread_mutex_init(&tables->lock, NULL);
    r = read_folders(tables, changes, &images, err);
    if (r < 0) {
        image_tables_destroy(tables);
        return r;
    }
    (void)publish(tables, images);
    *ret = tables;
    return 0;
}

void image_tables_destroy(struct image_tables *tables)
{
    if (!tables)
        return;
    tables->gone = NULL;
    images_unref(LIST_FIRST(&tables->list));
    (void)pthread_mutex_destroy(&tables->lock);
    (void)pthread_mutex_destroy(&tables->looking);
    free(tables);
}

void image_tables_on_gone(struct image_tables *tables, void (*gone)(void *ctx), void *ctx)
{
    tables->gone = gone;
    tables->ctx = ctx;
}

struct images *image_tables_now(struct image_tables *tables)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tables->lock);
    struct images *images = LIST_FIRST(&tables->list);

    images->references++;
    return images;
}

/* Whether that was the last one. */
static bool forgo(struct images *images)
{
    struct image_tables *tables = images->of;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tables->lock);

    if (--images->references > 0)
        return false;
    LIST_REMOVE(images, link);
    tables->n--;
    return true;
}

void images_unref(struct images *images)
{
    struct image_tables *tables = images ? images->of : NULL;

    if (!images || !forgo(images))
        return;
    free_images(images);
    if (tables->gone)
        tables->gone(tables->ctx);
}

/* Under the lock. */
static struct images *find(struct image_tables *tables, const char *name, const char *digest,
                           unsigned *ret_place)
{
    struct images *images;

    LIST_FOREACH(images, &tables->list, link) {
        int place = images_find(images, name);

        if (place < 0 || (*digest && strcmp(images->list[place].digest, digest) != 0))
            continue;
        *ret_place = (unsigned)place;
        return images;
    }
    return NULL;
}

struct images *image_tables_find(struct image_tables *tables, const char *name,
                                 const char *digest, unsigned *ret_place)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tables->lock);
    struct images *images = find(tables, name, digest, ret_place);

    if (images)
        images->references++;
    return images;
}

bool image_tables_have(struct image_tables *tables, const char *name, const char *digest)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tables->lock);
    unsigned place;

    return find(tables, name, digest, &place) != NULL;
}

/* What is not what was built is as if it had not been put there. */
static int refuse(const struct look *look, const struct images *before, unsigned place,
                  const struct err *why)
{
    char name[IMAGE_NAME_SIZE];
    int there;

    memcpy(name, look->fresh->known.list[place].name, sizeof(name));
    note(look->changes, IMAGE_REFUSED, name, why);
    there = images_find(before, name);
    if (there >= 0)
        return images_keep(look->fresh, before, (unsigned)there);
    images_drop(look->fresh, place);
    return 0;
}

/* An image of a table that is new, but for the first. */
static int take(const struct look *look, const struct images *before, unsigned place)
{
    struct image *image = &look->fresh->list[place];
    const char *name = look->fresh->known.list[place].name;
    int there = images_find(before, name);
    const struct image *old = there < 0 ? NULL : &before->list[there];
    struct err why = {0};

    if (old && images_same_file(old, image) && strcmp(old->digest, image->digest) == 0) {
        image->is_checked = old->is_checked;
        return 0;
    }
    if (images_check(look->fresh, place, &why) < 0)
        return refuse(look, before, place, &why);
    if (!old || strcmp(old->digest, image->digest) != 0)
        note(look->changes, old ? IMAGE_REPLACED : IMAGE_ADDED, name, NULL);
    return 0;
}

/* One of before that was not found. It stays if what was found under its name was refused. */
static int miss(const struct look *look, const struct images *before, unsigned place)
{
    const char *name = before->known.list[place].name;
    int r;

    if (images_find(look->fresh, name) >= 0)
        return 0;
    if (!has_change(look->changes, name)) {
        note(look->changes, IMAGE_REMOVED, name, NULL);
        return 0;
    }
    r = images_keep(look->fresh, before, place);
    /* Others have all the room. */
    return r == -E2BIG ? 0 : r;
}

static int compare(const struct look *look, const struct images *before)
{
    unsigned place = 1;
    int r = before->known.list[0].manifest.known ? images_keep(look->fresh, before, 0) : 0;

    while (r >= 0 && place < look->fresh->n) {
        const unsigned n = look->fresh->n;

        r = take(look, before, place);
        /* The next one came to this place where one was taken out. */
        place += look->fresh->n == n;
    }
    for (place = 1; r >= 0 && place < before->n; place++)
        r = miss(look, before, place);
    return r;
}

static bool has_room(struct image_tables *tables)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tables->lock);

    return tables->n < IMAGE_TABLES_MAX;
}

int image_tables_reload(struct image_tables *tables, struct image_changes *ret, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tables->looking);
    _cleanup_images_ struct images *before = NULL;
    _cleanup_(free_images) struct images *fresh = NULL;
    int r;

    ret->n = 0;
    if (!has_room(tables))
        return err_set(err, EBUSY,
                       "executions still need %u earlier sets of images: try again once some "
                       "of them have ended",
                       IMAGE_TABLES_MAX);
    r = read_folders(tables, ret, &fresh, err);
    if (r < 0)
        return r;
    before = image_tables_now(tables);
    r = compare(&(struct look){fresh, ret}, before);
    if (r < 0)
        return err_set_errno(err, -r, "cannot take up the images");
    /* The reference that was the table's own. */
    images_unref(publish(tables, steal_ptr(&fresh)));
    return 0;
}

const char *image_change_word(enum image_change_kind kind)
{
    static const char *const words[] = {[IMAGE_ADDED] = "added",
                                        [IMAGE_REPLACED] = "replaced",
                                        [IMAGE_REMOVED] = "removed",
                                        [IMAGE_REFUSED] = "refused"};

    return words[kind];
}
