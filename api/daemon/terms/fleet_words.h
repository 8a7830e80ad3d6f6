/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a fleet, as settings and as other nodes write them: names of nodes, addresses of
 * servers, labels. Text alone; nothing here connects.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_FLEET_WORDS_H
#define SKILLVM_API_DAEMON_TERMS_FLEET_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define FLEET_NODE_SIZE   65u /* of a node's name, with its NUL */
#define FLEET_SERVERS_MAX 8u
#define FLEET_SERVER_SIZE 256u /* of one server's URL, with its NUL */
#define FLEET_LABELS_MAX  16u
#define FLEET_LABEL_SIZE  65u /* of a key and of a value, with the NUL */

/* Letters, digits, '-' and '_' of ASCII, 1 to 64 of them: a key of a bucket may have these. */
bool fleet_node_valid(const char *name);

/*
 * Takes the next word off *text, which spaces part. False where none is left; a word that does
 * not fit is "".
 */
bool fleet_take_word(const char **text, char *ret_word, size_t size);

/* "nats://host:4222 tls://other:4222", FLEET_SERVERS_MAX at most; "" for none. 0 or -EINVAL. */
int fleet_servers_check(const char *text);
/* The part of a server's URL that may be shown: without user and password. */
void fleet_server_show(const char *server, char ret[FLEET_SERVER_SIZE]);

/* A label's key (letters, digits, '-', '_', '.') and value (the same, or ""). */
bool fleet_label_valid(const char *key, const char *value);
/* "key=value other=value", no key twice, FLEET_LABELS_MAX at most; "" for none. 0 or -EINVAL.
 */
int fleet_labels_check(const char *text);
/* Parts "key=value" at its first '='. False where it is no label. */
bool fleet_label_part(const char *word, char ret_key[FLEET_LABEL_SIZE],
                      char ret_value[FLEET_LABEL_SIZE]);

#endif
