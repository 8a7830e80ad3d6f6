/* SPDX-License-Identifier: Apache-2.0 */
/* A node "a" of a cluster whose servers are a test's stand-in. */
#ifndef SKILLVM_TESTS_UNIT_NODE_BEGUN_H
#define SKILLVM_TESTS_UNIT_NODE_BEGUN_H

#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/cluster.h"

/* Fails the test where there is none. The caller's, for cluster_destroy. */
static inline struct cluster *node_begun(const struct cluster_driver *driver,
                                         const char *labels)
{
    const struct node_entry facts = {.version = "0.2.0"};
    const struct cluster_config config = {.servers = "nats://127.0.0.1",
                                          .credentials = "",
                                          .tls_ca = "",
                                          .tls_cert = "",
                                          .tls_key = "",
                                          .labels = labels,
                                          .node = "a",
                                          .facts = &facts,
                                          .replicas = 1,
                                          .driver = driver};
    struct cluster *c = NULL;
    struct err err = {0};

    if (cluster_create(&config, &c, &err) < 0)
        fail_msg("%s", err.message);
    return c;
}

#endif
