/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the service manager how the daemon is doing, by the protocol of sd_notify(3): datagrams
 * to the socket that $NOTIFY_SOCKET names. Without a manager everything here does nothing.
 */
#ifndef SKILLVM_API_DAEMON_NOTIFY_H
#define SKILLVM_API_DAEMON_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* owned; -1: there is no manager */
    struct sockaddr_un address;
    socklen_t address_len;
    uint64_t watchdog_ms; /* it wants to hear of us that often; 0: it does not */
};

/* A number that a manager put in the environment; 0 where there is none. */
uint64_t notify_number(const char *name);
/* Reads the environment, and clears it so that no child takes it for its own. */
struct notify notify_open(void);
/* Sends lines such as "READY=1\nSTATUS=…". What cannot be sent is lost. */
void notify_send(const struct notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Safe on one without a manager. */
void notify_close(struct notify *notify);

#endif
