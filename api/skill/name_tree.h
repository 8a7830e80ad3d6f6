/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of files that a stranger gives, and of the folders in them, to know which are
 * taken. Each folder is kept once, whatever is in it; what is kept is bounded before it is. No
 * name takes more than a logarithm of time: it is a balanced tree, and nothing is hashed.
 */
#ifndef SKILLVM_API_SKILL_NAME_TREE_H
#define SKILLVM_API_SKILL_NAME_TREE_H

#include <stdint.h>

struct name_tree {
    void *root;       /* of tsearch(3) */
    uint32_t folders; /* how many more are kept */
    uint64_t bytes;   /* of parts of names: how many more are kept */
};

/* An empty tree that will keep so many folders, and bytes of parts of names between slashes. */
struct name_tree name_tree_init(uint32_t folders_max, uint64_t bytes_max);

/*
 * Takes a name that names_clean made. 0; -EEXIST where it is a folder's or another file's, or
 * needs a folder that is a file; -ENOSPC past a limit; -ENOMEM. Folders of a name that is not
 * taken may be kept, and count.
 */
int name_tree_add_file(struct name_tree *tree, const char *name);

/* Safe on a zeroed or finished tree. */
void name_tree_finish(struct name_tree *tree);

#endif
