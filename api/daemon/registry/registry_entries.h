/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cluster calls the rows that tenants make: low numbers, of which those that were used
 * are used again. The bucket of changes keeps something of each for ever, and so it has no more
 * of them than there were rows at once.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_ENTRIES_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_ENTRIES_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/change.h"

/* Fills in kind and id of a row that is to be: a number that no row of its kind has, of skills,
 * files or sessions. 0 or -EIO. */
int registry_entry_make(struct registry *registry, enum change_kind kind, struct change *ret,
                        struct err *err);

#endif
