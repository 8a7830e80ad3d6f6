/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor says first on every connection to the relay inside the software host:
 * 52 bytes that name an operation and prove knowledge of the token. The relay answers one byte;
 * a wrong preamble gets no answer, only a closed connection. Who a connection is for is said
 * here and nowhere else: nothing of the bytes that follow is looked at.
 *
 *   0  4 bytes   "svr2"
 *   4  u8        operation (enum wire_op)
 *   5  3 bytes   zero
 *   8  u64       the sender's CLOCK_REALTIME in nanoseconds, little-endian
 *  16  u32       the user that a connection is for, little-endian
 *  20  32 bytes  token
 */
#ifndef SKILLVM_API_HOST_WIRE_H
#define SKILLVM_API_HOST_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WIRE_TOKEN_SIZE    32u
#define WIRE_PREAMBLE_SIZE 52u

enum wire_op {
    WIRE_OP_CONNECT = 1,  /* WIRE_OK, then the bytes of a connection to the daemon */
    WIRE_OP_CLOCK = 2,    /* set the clock, WIRE_OK, end */
    WIRE_OP_POWEROFF = 3, /* WIRE_OK, end, then power off cleanly */
};

#define WIRE_OK        'k'
#define WIRE_NO_DAEMON 'd' /* the daemon does not listen (yet) */

struct wire_request {
    enum wire_op op;
    uint64_t realtime_ns;
    /*
     * As whom the daemon inside shall see the peer (WIRE_OP_CONNECT): the peer's user outside,
     * and root for the supervisor's own, which is to the daemon inside what its own user is.
     */
    uid_t uid;
};

/* Writes WIRE_PREAMBLE_SIZE bytes. */
void wire_encode(uint8_t *out, const struct wire_request *request, const uint8_t *token);

/*
 * Checks a preamble against token in time that does not depend on where they differ. 0 with
 * *ret, -EACCES on a wrong token, -EPROTO on anything else wrong; *ret untouched then.
 */
int wire_decode(const uint8_t *preamble, const uint8_t *token, struct wire_request *ret);

/* Reads a token file: exactly WIRE_TOKEN_SIZE bytes. 0 or -errno (-EINVAL: another size). */
int wire_token_read(const char *path, uint8_t *ret_token);

#endif
