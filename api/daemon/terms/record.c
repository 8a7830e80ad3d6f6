/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/terms/record.h"

#include <string.h>

bool record_is_of_same(const struct record *one, const struct record *other)
{
    return strcmp(one->node, other->node) == 0 && strcmp(one->instance, other->instance) == 0;
}

unsigned record_retries_left(const struct record *there)
{
    return there->waits && !there->was_begun ? there->retries : there->retries - 1;
}
