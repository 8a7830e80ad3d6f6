/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a test's stand-in for the module that do nothing by themselves. */
#ifndef SKILLVM_TESTS_UNIT_FAKE_LINKS_H
#define SKILLVM_TESTS_UNIT_FAKE_LINKS_H

#include "api/daemon/cluster/driver.h"

#include <stdlib.h>

struct cluster_link {
    bool is_large; /* what goes over it, where the test looks at that */
};

/* As struct cluster_driver has them. */
static inline enum cluster_fault fake_open(const struct cluster_access *access,
                                           const char *server, bool is_to_watch,
                                           struct cluster_link **ret, struct err *err)
{
    (void)access;
    (void)server;
    (void)is_to_watch;
    (void)err;
    *ret = calloc(1, sizeof(**ret));
    return *ret ? CLUSTER_OK : CLUSTER_OTHER;
}

/* There is nothing to watch. */
static inline enum cluster_fault fake_open_to_ask(const struct cluster_access *access,
                                                  const char *server, bool is_to_watch,
                                                  struct cluster_link **ret, struct err *err)
{
    return is_to_watch ? CLUSTER_UNREACHABLE : fake_open(access, server, false, ret, err);
}

static inline void fake_close(struct cluster_link *link)
{
    free(link);
}

/* Of one whose data is not its own. */
static inline void fake_release(struct cluster_entry *entry)
{
    *entry = (struct cluster_entry){0};
}

#endif
