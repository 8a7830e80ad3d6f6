/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/terms/tenant.h"
#include "api/daemon/terms/ids.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct tenant_limits tenant_limits_default(void)
{
    return (struct tenant_limits){.weight = TENANT_WEIGHT_DEFAULT};
}

const char *tenant_reuse_name(enum tenant_reuse reuse)
{
    static const char *const names[TENANT_REUSES] = {"", "never", "skill", "tenant"};

    return names[reuse];
}

int tenant_reuse_parse(const char *text, size_t len, enum tenant_reuse *ret)
{
    for (int i = 0; i < TENANT_REUSES; i++) {
        const char *name = tenant_reuse_name((enum tenant_reuse)i);

        if (strlen(name) == len && memcmp(name, text, len) == 0) {
            *ret = (enum tenant_reuse)i;
            return 0;
        }
    }
    return -EINVAL;
}

bool tenant_images_have(const char *images, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = images; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");

        if (n == len && memcmp(at, name, len) == 0)
            return true;
        at += n;
    }
    return false;
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
