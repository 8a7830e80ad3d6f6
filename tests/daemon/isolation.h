/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every route of a daemon against strangers: another tenant's key with this tenant's ids, no
 * key, keys that were revoked, that nobody has, that are none. A new route needs a probe here.
 * Only for test programs of cmocka.
 */
#ifndef SKILLVM_TESTS_DAEMON_ISOLATION_H
#define SKILLVM_TESTS_DAEMON_ISOLATION_H

#include "tests/daemon/two_tenants.h"

/* What is the first tenant's he gets, and the second nothing of it. */
void isolation_of_tenants(const struct place *p);
/* Whatever is sent in place of a good key: 401, and the same whether a thing is there or not.
 */
void isolation_of_strangers(const struct place *p);
/* The ids of nothing in a text, which are as long, become the first tenant's. */
void rename_things(char *text, const struct things *to);

#endif
