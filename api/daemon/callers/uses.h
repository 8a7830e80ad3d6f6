/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tenants read of the store and may be removed meanwhile: an execution that waits has its
 * skill and its files, a download what it sends. A row that goes gives back its bytes at once,
 * the disk only gets them when the last of these is over: until then they count as held.
 */
#ifndef SKILLVM_API_DAEMON_CALLERS_USES_H
#define SKILLVM_API_DAEMON_CALLERS_USES_H

#include "api/daemon/callers/held.h"

#include "base/err.h"

#include <sys/types.h>

struct uses;
struct use;

/* NULL without memory. Borrows what counts. */
struct uses *uses_create(struct held *held);
/* After the last use. NULL is fine. */
void uses_destroy(struct uses *uses);

/*
 * Begins a tenant's use of an object, of which it has a descriptor (and link is ""), or a link
 * in the folder of one. However many uses it has of one, that counts once. 0 with the use, to
 * be ended; -ENOMEM; -EIO. Safe from any thread.
 */
int uses_begin(struct uses *uses, const char *tenant, int fd, const char *link,
               struct use **ret, struct err *err);
/*
 * Ends a struct use, before the descriptor is closed or the link goes: inodes are known by
 * their numbers, which come again. NULL is fine.
 */
void uses_end(void *use);

/* Told of each object that the store removed. */
void uses_note_removal(struct uses *uses, ino_t inode);

#endif
