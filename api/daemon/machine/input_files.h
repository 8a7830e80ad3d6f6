/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input files of an execution: links to objects, which stay when these go, and the names
 * the skill finds them by; and the tar stream that carries them to the guest. The stream is
 * made while it is read: nothing is copied, nothing but one block of it is ever in memory, and
 * one file is open at a time.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_INPUT_FILES_H
#define SKILLVM_API_DAEMON_MACHINE_INPUT_FILES_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_file {
    char *path; /* owned; relative and clean, as names_clean gives it */
    char *link; /* owned, and so is the link of this name; several may have the same */
    uint64_t bytes;
};

/* Zero-initialise. */
struct input_files {
    struct input_file *items;
    size_t n;
    int dir_fd; /* borrowed: the folder that the links are in */
};

/* Adds a file; both names are taken over, on failure too. 0 or -ENOMEM, also for a NULL. */
int input_files_add(struct input_files *files, char *path, char *link, uint64_t bytes);
/* 0, or -EINVAL with the two that cannot both be there: equal, or one in the other's place. */
int input_files_check(const struct input_files *files, struct err *err);
/* Removes the links. Safe on a zeroed or finished set. */
void input_files_finish(struct input_files *files);

/* Where a reader of the tar stream is. */
struct input_stream {
    const struct input_files *files; /* borrowed; NULL: an empty stream */
    size_t next;                     /* the file whose header comes next */
    int fd;                          /* owned: the current one, or -1 */
    struct buf head;                 /* of the current one */
    size_t head_at;
    uint64_t at;  /* of the current one's content, which items[next - 1] holds */
    size_t zeros; /* padding, or the end of the stream */
    bool ended;
};

struct input_stream input_stream_init(const struct input_files *files);
/* Gives the next bytes, at most size; *ret_len is 0 at the end only. 0 or -errno. */
int input_stream_read(struct input_stream *s, uint8_t *data, size_t size, size_t *ret_len,
                      struct err *err);
void input_stream_finish(struct input_stream *s);

#endif
