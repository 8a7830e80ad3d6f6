/* SPDX-License-Identifier: Apache-2.0 */
/* Names with an address that an operator gave them: "name=address" with spaces between. */
#ifndef SKILLVM_API_DAEMON_EGRESS_FIXED_NAMES_H
#define SKILLVM_API_DAEMON_EGRESS_FIXED_NAMES_H

#include "base/err.h"
#include "base/ip_address.h"

#include <stdbool.h>

/* 0, or -EINVAL with what is wrong. */
int fixed_names_check(const char *text, struct err *err);
/* The address that a checked text gives a clean name, without a port. False: none. */
bool fixed_names_find(const char *text, const char *name, union ip_address *ret);

#endif
