/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/store/storage.h"

#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/store/objects.h"
#include "base/fd.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

int storage_release(struct registry *registry, int objects_fd, const char *digest,
                    struct err *err)
{
    bool used = true;
    int r = registry_digest_used(registry, digest, &used, err);

    if (r == 0 && !used)
        objects_remove(objects_fd, digest);
    return r;
}

int storage_check_quota(struct registry *registry, const char *tenant, uint64_t bytes,
                        struct err *err)
{
    struct registry_tenant row;
    uint64_t limit, left;
    int r = registry_tenant_get(registry, tenant, &row, err);

    if (r < 0)
        return r;
    limit = row.limits.storage_bytes;
    left = row.stored_bytes < limit ? limit - row.stored_bytes : 0;
    if (limit > 0 && bytes > left)
        r = err_set(err, EDQUOT,
                    "storage_bytes: %llu of %llu bytes are in use, %llu more do not fit",
                    (unsigned long long)row.stored_bytes, (unsigned long long)limit,
                    (unsigned long long)bytes);
    registry_tenant_finish(&row);
    return r;
}

int storage_sweep(struct registry *registry, int objects_fd, pthread_mutex_t *store_lock,
                  unsigned *ret_n, struct err *err)
{
    DIR *dir = fd_opendir(objects_fd);
    struct dirent *entry;
    int r = 0;

    *ret_n = 0;
    if (!dir)
        return err_set_errno(err, errno, "cannot read the folder of objects");
    while (r == 0 && (entry = readdir(dir))) {
        bool used = true;

        if (!objects_is_digest(entry->d_name))
            continue;
        /* Under the lock no object is on its way between its file and its row. */
        (void)pthread_mutex_lock(store_lock);
        r = registry_digest_used(registry, entry->d_name, &used, err);
        if (r == 0 && !used)
            objects_remove(objects_fd, entry->d_name);
        (void)pthread_mutex_unlock(store_lock);
        if (used)
            continue;
        (*ret_n)++;
        log_info("store", "removed object=%.12s reason=\"nothing names it\"", entry->d_name);
    }
    (void)closedir(dir);
    return r;
}
