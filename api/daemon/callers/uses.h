/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tenants read of the store and may be removed meanwhile: an execution that waits has its
 * skill and its files, a download what it sends. A row that goes gives back its bytes at once,
 * the disk only gets them when the last of these is over: until then they count as held.
 */
#ifndef SKILLVM_API_DAEMON_CALLERS_USES_H
#define SKILLVM_API_DAEMON_CALLERS_USES_H

#include "api/daemon/callers/held.h"

#include <sys/stat.h>
#include <sys/types.h>

struct uses;
struct use;

/* NULL without memory. Borrows what counts. */
struct uses *uses_create(struct held *held);
/* After the last use. NULL is fine. */
void uses_destroy(struct uses *uses);

/*
 * Begins a tenant's use of an object, by what fstat says of the descriptor or the link that it
 * has. However many uses it has of one, that counts once. The use, to be ended; NULL without
 * memory. Safe from any thread.
 */
struct use *uses_begin(struct uses *uses, const char *tenant, const struct stat *st);
/* Ends a struct use, once the descriptor is closed or the link is gone. NULL is fine. */
void uses_end(void *use);

/* Told of each object that the store removed. */
void uses_note_removal(struct uses *uses, ino_t inode);

#endif
