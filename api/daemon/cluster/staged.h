/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that came and are not made yet, the last one of each thing, until they are all there:
 * only together do they agree, for what came between was not kept by the servers.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_STAGED_H
#define SKILLVM_API_DAEMON_CLUSTER_STAGED_H

#include "api/daemon/cluster/change_entry.h"
#include "api/daemon/terms/record.h"

/* More than a bucket of them may have. */
#define STAGED_BYTES_MAX (96ull * 1024 * 1024)
/* With so many it is time to make rows of them, where they need not agree. */
#define STAGED_BATCH_BYTES (16ull * 1024 * 1024)

struct staged_entry {
    char key[CHANGE_KEY_SIZE];
    uint64_t revision;
    bool is_removed;
    uint32_t len;
    char *data;            /* owned */
    struct record *record; /* owned: what was read of it, which borrows from data; or NULL */
};

struct staged {
    struct staged_entry *list;
    size_t n;
    uint64_t bytes;
    bool is_sorted;
};

void staged_finish(struct staged *staged);
/* 0, -ENOMEM, or -E2BIG where there is too much in all. */
int staged_add(struct staged *staged, const char *key, uint64_t revision, const char *data,
               size_t len, bool is_removed);
/* The same, with what was read of data. */
int staged_add_record(struct staged *staged, const struct record *record, uint64_t revision,
                      const char *data, size_t len);
/* All are there: by key, of each the last. */
void staged_sort(struct staged *staged);
/* Whether there is something of a key; once they are sorted. */
bool staged_has(const struct staged *staged, const char *key);
/* The change of a place. 0, or -EINVAL where what was added is none. */
int staged_read(const struct staged *staged, size_t at, struct change *ret);

#endif
