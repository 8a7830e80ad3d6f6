/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for QEMU in the tests of the supervisor: answers on the forwarded port as relay
 * and daemon in one, and misbehaves as the environment asks (FAKE_QEMU_MODE,
 * FAKE_QEMU_PORT_TAKEN).
 */
#ifndef SKILLVM_TESTS_UNIT_FAKE_QEMU_H
#define SKILLVM_TESTS_UNIT_FAKE_QEMU_H

/* What it says to any other request. */
#define FAKE_QEMU_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

/* Returns the exit status. */
int fake_qemu(char **argv);

#endif
