/* SPDX-License-Identifier: Apache-2.0 */
/* The uploaded files of the registry; what they hold are objects. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_FILES_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_FILES_H

#include "api/daemon/registry/registry.h"

/* "file_" and 32 hexadecimal digits. */
#define REGISTRY_FILE_ID_SIZE 38u

/* A file. Strings are owned. */
struct registry_file {
    char id[REGISTRY_FILE_ID_SIZE];
    char tenant[TENANT_ID_SIZE];
    char *name;
    char *content_type;
    char *digest;
    uint64_t bytes;
    uint64_t created_ns; /* realtime */
    uint64_t expires_ns;
};

void registry_file_finish(struct registry_file *file);
#define _cleanup_registry_file_ __attribute__((cleanup(registry_file_finish)))

/* Stores the row of a file; all but the tenant is read. Durable on return. 0;
 * -ENOENT when there is no such tenant any more; -EIO. */
int registry_file_create(struct registry *registry, const char *tenant,
                         const struct registry_file *file, struct err *err);
/* 0; -ENOENT also for another tenant's; -ENOMEM; -EIO. */
int registry_file_get(struct registry *registry, const char *tenant, const char *id,
                      struct registry_file *ret, struct err *err);
/*
 * Reads up to max files of a tenant that have not expired to rows, the newest first, without
 * the first offset of them. *ret_n are the caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_file_list(struct registry *registry, const char *tenant, uint64_t now_ns,
                       size_t offset, size_t max, struct registry_file *rows, size_t *ret_n,
                       struct err *err);
/* Durable on return. 0; -ENOENT also for another tenant's; -EIO. */
int registry_file_delete(struct registry *registry, const char *tenant, const char *id,
                         struct err *err);
/* How many files a tenant has. 0 or -EIO. */
int registry_file_count(struct registry *registry, const char *tenant, uint64_t *ret,
                        struct err *err);

#endif
