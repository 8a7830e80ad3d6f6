/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that an execution asked for and may reach, each with the addresses that were
 * checked: these are what is connected to, so that a name that means something else a moment
 * later reaches nothing by it. A fixed number of names; what may not be reached takes no place.
 */
#ifndef SKILLVM_API_DAEMON_EGRESS_REACHABLE_H
#define SKILLVM_API_DAEMON_EGRESS_REACHABLE_H

#include "api/daemon/egress/egress.h"
#include "api/daemon/egress/resolver.h"
#include "guest-init/proto.h"

#define NAMES_NONE PROTO_NET_NAMES
/* All that a name has are checked, and so many of them connected to. */
#define NAME_ADDRESSES_MAX 8u

enum name_state { NAME_LOOKING, NAME_GOOD, NAME_BAD };

struct name {
    char text[HOST_NAME_SIZE];
    uint16_t ports[HOST_PORTS_MAX];
    size_t n_ports;
    enum name_state state;
    uint64_t since_ns; /* when it was looked up, or began to be */
    union ip_address addresses[NAME_ADDRESSES_MAX];
    size_t n_addresses;
    /* Where it is bad: */
    enum egress_refusal refusal;
    char refused[EGRESS_REFUSED_SIZE];
};

struct names {
    const struct egress_settings *settings; /* borrowed */
    struct egress_rules rules;
    struct lookup *lookup; /* NULL before there was anything to look up */
    int epoll_fd;          /* borrowed: where what is looked up shows */
    struct name all[PROTO_NET_NAMES];
    unsigned n;
};

struct names names_init(const struct egress_settings *settings,
                        const struct egress_rules *rules, int epoll_fd);
void names_finish(struct names *names);

/*
 * Looks what a name is, and begins to look it up where that is not known or not recent. Its
 * place; or NAMES_NONE with why it may not be reached.
 */
unsigned names_ask(struct names *names, const char *name, enum egress_refusal *ret_refusal,
                   char refused[EGRESS_REFUSED_SIZE]);
/* True for a port that this name may be reached at. */
bool names_has_port(const struct name *name, uint16_t port);
/* When names_work is due whatever comes; UINT64_MAX: never. */
uint64_t names_deadline_ns(const struct names *names);
/* After it, or when the lookup's descriptor was readable: states may have changed. */
void names_work(struct names *names);

#endif
