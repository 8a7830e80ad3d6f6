/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unix socket the daemon listens on: never open to more than its mode says, a stale name of
 * a dead daemon replaced, a living one's never touched.
 */
#ifndef SKILLVM_API_DAEMON_LISTENER_H
#define SKILLVM_API_DAEMON_LISTENER_H

#include "base/err.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

struct listener {
    int fd; /* owned; -1: none */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct stat made; /* the name as we made it; st_ino 0: none */
};

/* The empty listener. */
struct listener listener_init(void);
/* Binds and listens. 0; -EADDRINUSE when somebody accepts there; -ENAMETOOLONG; -errno. */
int listener_open(struct listener *ret, const char *path, mode_t mode, struct err *err);
/* Removes the name, unless another daemon has put its own there since. */
void listener_unlink(struct listener *listener);
/* Removes the name and closes. Safe on an empty one. */
void listener_close(struct listener *listener);

#endif
