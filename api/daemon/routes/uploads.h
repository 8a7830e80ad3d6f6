/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploaded files: rows of a tenant's and the objects they name. An object is stored before its
 * row and removed after it, both under the store's lock, so that whoever finds a row finds its
 * object, and a daemon that dies in between leaves an object that the next sweep removes. In a
 * cluster both are its: the object is at the servers before there is a row, and a node reads
 * what it does not have.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_UPLOADS_H
#define SKILLVM_API_DAEMON_ROUTES_UPLOADS_H

#include "api/daemon/registry/registry_files.h"
#include "api/daemon/routes/daemon.h"

/* Receives what a request brings: its body, or the part "file". NULL: there is a reply. */
struct spool *uploads_receive(struct http_request *request, struct http_reply *reply);

/*
 * Stores what a spool that was hashed holds, of a request's body, for its caller. row has name
 * and content type; id, digest, bytes and times are filled in, digest is then row's. 0; -EDQUOT
 * over the tenant's storage; -ENOENT when the tenant was deleted; -EAGAIN as of changes_make;
 * -errno.
 */
int uploads_store(struct daemon *d, struct http_request *request, struct spool *upload,
                  struct registry_file *row, struct err *err);

/* Finds a file's row, which is to be finished; one that has expired is gone. 0, -ENOENT or
 * -EIO.
 */
int uploads_find(struct daemon *d, const char *tenant, const char *id,
                 struct registry_file *ret, struct err *err);
/*
 * The same, and opens its object. The descriptor is the caller's. As above, and as of
 * objects_get.
 */
int uploads_open(struct daemon *d, const char *tenant, const char *id,
                 struct registry_file *ret, int *ret_fd, struct err *err);

/*
 * What it means that the object of a file is not there: -ENOENT where its row went meanwhile,
 * else -EIO.
 */
int uploads_judge_missing(struct daemon *d, const char *tenant, const char *id,
                          struct err *err);

/* Forgets a file. Who reads it goes on. 0; -ENOENT; -EAGAIN as of changes_make; -EIO. */
int uploads_delete(struct daemon *d, const char *tenant, const char *id, struct err *err);

#endif
