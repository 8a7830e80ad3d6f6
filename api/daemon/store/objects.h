/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content-addressed store: immutable files named by the SHA-256 of what they hold. A file
 * is written under a temporary name, fsynced and renamed, so an object that exists is whole.
 * Names come from digests only; no byte of a stranger's ever becomes a path.
 */
#ifndef SKILLVM_API_DAEMON_STORE_OBJECTS_H
#define SKILLVM_API_DAEMON_STORE_OBJECTS_H

#include "base/err.h"

#include <stdbool.h>

#define OBJECTS_NAME_SIZE 48u

/* A named file on its way to become an object or an artifact. */
struct objects_draft {
    int fd;     /* -1 when there is none; read and write */
    int tmp_fd; /* borrowed */
    char name[OBJECTS_NAME_SIZE];
};

/* True for 64 lower-case hexadecimal digits. */
bool objects_is_digest(const char *text);

/* A new empty file in the directory of temporary files. 0 or -errno. */
int objects_draft_open(int tmp_fd, struct objects_draft *ret, struct err *err);
/* Fsyncs the draft and moves it to dir_fd under a name. 0 or -errno; the draft is then spent.
 */
int objects_draft_publish(struct objects_draft *draft, int dir_fd, const char *name,
                          struct err *err);
/* Removes a draft that was not published. Safe on a spent one. */
void objects_draft_discard(struct objects_draft *draft);

/*
 * Publishes a draft as the object with this digest; one that exists already is kept, and then
 * *ret_new is false. 0 or -errno.
 */
int objects_put(int objects_fd, struct objects_draft *draft, const char *digest, bool *ret_new,
                struct err *err);
/*
 * The same for a file without a name (spool_open_nameless), which is fsynced. tmp_fd is where a
 * copy is made on file systems that give such a file no name. The descriptor stays the
 * caller's.
 */
int objects_put_fd(int objects_fd, int tmp_fd, int fd, const char *digest, bool *ret_new,
                   struct err *err);
/* Removes an object. Who has it open keeps it; one that is not there is no error. */
void objects_remove(int objects_fd, const char *digest);
/* Opens an object for reading. The descriptor (caller's), or -errno. */
int objects_open(int objects_fd, const char *digest, struct err *err);

#endif
