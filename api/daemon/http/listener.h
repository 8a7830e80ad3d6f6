/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets the daemon listens on: a unix socket, never open to more than its mode says, a stale
 * name of a dead daemon replaced, a living one's never touched; a TCP address; or a socket that
 * somebody else bound and gave us.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_LISTENER_H
#define SKILLVM_API_DAEMON_HTTP_LISTENER_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

struct listener {
    int fd; /* owned, not blocking; -1: none */
    bool is_unix;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct stat made; /* the name as we made it; st_ino 0: none */
};

/* The family of a stream socket that listens, unix or TCP; -EINVAL for any other descriptor. */
int listener_family(int fd);

/* The empty listener. */
struct listener listener_init(void);
/*
 * Each of these fills an empty listener, for listener_close whatever they return. This one
 * binds and listens. 0; -EADDRINUSE when somebody accepts there; -ENAMETOOLONG; -errno.
 */
int listener_open(struct listener *l, const char *path, mode_t mode, struct err *err);
/*
 * The same on "ADDRESS:PORT" or "[ADDRESS]:PORT", numbers only; "[::]:PORT" takes IPv4 as well.
 * -EINVAL for another form.
 */
int listener_open_tcp(struct listener *l, const char *address, struct err *err);
/*
 * Takes a descriptor that listens already (unix or TCP) over. Its name is never removed. 0;
 * -EINVAL for any other descriptor.
 */
int listener_adopt(struct listener *l, int fd, struct err *err);
/* Removes the name, unless another daemon has put its own there since, and closes. Safe on an
 * empty one. */
void listener_close(struct listener *listener);

#endif
