/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon with two tenants, the first of which has one of everything, and with keys of every
 * sort; and requests to it over TCP. Only for test programs of cmocka.
 */
#ifndef SKILLVM_TESTS_DAEMON_TWO_TENANTS_H
#define SKILLVM_TESTS_DAEMON_TWO_TENANTS_H

#include "tests/daemon/daemon_harness.h"

#include <netinet/in.h>

#define JSON "application/json"
#define RAW  "application/octet-stream"
/* In what is the first tenant's, and nowhere in what anybody else may see. */
#define MARK "alpha"

/* What a tenant has, by the names that stand for it. */
struct things {
    char skill[64];
    char file[64];
    char ended[64];
    char live[64];
    char key[64]; /* the id of its key */
    char session[64];
};

/* Names as long as the first tenant's, of what nobody has. */
extern const struct things nothing;

struct place {
    struct harness h;
    struct sockaddr_in tcp;
    char first[80]; /* keys */
    char second[80];
    char revoked[80];
    char disabled[80];
    char operator[80];
    struct things things; /* the first tenant's */
    char *skill;          /* the archive of a skill that nobody has yet here; owned */
    size_t skill_len;
};

/* Starts the daemon; tenants "first", "second" and "third", which is disabled. */
void two_tenants_start(struct place *ret);
/* Makes all that in one that was started, and that listens at tcp. */
void two_tenants_make(struct place *p);
/* Another daemon that has the same: keys and things. Its skill is of this name. */
void two_tenants_copy(struct place *p, const struct place *from, const char *skill);
/* A port of this machine that nobody listens at. */
struct sockaddr_in two_tenants_port(void);
void two_tenants_finish(struct place *p);

/* Puts what a tenant has into a text with names in braces. */
void fill_in(const char *text, const struct things *t, char *ret, size_t size);
/* The Authorization header of a key. */
void bearer(const char *key, char ret[160]);
/* Sends a request over TCP with these headers; type is that of the body, NULL for none. */
struct answer ask(const struct place *p, const char *headers, const char *method,
                  const char *path, const char *type, const void *body, size_t len);
/* The same with a key, further headers, and JSON or nothing. */
struct answer ask_as(const struct place *p, const char *key, const char *more,
                     const char *method, const char *path, const char *json);
/* As the operator on the unix socket. */
struct answer ask_admin(const struct place *p, const char *method, const char *path,
                        const char *json);
/* Makes a key; ret_id may be NULL. */
void make_key(const struct place *p, const char *json, char ret_key[80], char ret_id[64]);
/* The text of a member of a JSON answer. */
void take(const struct answer *a, const char *key, char *ret, size_t size);

#endif
