/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/terms/change.h"

const char *change_owner(const struct change *change)
{
    switch (change->kind) {
    case CHANGE_SKILL:
        return change->skill.tenant;
    case CHANGE_FILE:
        return change->file.tenant;
    case CHANGE_SESSION:
        return change->session.tenant;
    default:
        return NULL;
    }
}
