/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/staged.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void finish_entry(struct staged_entry *e)
{
    free(e->data);
    free(e->record);
    e->data = NULL;
    e->record = NULL;
}

void staged_finish(struct staged *staged)
{
    for (size_t i = 0; i < staged->n; i++)
        finish_entry(&staged->list[i]);
    free(staged->list);
    *staged = (struct staged){0};
}

int staged_add(struct staged *staged, const char *key, uint64_t revision, const char *data,
               size_t len, bool is_removed)
{
    struct staged_entry *list, *e;

    if (len > UINT32_MAX || staged->bytes + len + sizeof(*e) > STAGED_BYTES_MAX)
        return -E2BIG;
    list = array_room(staged->list, staged->n, sizeof(*list));
    if (!list)
        return -ENOMEM;
    staged->list = list;
    e = &staged->list[staged->n];
    *e = (struct staged_entry){
        .revision = revision, .is_removed = is_removed, .len = (uint32_t)len};
    (void)snprintf(e->key, sizeof(e->key), "%s", key);
    e->data = malloc(len + 1);
    if (!e->data)
        return -ENOMEM;
    if (len > 0)
        memcpy(e->data, data, len);
    staged->n++;
    staged->bytes += len + sizeof(*e);
    staged->is_sorted = false;
    return 0;
}

/* What was at a place in one text is there in its copy. */
static const char *moved(const char *at, const char *from, const char *to)
{
    return at ? to + (at - from) : NULL;
}

int staged_add_record(struct staged *staged, const struct record *record, uint64_t revision,
                      const char *data, size_t len)
{
    int r = staged_add(staged, record->id, revision, data, len, false);
    struct staged_entry *e;

    if (r < 0)
        return r;
    e = &staged->list[staged->n - 1];
    e->record = malloc(sizeof(*e->record));
    if (!e->record)
        return -ENOMEM;
    *e->record = *record;
    e->record->request = moved(record->request, data, e->data);
    e->record->result = moved(record->result, data, e->data);
    staged->bytes += sizeof(*e->record);
    return 0;
}

static int compare(const void *one, const void *other)
{
    const struct staged_entry *a = one, *b = other;
    int order = strcmp(a->key, b->key);

    if (order != 0)
        return order;
    return a->revision < b->revision ? -1 : a->revision > b->revision;
}

void staged_sort(struct staged *staged)
{
    size_t n = 0;

    if (staged->is_sorted)
        return;
    if (staged->n > 1)
        qsort(staged->list, staged->n, sizeof(*staged->list), compare);
    for (size_t i = 0; i < staged->n; i++) {
        if (i + 1 < staged->n && strcmp(staged->list[i].key, staged->list[i + 1].key) == 0)
            finish_entry(&staged->list[i]);
        else
            staged->list[n++] = staged->list[i];
    }
    staged->n = n;
    staged->is_sorted = true;
}

bool staged_has(const struct staged *staged, const char *key)
{
    size_t low = 0, high = staged->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(staged->list[middle].key, key);

        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

int staged_read(const struct staged *staged, size_t at, struct change *ret)
{
    const struct staged_entry *e = &staged->list[at];
    enum node_refusal unused;

    return change_entry_parse(e->key, e->data, e->len, e->is_removed, ret, &unused);
}
