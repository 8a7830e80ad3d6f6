/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 to a daemon over its unix socket, by libcurl. Bounded reading; the daemon's errors
 * become messages for a person.
 */
#ifndef SKILLVM_API_CLI_CLIENT_H
#define SKILLVM_API_CLI_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client_call {
    const char *path;   /* "/v1/executions" */
    const char *accept; /* NULL: anything */
    /* A POST where json is not NULL, else a GET or what method says. */
    const char *method;
    const char *json;
    size_t json_len;
    /*
     * Not -1: multipart/form-data with json, where there is one, as part "request" and this
     * file as the part of this name, which is "skill_archive" where it is NULL.
     */
    int archive_fd;
    const char *archive_part;
    uint64_t timeout_ms; /* of the whole call; 0: none */
    /*
     * The body of a 2xx answer, in pieces. is_events tells server-sent events from other
     * bodies. A negative result ends the call with it.
     */
    int (*on_body)(void *ctx, bool is_events, const void *data, size_t len, struct err *err);
    /* Called about once a second and on every event of the transfer; true ends it (-EINTR). */
    bool (*should_stop)(void *ctx);
    void *ctx;
};

/*
 * Does the call. 0 for a 2xx answer; -ENOENT or -ECONNREFUSED when no daemon is there;
 * -EREMOTEIO for another HTTP status, with the daemon's message and its code in *ret_status
 * (may be NULL; 0 when there was no answer); -ENOTRECOVERABLE where GET /ready says that it
 * never will be; -ETIMEDOUT; -EINTR; -EIO; or what on_body
 * returned.
 */
int client_call(const char *socket_path, const struct client_call *call, long *ret_status,
                struct err *err);

/* GET into body, which bounds it. As client_call. */
int client_get(const char *socket_path, const char *path, uint64_t timeout_ms, struct buf *body,
               long *ret_status, struct err *err);
/* DELETE. As client_call. */
int client_delete(const char *socket_path, const char *path, uint64_t timeout_ms,
                  struct err *err);
/* GET into a file. As client_call. */
int client_download(const char *socket_path, const char *path, int fd, uint64_t max_bytes,
                    struct err *err);

/*
 * Connects and asks the kernel who listens. 0 with the process id; -ENOENT no socket;
 * -ECONNREFUSED a stale one; -errno.
 */
int client_find_daemon(const char *socket_path, pid_t *ret_pid);

#endif
