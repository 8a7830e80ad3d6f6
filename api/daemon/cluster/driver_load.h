/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and loads the module that speaks with the servers of a cluster. */
#ifndef SKILLVM_API_DAEMON_CLUSTER_DRIVER_LOAD_H
#define SKILLVM_API_DAEMON_CLUSTER_DRIVER_LOAD_H

#include "api/daemon/cluster/driver.h"

/*
 * Loads skillvm-cluster.so from ../lib/skillvm beside the program's folder, for as long as the
 * process lives: the client library's threads do not end. 0; -ENOENT or -ELIBBAD with what is
 * missing.
 */
int driver_load(const struct cluster_driver **ret, struct err *err);

#endif
