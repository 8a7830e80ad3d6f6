/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of a test's own and a registry in it. Only for test programs of cmocka.
 */
#ifndef SKILLVM_TESTS_UNIT_REGISTRY_DIR_H
#define SKILLVM_TESTS_UNIT_REGISTRY_DIR_H

#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/daemon/registry/registry.h"

static inline int make_dir(void **state)
{
    char *dir = strdup("/tmp/skillvm-unit.XXXXXX");

    *state = dir;
    return dir && mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
    free(*state);
    return system(command);
}

static inline struct registry *open_registry(const char *dir)
{
    struct registry *registry = NULL;
    struct err err = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/skillvm.db", dir);
    if (registry_open(path, &registry, &err) < 0)
        fail_msg("%s", err.message);
    return registry;
}

#endif
