/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/callers/uses.h"

#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

/* An object that somebody uses. */
struct used {
    ino_t inode; /* first: what the tree compares */
    uint64_t bytes;
    bool is_removed;
    LIST_HEAD(, use) by;
};

/* Of one tenant. */
struct use {
    LIST_ENTRY(use) entry;
    struct uses *uses;
    struct used *used;
    char tenant[TENANT_ID_SIZE];
    size_t n;
    bool is_held; /* it was removed, and counts */
};

struct uses {
    struct held *held;
    pthread_mutex_t lock; /* for all below */
    void *tree;           /* of struct used, by tsearch */
};

struct uses *uses_create(struct held *held)
{
    struct uses *uses = calloc(1, sizeof(*uses));

    if (!uses)
        return NULL;
    uses->held = held;
    (void)pthread_mutex_init(&uses->lock, NULL);
    return uses;
}

void uses_destroy(struct uses *uses)
{
    if (!uses)
        return;
    (void)pthread_mutex_destroy(&uses->lock);
    free(uses);
}

static int compare(const void *a, const void *b)
{
    const struct used *x = a, *y = b;

    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Under the lock. NULL without memory. */
static struct used *find_or_make(struct uses *uses, const struct stat *st)
{
    const struct used key = {.inode = st->st_ino};
    struct used **at = tfind(&key, &uses->tree, compare), *used;

    if (at)
        return *at;
    used = calloc(1, sizeof(*used));
    if (!used)
        return NULL;
    used->inode = st->st_ino;
    used->bytes = (uint64_t)st->st_size;
    LIST_INIT(&used->by);
    if (tsearch(used, &uses->tree, compare))
        return used;
    free(used);
    return NULL;
}

/* Under the lock: forgets an object that nobody uses. */
static void forget(struct uses *uses, struct used *used)
{
    if (!LIST_EMPTY(&used->by))
        return;
    (void)tdelete(used, &uses->tree, compare);
    free(used);
}

/* Under the lock. NULL without memory. */
static struct use *find_or_make_use(struct uses *uses, struct used *used, const char *tenant)
{
    struct use *use;

    LIST_FOREACH(use, &used->by, entry) {
        if (strcmp(use->tenant, tenant) == 0)
            return use;
    }
    use = calloc(1, sizeof(*use));
    if (!use)
        return NULL;
    use->uses = uses;
    use->used = used;
    (void)snprintf(use->tenant, sizeof(use->tenant), "%s", tenant);
    LIST_INSERT_HEAD(&used->by, use, entry);
    return use;
}

/* Under the lock. Whatever its tenant's limit is: the bytes are there. */
static void hold(struct use *use)
{
    uint64_t before;

    if (!use->is_held)
        use->is_held = held_add(use->uses->held, use->tenant, HTTP_HELD_BODY, use->used->bytes,
                                UINT64_MAX, &before) == 0;
}

int uses_begin(struct uses *uses, const char *tenant, int fd, const char *link,
               struct use **ret, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *locked = lock_hold(&uses->lock);
    struct used *used;
    struct stat st;

    if (fstatat(fd, link, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
        return err_set_errno(err, EIO, "cannot read an object");
    used = find_or_make(uses, &st);
    *ret = used ? find_or_make_use(uses, used, tenant) : NULL;
    if (*ret)
        (*ret)->n++;
    /* Removed since it was opened. */
    if (*ret && (used->is_removed || st.st_nlink == 0))
        hold(*ret);
    if (used)
        forget(uses, used);
    return *ret ? 0 : err_no_memory(err);
}

void uses_end(void *ctx)
{
    struct use *use = ctx;

    if (!use)
        return;
    _cleanup_lock_ pthread_mutex_t *locked = lock_hold(&use->uses->lock);

    if (--use->n > 0)
        return;
    if (use->is_held)
        held_remove(use->uses->held, use->tenant, HTTP_HELD_BODY, use->used->bytes);
    LIST_REMOVE(use, entry);
    forget(use->uses, use->used);
    free(use);
}

void uses_note_removal(struct uses *uses, ino_t inode)
{
    _cleanup_lock_ pthread_mutex_t *locked = lock_hold(&uses->lock);
    const struct used key = {.inode = inode};
    struct used **at = tfind(&key, &uses->tree, compare);
    struct use *use;

    if (!at)
        return;
    (*at)->is_removed = true;
    LIST_FOREACH(use, &(*at)->by, entry)
        hold(use);
}
