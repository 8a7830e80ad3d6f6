/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a nats-server with an operator wants of its callers: an operator, an account and a user,
 * each a key of its own, made for one test. The server's settings, and the user's credentials.
 */
#ifndef SKILLVM_TESTS_DAEMON_NATS_KEYS_H
#define SKILLVM_TESTS_DAEMON_NATS_KEYS_H

#include <stddef.h>

/*
 * Writes the settings (operator, resolver) to ret_settings, and a file of credentials as
 * cluster.credentials takes one to ret_credentials.
 */
void nats_keys_make(char *ret_settings, size_t settings_size, char *ret_credentials,
                    size_t credentials_size);

#endif
