/* SPDX-License-Identifier: Apache-2.0 */
/* Stores and forgets the uploaded files of a cluster, at all its nodes. */
#ifndef SKILLVM_API_DAEMON_ENGINE_FILE_CHANGES_H
#define SKILLVM_API_DAEMON_ENGINE_FILE_CHANGES_H

#include "api/daemon/engine/changes.h"
#include "api/daemon/registry/registry_files.h"

/*
 * Whether a tenant may store another file of so many bytes, by the rows there are. 0; -EDQUOT;
 * -ENOENT: there is no such tenant; -EIO.
 */
int file_changes_check_room(struct registry *registry, const char *tenant, uint64_t bytes,
                            struct err *err);
/*
 * Stores the row of a file at every node; all but its tenant is read. What it holds is at the
 * servers. As above, by the rows of all nodes, and -EAGAIN as of changes_make.
 */
int file_changes_put(struct changes *changes, struct registry *registry, const char *tenant,
                     const struct registry_file *file, struct err *err);
/* 0; -ENOENT also for another tenant's; -EAGAIN as above; -EIO. */
int file_changes_delete(struct changes *changes, struct registry *registry, const char *tenant,
                        const char *id, struct err *err);
/* The same, as the daemon wants it, in its own turn. */
int file_changes_expire(struct changes *changes, struct registry *registry, const char *tenant,
                        const char *id, struct err *err);

#endif
