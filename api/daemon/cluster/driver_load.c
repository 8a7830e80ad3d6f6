/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/driver_load.h"

#include "base/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MODULE "../lib/skillvm/skillvm-cluster.so"

int driver_load(const struct cluster_driver **ret, struct err *err)
{
    char folder[PATH_MAX], path[PATH_MAX + sizeof(MODULE) + 1];
    const struct cluster_driver *driver;
    cluster_driver_fn *give;
    void *module, *symbol;
    int r = process_folder(folder, sizeof(folder));

    if (r < 0)
        return err_set_errno(err, -r, "cannot find this program");
    (void)snprintf(path, sizeof(path), "%s/" MODULE, folder);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    /* Its message names what is not there: the module, or the client library that it needs. */
    if (!module)
        return err_set(err, ENOENT,
                       "cluster: needs the NATS client library (libnats3.4): %.300s",
                       dlerror());
    symbol = dlsym(module, CLUSTER_DRIVER_SYMBOL);
    if (!symbol)
        return err_set(err, ELIBBAD, "%.300s is no module of skillvmd's", path);
    memcpy(&give, &symbol, sizeof(give));
    driver = give();
    if (driver->version != CLUSTER_DRIVER_VERSION)
        return err_set(err, ELIBBAD, "%.300s is of another version of skillvm", path);
    *ret = driver;
    return 0;
}
