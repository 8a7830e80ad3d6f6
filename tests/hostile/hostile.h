/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the hostile guest share: frames that come, and frames that go and may be
 * wrong on purpose.
 */
#ifndef SKILLVM_TESTS_HOSTILE_HOSTILE_H
#define SKILLVM_TESTS_HOSTILE_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

#define HOSTILE_ARGS_MAX 96u
#define HOSTILE_ARG_SIZE 512u

/* Of an execution: what to do, and to what; "" where there is none. */
struct hostile_args {
    char all[HOSTILE_ARGS_MAX][HOSTILE_ARG_SIZE];
    size_t n;
};

struct hostile_received {
    uint8_t type;
    uint32_t len;
    const uint8_t *data; /* until the next one */
};

/* Does nothing any more. PID 1 must not end. */
_Noreturn void hostile_wait(void);
/* The host's next frame. 0, or -1 when it hung up. */
int hostile_receive(int conn, struct hostile_received *ret);
/* Sends bytes as they are; waits forever when the host is gone. */
void hostile_send(int conn, const void *data, size_t len);
/* A header with exactly these fields. */
void hostile_header(int conn, uint32_t len, uint8_t type, uint8_t reserved8,
                    uint16_t reserved16);
/* A well-formed frame. */
void hostile_frame(int conn, uint8_t type, const void *data, size_t len);
/* A text on the standard output. */
void hostile_say(int conn, const char *text);
/* EXIT with this code and signal. */
void hostile_exit(int conn, uint32_t code, uint32_t signal, uint32_t flags);

/* Sends FILES with the tar stream of this name. 0, or -1 when there is none. */
int hostile_files(int conn, const char *mode);

/* Asks the host for connections, as the first argument says. Returns if that was no breach. */
void hostile_connections(int conn, const struct hostile_args *args);

#endif
