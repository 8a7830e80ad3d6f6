/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay, and a guest that drives it. Peers and the DNS server are sockets of this process;
 * what is connected to at a public address comes here, too. Only for test programs of cmocka,
 * which wrap connect and socket.
 */
#ifndef SKILLVM_TESTS_UNIT_EGRESS_WORLD_H
#define SKILLVM_TESTS_UNIT_EGRESS_WORLD_H

#include "api/daemon/egress/egress.h"
#include "guest-init/proto.h"

#include <arpa/inet.h>
#include <stdbool.h>

/* What is behind public addresses: the listener, one that is silent, and one that refuses. */
#define ADDRESS_HERE    "93.184.216.34"
#define ADDRESS_SILENT  "93.184.216.35"
#define ADDRESS_REFUSES "93.184.216.36"
#define DNS_MAX         32u /* of each family, as far as they fit in a packet */

struct world {
    struct egress *egress;
    int listener;
    uint16_t port;
    int silent; /* a listener whose queue is full of silent_fds */
    int silent_fds[4];
    uint16_t silent_port;
    bool has_no_ipv6; /* this machine */
    int dns;
    char dns_address[32];
    char declared[256];
    struct egress_settings settings;
    struct egress_rules rules;
    uint8_t type; /* of the frame that came last */
    uint8_t payload[PROTO_CHUNK_MAX];
    size_t len;
};

extern struct world w;
extern unsigned dns_asked;
/* Where the code under test wanted to go last, with which socket, and how often it did. */
extern char went_to[INET6_ADDRSTRLEN];
extern int went_fd;
extern unsigned went;
/* The families of all of it, "46" for an IPv4 and an IPv6 address. */
extern char went_families[64];

/* For each test: an egress with the rules and settings that w has. */
int setup(void **state);
int teardown(void **state);
/* With other settings or rules, which w has. */
void open_anew(void);
/* What the DNS server answers from now on: n addresses. */
void resolve_to(unsigned n, const char *a, const char *b);
/* One more, of either family. */
void resolve_also(const char *address);
/* From now on ADDRESS_SILENT has room for who comes again. */
void end_silence(void);
/* Frames of the guest's. The result of egress_take. */
int say(uint8_t type, const void *payload, size_t len);
int say_numbers(uint8_t type, unsigned a, unsigned b, unsigned c, size_t len);
int say_data(unsigned key, const void *data, size_t len);
/* The next frame to the guest, in w, if there is one now; or one of this type, waiting. */
bool take_now(void);
void take(uint8_t type);
/* Asks for a name. The answer's enum proto_net_answer. */
int ask(const char *name);
/* What was recorded. */
const struct egress_record *row(size_t at);
/* Opens a connection to the first name under a number; with the peer's end of it. */
int open_key(unsigned key);
int connect_key(unsigned key);
/* What a peer reads next; 0 at the end. */
size_t read_some(int fd, void *data, size_t max);

#endif
