/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the hostile guest share: sending frames that may be wrong on purpose.
 */
#ifndef SKILLVM_TESTS_HOSTILE_HOSTILE_H
#define SKILLVM_TESTS_HOSTILE_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

/* Sends bytes as they are; ends the program when the host is gone. */
void hostile_send(int conn, const void *data, size_t len);
/* A header with exactly these fields. */
void hostile_header(int conn, uint32_t len, uint8_t type, uint8_t reserved8,
                    uint16_t reserved16);
/* A well-formed frame. */
void hostile_frame(int conn, uint8_t type, const void *data, size_t len);
/* EXIT with this code and signal. */
void hostile_exit(int conn, uint32_t code, uint32_t signal, uint32_t flags);

/* Sends FILES with the tar stream of this name. 0, or -1 when there is none. */
int hostile_files(int conn, const char *mode);

#endif
