/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/tenant.h"
#include "api/daemon/ids.h"

#include <stdio.h>
#include <string.h>

struct tenant_limits tenant_limits_default(void)
{
    return (struct tenant_limits){.weight = TENANT_WEIGHT_DEFAULT};
}

bool tenant_id_valid(const char *id)
{
    return strcmp(id, TENANT_DEFAULT) == 0 || ids_valid(ID_TENANT, id);
}

struct caller caller_operator(const char *actor)
{
    struct caller caller = {.is_operator = true, .tenant = TENANT_DEFAULT};

    (void)snprintf(caller.actor, sizeof(caller.actor), "%s", actor);
    return caller;
}
