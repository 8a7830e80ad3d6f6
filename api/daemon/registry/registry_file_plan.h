/* SPDX-License-Identifier: Apache-2.0 */
/* Uploaded files as changes that every node of a cluster makes. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_FILE_PLAN_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_FILE_PLAN_H

#include "api/daemon/registry/registry_changes.h"
#include "api/daemon/registry/registry_files.h"

/* The change that stores the row of a file; all but its tenant is read. 0, -E2BIG or -EIO. */
int registry_file_plan(struct registry *registry, const char *tenant,
                       const struct registry_file *file, struct change *ret, struct err *err);
/* The change that forgets one. 0; -ENOENT also for another tenant's; -EIO. */
int registry_file_plan_delete(struct registry *registry, const char *tenant, const char *id,
                              struct change *ret, struct err *err);

#endif
