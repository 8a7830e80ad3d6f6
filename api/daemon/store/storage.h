/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps an object: the rows that name it, of skills, executions and files alike. An object
 * is stored before its first row and removed after its last one, always under the store lock,
 * so whoever finds a row under that lock finds its object too. What has the file open keeps its
 * content whatever happens here. A daemon that dies between the two leaves an object without a
 * row, which the next sweep removes, and never a row without its object: the object and its
 * name are fsynced before the row is committed, and the removal of the row is committed
 * (synchronous=FULL) before the object is unlinked.
 */
#ifndef SKILLVM_API_DAEMON_STORE_STORAGE_H
#define SKILLVM_API_DAEMON_STORE_STORAGE_H

#include "api/daemon/registry/registry.h"
#include "base/err.h"

#include <pthread.h>
#include <stdint.h>

/* Under the store lock: removes an object that no row names any more. 0 or -EIO. */
int storage_release(struct registry *registry, int objects_fd, const char *digest,
                    struct err *err);

/*
 * Whether a tenant may store so many bytes more. 0; -EDQUOT with a sentence for the caller;
 * -ENOENT when there is no such tenant any more; -EIO. Only exact under the store lock.
 */
int storage_check_quota(struct registry *registry, const char *tenant, uint64_t bytes,
                        struct err *err);

/*
 * Removes every object that no row names, taking the lock for one at a time. *ret_n: how many.
 * 0, or -errno where it stopped.
 */
int storage_sweep(struct registry *registry, int objects_fd, pthread_mutex_t *store_lock,
                  unsigned *ret_n, struct err *err);

#endif
