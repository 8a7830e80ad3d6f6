/* SPDX-License-Identifier: Apache-2.0 */
/* "ADDRESS:PORT" as a socket takes it: 127.0.0.1:8080 or [::1]:8080. No names. */
#ifndef SKILLVM_BASE_IP_ADDRESS_H
#define SKILLVM_BASE_IP_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

union ip_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* Fills *ret. Its size, or 0 for another form. */
socklen_t ip_address_parse(const char *text, union ip_address *ret);

#endif
