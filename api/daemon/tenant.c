/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/tenant.h"

#include <stdio.h>
#include <string.h>

struct tenant_limits tenant_limits_default(void)
{
    return (struct tenant_limits){.weight = TENANT_WEIGHT_DEFAULT};
}

bool tenant_id_valid(const char *id)
{
    if (strcmp(id, TENANT_DEFAULT) == 0)
        return true;
    return strncmp(id, "ten_", 4) == 0 && strlen(id) == TENANT_ID_SIZE - 1 &&
           strspn(id + 4, "0123456789abcdef") == 32;
}

struct caller caller_operator(const char *actor)
{
    struct caller caller = {.is_operator = true, .tenant = TENANT_DEFAULT};

    (void)snprintf(caller.actor, sizeof(caller.actor), "%s", actor);
    return caller;
}
