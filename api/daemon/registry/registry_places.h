/* SPDX-License-Identifier: Apache-2.0 */
/* How far this daemon follows each bucket of a cluster. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_PLACES_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_PLACES_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/change.h"

enum registry_place {
    REGISTRY_PLACE_OF_CHANGES,
    REGISTRY_PLACE_OF_RECORDS,
    REGISTRY_PLACE_OF_AUDIT,
    REGISTRY_PLACES
};

/* Zero where it follows none. 0 or -EIO. */
int registry_place_get(struct registry *registry, enum registry_place which,
                       struct change_place *ret, struct err *err);
/* 0 or -EIO. */
int registry_place_put(struct registry *registry, enum registry_place which,
                       const struct change_place *place, struct err *err);
/*
 * A daemon on its own follows nobody any more; of records: what others have not ended will not
 * end, and goes. 0 or -EIO.
 */
int registry_place_forget(struct registry *registry, enum registry_place which,
                          struct err *err);

#endif
