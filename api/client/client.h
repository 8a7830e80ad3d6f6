/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of libskillvm share. No thread and no state but the handle's: its texts never
 * change, and its idle connection is handed over, and what was seen noted, under a lock.
 */
#ifndef SKILLVM_API_CLIENT_CLIENT_H
#define SKILLVM_API_CLIENT_CLIENT_H

#include "api/client/skillvm.h"
#include "base/buf.h"

#include <pthread.h>
#include <stdbool.h>

#define CLIENT_ANSWER_MAX    (128u << 20) /* bytes of an answer or event that is kept */
#define CLIENT_PATH_MAX      16384u
#define CLIENT_SHORT_WAIT_MS 60000u
#define CLIENT_LONG_WAIT_MS  300000u /* of what sends or prepares a skill */

struct skillvm {
    char *socket_path;    /* owned; NULL: the URL says where */
    char *url;            /* owned, without a slash at its end */
    char *auth;           /* owned header line with the key, or NULL */
    char *tenant;         /* owned header line, or NULL */
    pthread_mutex_t lock; /* of what follows */
    uint64_t seen[2]; /* the most of each that answers of a fleet said: Skillvm-Seen; 0: none */
    void *idle;       /* a transfer of perform.c with a live connection, or NULL */
};

/* Fills the error (NULL is fine) and returns -code. */
int client_fail(struct skillvm_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* client_fail for what base/buf.h returned. */
int client_fail_buf(struct skillvm_error *error, int result);

/* Ends an idle transfer. NULL is fine. */
void perform_end_idle(void *idle);

/* Leaves the buffer's text to the caller and an empty buffer behind; NULL without memory. */
char *client_steal_text(struct buf *body);

/* Makes the request and gives its body, NUL-terminated; ret_body and ret_len may be NULL. */
int client_fetch(struct skillvm *client, const struct skillvm_request *request, char **ret_body,
                 size_t *ret_len, struct skillvm_error *error);

#endif
