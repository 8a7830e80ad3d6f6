/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/name_tree.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What stands between two slashes. */
struct part {
    const struct part *folder; /* that it is in; NULL: none */
    const char *text;          /* len bytes: kept ones are behind it */
    size_t len;
    bool is_folder;
};

struct name_tree name_tree_init(uint32_t folders_max, uint64_t bytes_max)
{
    return (struct name_tree){.folders = folders_max, .bytes = bytes_max};
}

static int compare(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    if (x->folder != y->folder)
        return (uintptr_t)x->folder < (uintptr_t)y->folder ? -1 : 1;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return memcmp(x->text, y->text, x->len);
}

/* Keeps a part that is not there. */
static int keep(struct name_tree *tree, const struct part *part, const struct part **ret)
{
    struct part *kept;
    char *text;

    if (part->len > tree->bytes || (part->is_folder && tree->folders == 0))
        return -ENOSPC;
    kept = malloc(sizeof(*kept) + part->len);
    if (!kept)
        return -ENOMEM;
    text = (char *)(kept + 1);
    memcpy(text, part->text, part->len);
    *kept = *part;
    kept->text = text;
    if (!tsearch(kept, &tree->root, compare)) {
        free(kept);
        return -ENOMEM;
    }
    tree->bytes -= part->len;
    tree->folders -= part->is_folder;
    *ret = kept;
    return 0;
}

static int add(struct name_tree *tree, const struct part *part, const struct part **ret)
{
    const struct part *const *found = tfind(part, &tree->root, compare);

    if (!found)
        return keep(tree, part, ret);
    *ret = *found;
    return part->is_folder && (*found)->is_folder ? 0 : -EEXIST;
}

int name_tree_add_file(struct name_tree *tree, const char *name)
{
    struct part part = {.is_folder = true};
    int r = 0;

    while (r == 0 && part.is_folder) {
        part.text = name;
        part.len = strcspn(name, "/");
        part.is_folder = name[part.len] == '/';
        r = add(tree, &part, &part.folder);
        name += part.len + 1;
    }
    return r;
}

void name_tree_finish(struct name_tree *tree)
{
    tdestroy(tree->root, free);
    tree->root = NULL;
}
