/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's FILES stream (a tar written by a hostile guest) becomes a list of checked names
 * and a files.tar.gz that any client may extract: regular files only, relative names without
 * `..`, control bytes or repeats, owner 0, times bounded.
 * Push the stream as it comes; nothing of it is written but through the checks here, and no
 * name in it ever becomes a path on the host.
 */
#ifndef SKILLVM_API_SKILL_ARTIFACTS_H
#define SKILLVM_API_SKILL_ARTIFACTS_H

#include "api/skill/skill.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct artifacts_limits {
    uint32_t files;
    uint32_t folders;     /* that their names are in */
    uint64_t names_bytes; /* of the names of files and folders; a folder's counts once */
    uint64_t list_bytes; /* of the names in the list, folders included: others are not listed */
    uint64_t bytes;      /* of all files' content */
    uint64_t file_bytes; /* of one file's content */
    /*
     * A plain tar without times, of empty folders too, so that the same tree is the same bytes:
     * what a guest takes back. Else a tar.gz of files alone.
     */
    bool is_tree;
};

struct artifact {
    char *path; /* owned, relative, UTF-8, no control bytes */
    uint64_t size;
};

/* What there is so far. */
struct artifacts_kept {
    uint32_t files;        /* folders that are kept among them */
    uint64_t bytes;        /* of their content */
    struct artifact *list; /* the first n of them, as far as the limit of names in it goes */
    size_t n;
    bool truncated;                /* something was left out because of a limit */
    struct skill_strings warnings; /* sentences for a person, at most 20 */
};

struct artifacts;

/*
 * Starts a stream whose kept files go to out_fd (borrowed; a new empty file). One at
 * a time waits in spool_fd (a new empty file, read and write; taken over in any case) until it
 * is whole: no content is held in memory. NULL with err set when memory is short.
 */
struct artifacts *artifacts_create(int out_fd, int spool_fd,
                                   const struct artifacts_limits *limits, struct err *err);

/*
 * Takes the next bytes of the stream, any amount. 0; -EPROTO when the stream is no tar we
 * accept (what came before stays good; later pushes are ignored and give the same error);
 * -errno when out_fd cannot be written. A single entry that is refused (a link, a bad name,
 * over a limit) is left out with a warning and is no error.
 */
int artifacts_push(struct artifacts *a, const void *data, size_t len, struct err *err);

/*
 * Ends the stream and completes the tar.gz (also after a failed push: a file that was cut short
 * is left out). 0 or -errno. Call it once.
 */
int artifacts_end(struct artifacts *a, struct err *err);

/* Borrowed. */
const struct artifacts_kept *artifacts_kept(const struct artifacts *a);
/* NULL is fine. */
void artifacts_destroy(struct artifacts *a);

#endif
