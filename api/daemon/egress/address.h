/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses of the internet a skill's connection may go to. What is asked here is the
 * very address that is connected to, never a name.
 */
#ifndef SKILLVM_API_DAEMON_EGRESS_ADDRESS_H
#define SKILLVM_API_DAEMON_EGRESS_ADDRESS_H

#include "base/ip_address.h"

#include <stdbool.h>
#include <stdint.h>

/* What an address is that nobody may reach ("a private network"); NULL: a public one. */
const char *egress_address_kind(const union ip_address *address);
/*
 * True for an address of this machine's own, which is one that a socket can be bound to, and
 * where that cannot be known.
 */
bool egress_address_is_own(const union ip_address *address);
/* What a socket wants to know of it. */
socklen_t egress_address_size(const union ip_address *address);
void egress_address_set_port(union ip_address *address, uint16_t port);

#endif
