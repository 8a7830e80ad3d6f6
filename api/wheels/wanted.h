/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a skill says that it requires: lines of a requirements.txt, and the dependencies of a
 * script's block (PEP 723). Pure text; files come from who asks.
 */
#ifndef SKILLVM_API_WHEELS_WANTED_H
#define SKILLVM_API_WHEELS_WANTED_H

#include "api/skill/requirement.h"

#define WANTED_MAX       512u /* requirements of a skill */
#define WANTED_FILES_MAX 16u  /* that are read, one naming the next */
#define WANTED_FILE_MAX  (256u * 1024)
#define WANTED_OPTIONS   1024u /* lines of options in all of them */

struct wanted {
    struct requirement requirement;
    char *by; /* owned: "requirements.txt line 3" */
};

struct wanted_list {
    struct wanted *items; /* owned */
    size_t n;
    struct skill_strings warnings; /* of lines that say what nothing here does */
    unsigned n_options;
};

/*
 * The text of a file of the skill, borrowed until the next call, at most WANTED_FILE_MAX bytes.
 * 0; -ENOENT; -E2BIG; -errno.
 */
struct wanted_source {
    int (*text)(void *ctx, const char *path, const char **ret_text, size_t *ret_len);
    void *ctx;
};

/*
 * Adds the requirements of a file, and of those that it names by -r. 0; -EINVAL with file, line
 * and what is wrong; -ENOMEM; what text returned.
 */
int wanted_read_file(struct wanted_list *list, const char *path,
                     const struct wanted_source *source, struct err *err);
/* Adds those of the block of PEP 723 in a script, if it has one. As above. */
int wanted_read_script(struct wanted_list *list, const char *path, const char *text, size_t len,
                       struct err *err);
/* Adds one. 0 or as above. */
int wanted_add(struct wanted_list *list, const char *by, const char *text, size_t len,
               struct err *err);
void wanted_finish(struct wanted_list *list);
#define _cleanup_wanted_ __attribute__((cleanup(wanted_finish)))

#endif
