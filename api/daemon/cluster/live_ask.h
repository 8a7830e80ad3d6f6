/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node asks the one that has an execution, and what that says of it: a line of JSON
 * each, and behind that of the answer pieces of the log. Another node wrote it: a stranger's.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_LIVE_ASK_H
#define SKILLVM_API_DAEMON_CLUSTER_LIVE_ASK_H

#include "api/daemon/terms/record.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_SCHEMA        1u
#define LIVE_ASK_BYTES_MAX 1024u
#define LIVE_WAIT_MAX_MS   1000u         /* for news */
#define LIVE_LOG_MAX       (64u * 1024u) /* of pieces, with what is between them */
#define LIVE_ANSWER_MAX    (LIVE_LOG_MAX + 4096u)
#define LIVE_IMAGE_SIZE    33u
#define LIVE_REASON_SIZE   160u

struct live_ask {
    char tenant[TENANT_ID_SIZE];
    char id[RECORD_ID_SIZE];
    uint32_t log_at;  /* bytes of the log that are known; LIMIT_LOG_BYTES: no more are wanted */
    uint32_t wait_ms; /* for something that is not known; 0: how it is now is asked */
    bool is_begun;    /* that it runs is known */
    bool is_of_row; /* whether there is a row of it, of whatever node, is asked: nothing else */
};

enum live_state {
    LIVE_NONE,  /* it is not here, or has ended */
    LIVE_WAITS, /* accepted */
    LIVE_RUNS,
    LIVE_KNOWN, /* there is a row: only where that was asked */
};

struct live_answer {
    enum live_state state;
    char image[LIVE_IMAGE_SIZE]; /* "": none was chosen */
    char image_reason[LIVE_REASON_SIZE];
    const uint8_t *pieces; /* borrowed; not of one that is to be written */
    size_t pieces_len;
    size_t log_len; /* bytes of the log in them */
};

/* 0, or -ENOMEM. */
int live_ask_write(const struct live_ask *ask, struct buf *ret);
/* 0 or -EINVAL; *ret is untouched then. */
int live_ask_parse(const char *data, size_t len, struct live_ask *ret);

/* Appends the line, which has to come first. 0, -E2BIG or -ENOMEM. */
int live_answer_write(const struct live_answer *answer, struct buf *out);
/* Whether a piece of len bytes (1 or more) fits behind pieces of so many. */
bool live_piece_fits(size_t pieces_len, size_t len);
/* Appends a piece of one of the streams. 0, -E2BIG or -ENOMEM. */
int live_piece_write(bool is_stderr, const void *data, size_t len, struct buf *out);
/*
 * Reads the line and checks the pieces, which lie in data. 0 or -EINVAL; *ret is untouched
 * then.
 */
int live_answer_parse(const char *data, size_t len, struct live_answer *ret);

/* A piece of the log. */
struct live_piece {
    bool is_stderr;
    const uint8_t *data; /* borrowed */
    size_t len;
};
/* The piece at *at, which moves on; false after the last one. Of an answer that was parsed. */
bool live_next_piece(const struct live_answer *answer, size_t *at, struct live_piece *ret);

#endif
