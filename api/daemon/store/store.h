/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content-addressed store: immutable objects named by the SHA-256 of what they hold. Names
 * come from digests only; no byte of a stranger's ever becomes a path. These functions are all
 * that anybody knows of objects: a store on another machine implements them and no more.
 *
 * What keeps an object is the rows that name it, of skills, executions and files alike. They
 * are somebody else's; the store asks whether there is one. An object is stored before its
 * first row and released after its last one, always under the lock, so whoever finds a row
 * under the lock finds its object too. Who has an object open keeps its content whatever
 * happens here. A daemon that dies between the two leaves an object without a row, which the
 * next sweep removes, and never a row without its object: the object and its name are on disk
 * when store_put returns, before the row is committed, and the row's removal is on disk before
 * store_release.
 */
#ifndef SKILLVM_API_DAEMON_STORE_STORE_H
#define SKILLVM_API_DAEMON_STORE_STORE_H

#include "api/daemon/store/data_folder.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct store;

/* Whether a row names an object. 0 or -errno. */
typedef int store_named_fn(void *ctx, const char *digest, bool *ret_named, struct err *err);

/* The folder is borrowed. 0; -ENOMEM; -errno where what a daemon before this put cannot last.
 */
int store_create(const struct data_folder *folder, store_named_fn *is_named, void *ctx,
                 struct store **ret, struct err *err);
/* Who has an object open, or another name of it, keeps the inode. */
typedef void store_removed_fn(void *ctx, const char *digest, ino_t inode);
/*
 * Tells of each object that went from now on, under the lock, so that nothing made of it stays.
 * Before other threads know of the store.
 */
void store_on_removal(struct store *store, store_removed_fn *removed, void *ctx);
/* NULL is fine. */
void store_destroy(struct store *store);

/*
 * Until it is unlocked no object comes or goes but by the caller: for as long as a row and its
 * object are looked at, come or go together. Returns the store.
 */
struct store *store_lock(struct store *store);
/* For _cleanup_store_lock_; NULL is fine. */
void store_unlock(struct store **store);
#define _cleanup_store_lock_ __attribute__((cleanup(store_unlock)))

/* A nameless file for what may become an object, read and write. The descriptor, or -errno. */
int store_temporary(const struct store *store);
/*
 * Under the lock: makes the object of such a file, which then is on disk; one that is there
 * already stays as it is. The descriptor is the caller's. Where no row comes to name it,
 * store_release. 0 or -errno.
 */
int store_put(struct store *store, int fd, const char *digest, struct err *err);
/* Opens an object, to be read at any offset. The descriptor (caller's), or -errno. */
int store_get(const struct store *store, const char *digest, struct err *err);
/*
 * Notes that one which was opened is used now, for who asks store_each for what was not used
 * for the longest. It writes to the disk once a minute at most.
 */
void store_note_use(int fd);
/*
 * Under the lock: gives an object another name in the folder of store_links(), by which it
 * stays after it was removed here; one that is there already is taken for it. A restart removes
 * such names. 0 or -errno.
 */
int store_link(struct store *store, const char *digest, const char *name, struct err *err);
/* The descriptor of that folder, the store's. */
int store_links(const struct store *store);
/* Under the lock: removes an object that no row names any more. 0 or -errno. */
int store_release(struct store *store, const char *digest, struct err *err);
/* An object, and when it was opened last, to a minute. */
struct store_object {
    char digest[65];
    uint64_t bytes;
    uint64_t used_ns; /* realtime */
};
/*
 * Calls visit for every object; others come and go meanwhile. 0; -errno; what visit gives less
 * than 0, which ends it.
 */
typedef int store_visit_fn(void *ctx, const struct store_object *object);
int store_each(struct store *store, store_visit_fn *visit, void *ctx, struct err *err);
/* Under the lock: removes an object that rows name, and that is to be had again. */
void store_evict(struct store *store, const char *digest);
/*
 * Removes every object that no row names, taking the lock for one at a time. *ret_n: how many.
 * 0, or -errno where it stopped.
 */
int store_sweep(struct store *store, unsigned *ret_n, struct err *err);

#endif
