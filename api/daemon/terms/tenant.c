/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/terms/tenant.h"
#include "api/daemon/terms/ids.h"
#include "base/host_pattern.h"
#include "base/text.h"

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
    return text_has_word(images, " ", name);
}

int tenant_network_clean(const char *text, size_t len, char ret[TENANT_NETWORK_SIZE],
                         struct err *err)
{
    static const char *const words[] = {"", TENANT_NETWORK_OFF, TENANT_NETWORK_DECLARED};
    _cleanup_buf_ struct buf list = buf_init(HOST_LIST_MAX * HOST_PATTERN_SIZE);
    int r;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0) {
            memcpy(ret, words[i], len + 1);
            return 0;
        }
    }
    r = host_list_add(&list, text, len, true, err);
    if (r < 0 && r != -ENOMEM)
        return r;
    if (r < 0 || list.len == 0 || list.len >= TENANT_NETWORK_SIZE)
        return err_set(err, list.len == 0 && r == 0 ? EINVAL : E2BIG,
                       "a list of hosts has one at least and %u bytes at most",
                       TENANT_NETWORK_SIZE - 1);
    memcpy(ret, list.data, list.len);
    ret[list.len] = '\0';
    return 0;
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
