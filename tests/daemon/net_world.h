/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts of their own on one network: each is a network namespace with a link to a bridge, which
 * is in a namespace of this process's. So a link can be cut, and whoever is behind it goes on.
 */
#ifndef SKILLVM_TESTS_DAEMON_NET_WORLD_H
#define SKILLVM_TESTS_DAEMON_NET_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NET_HOSTS_MAX 16u

struct net_host {
    pid_t pid;        /* that holds its namespace */
    int fd;           /* of that; -1: none */
    char address[16]; /* IPv4 */
};

struct net_world {
    int own; /* the namespace of this process; -1: nothing was made */
    struct net_host hosts[NET_HOSTS_MAX];
    size_t n;
};

/*
 * Moves this process, which has one thread, to a network of its own with so many hosts. False
 * where that is not permitted here: it stays where it is.
 */
bool net_begin(struct net_world *w, size_t n);
void net_end(struct net_world *w);
/* What the calling thread starts from now on is at a host, or at none again. */
void net_enter(const struct net_world *w, size_t host);
void net_leave(const struct net_world *w);
/* Nothing passes to and from a host, or does again. Connections stay. */
void net_cut(const struct net_world *w, size_t host);
void net_mend(const struct net_world *w, size_t host);

#endif
