/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 messages as the Model Context Protocol has them: what a client's JSON says, and
 * how answers and notifications are written. Ids and arguments stay text, so nothing is
 * rounded.
 */
#ifndef SKILLVM_API_MCP_MESSAGE_H
#define SKILLVM_API_MCP_MESSAGE_H

#include "api/json/json_text.h"
#include "base/buf.h"
#include "base/err.h"

#define MESSAGE_METHOD_MAX 64u  /* bytes; a longer one is an unknown one */
#define MESSAGE_ID_MAX     256u /* bytes as written; a longer one is refused */

enum message_kind { MESSAGE_REQUEST, MESSAGE_NOTIFICATION, MESSAGE_RESPONSE };

/* Error codes of JSON-RPC, and the protocol's own. */
enum message_error {
    MESSAGE_PARSE_ERROR = -32700,
    MESSAGE_INVALID_REQUEST = -32600,
    MESSAGE_METHOD_NOT_FOUND = -32601,
    MESSAGE_INVALID_PARAMS = -32602,
    MESSAGE_INTERNAL_ERROR = -32603,
    MESSAGE_RESOURCE_NOT_FOUND = -32002, /* before 2026-07-28 */
    MESSAGE_UNSUPPORTED_VERSION = -32022,
};

struct message {
    enum message_kind kind;
    struct json_slice id;     /* a string or an integer; empty where there is none */
    struct json_slice params; /* an object; empty where there is none */
    char method[MESSAGE_METHOD_MAX];
};

/*
 * Takes a value that json_text_check() found good apart. The slices point into it. 0, or
 * -EINVAL with err; then ret->id is set where it could be read, for the answer.
 */
int message_parse(struct json_slice value, struct message *ret, struct err *err);

/* True when both are the same id, whatever escapes their strings are written with. */
bool message_same_id(struct json_slice a, struct json_slice b);

/*
 * Append one message without a line end. id may be empty, which reads as null; result,
 * data (NULL: none) and params are JSON without line ends. 0, -E2BIG or -ENOMEM.
 */
int message_append_result(struct buf *out, struct json_slice id, const struct buf *result);
int message_append_error(struct buf *out, struct json_slice id, int code, const char *text,
                         const struct buf *data);
int message_append_notification(struct buf *out, const char *method, const struct buf *params);

#endif
