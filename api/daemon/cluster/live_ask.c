/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/live_ask.h"

#include "api/daemon/cluster/entry_values.h"
#include "api/json/json_write.h"
#include "base/bytes.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

#define LINE_MAX_BYTES 2048u
#define STDERR         0x80000000u /* in the word before a piece, beside its length */
#define WORD           sizeof(uint32_t)

static const char *const states[] = {
    [LIVE_NONE] = "none",
    [LIVE_WAITS] = "waits",
    [LIVE_RUNS] = "runs",
    [LIVE_KNOWN] = "known",
};
#define STATES (sizeof(states) / sizeof(states[0]))

int live_ask_write(const struct live_ask *ask, struct buf *ret)
{
    struct json_writer w = entry_begin(LINE_MAX_BYTES, LIVE_SCHEMA);

    json_write_string(&w, "tenant", ask->tenant);
    json_write_string(&w, "id", ask->id);
    json_write_number(&w, "log_at", ask->log_at);
    json_write_number(&w, "wait_ms", ask->wait_ms);
    json_write_bool(&w, "begun", ask->is_begun);
    if (ask->is_of_row)
        json_write_bool(&w, "row", true);
    return entry_end(&w, ret);
}

/* Nodes of an earlier version do not ask for it. */
static int take_of_row(struct json_slice object, bool *ret)
{
    struct json_slice value;

    return json_find(object, "row", &value) ? json_take_bool(value, ret) : 0;
}

int live_ask_parse(const char *data, size_t len, struct live_ask *ret)
{
    struct live_ask ask = {0};
    struct json_slice object;
    enum node_refusal unused;
    uint64_t log_at, wait_ms;

    if (entry_take_object(data, len, LIVE_ASK_BYTES_MAX, LIVE_SCHEMA, &object, &unused) < 0 ||
        entry_take_text(object, "tenant", ask.tenant, sizeof(ask.tenant)) < 0 ||
        !tenant_id_valid(ask.tenant) ||
        entry_take_text(object, "id", ask.id, sizeof(ask.id)) < 0 ||
        !ids_valid(ID_EXECUTION, ask.id) ||
        entry_take_number(object, "log_at", LIMIT_LOG_BYTES, &log_at) < 0 ||
        entry_take_number(object, "wait_ms", LIVE_WAIT_MAX_MS, &wait_ms) < 0 ||
        entry_take_bool(object, "begun", &ask.is_begun) < 0 ||
        take_of_row(object, &ask.is_of_row) < 0)
        return -EINVAL;
    ask.log_at = (uint32_t)log_at;
    ask.wait_ms = (uint32_t)wait_ms;
    *ret = ask;
    return 0;
}

int live_answer_write(const struct live_answer *answer, struct buf *out)
{
    struct json_writer w = entry_begin(LINE_MAX_BYTES, LIVE_SCHEMA);
    _cleanup_buf_ struct buf line = {0};
    int r;

    json_write_string(&w, "state", states[answer->state]);
    json_write_string(&w, "image", answer->image);
    json_write_string(&w, "image_reason", answer->image_reason);
    r = entry_end(&w, &line);
    return r < 0 ? r : buf_append(out, line.data, line.len);
}

bool live_piece_fits(size_t pieces_len, size_t len)
{
    return pieces_len <= LIVE_LOG_MAX && len + WORD <= LIVE_LOG_MAX - pieces_len;
}

int live_piece_write(bool is_stderr, const void *data, size_t len, struct buf *out)
{
    uint8_t word[WORD];
    struct bytes_writer w = bytes_writer_init(word, sizeof(word));

    bytes_put_u32(&w, (is_stderr ? STDERR : 0) | (uint32_t)len);
    (void)buf_append(out, word, sizeof(word));
    return buf_append(out, data, len);
}

bool live_next_piece(const struct live_answer *answer, size_t *at, struct live_piece *ret)
{
    struct bytes_reader r = bytes_reader_init(answer->pieces, answer->pieces_len);
    struct live_piece piece;
    uint32_t word;

    if (*at >= answer->pieces_len)
        return false;
    r.at = *at;
    word = bytes_get_u32(&r);
    piece.is_stderr = (word & STDERR) != 0;
    piece.len = word & ~STDERR;
    piece.data = bytes_take(&r, piece.len);
    if (!piece.data || piece.len == 0)
        return false;
    *at = r.at;
    *ret = piece;
    return true;
}

/* All that is behind the line are pieces. */
static int take_pieces(const char *data, size_t len, struct live_answer *ret)
{
    struct live_piece piece;
    size_t at = 0;

    ret->pieces = (const uint8_t *)data;
    ret->pieces_len = len;
    if (len > LIVE_LOG_MAX)
        return -EINVAL;
    while (live_next_piece(ret, &at, &piece))
        ret->log_len += piece.len;
    return at == len ? 0 : -EINVAL;
}

int live_answer_parse(const char *data, size_t len, struct live_answer *ret)
{
    const char *end =
        len > 0 ? memchr(data, '\n', len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES) : NULL;
    struct live_answer answer = {0};
    struct json_slice object;
    enum node_refusal unused;
    unsigned state;

    if (!end ||
        entry_take_object(data, (size_t)(end - data), LINE_MAX_BYTES, LIVE_SCHEMA, &object,
                          &unused) < 0 ||
        entry_take_one_of(object, "state", states, STATES, &state) < 0 ||
        entry_take_text(object, "image", answer.image, sizeof(answer.image)) < 0 ||
        !text_is_plain(answer.image) ||
        entry_take_text(object, "image_reason", answer.image_reason,
                        sizeof(answer.image_reason)) < 0 ||
        !text_is_plain(answer.image_reason) ||
        take_pieces(end + 1, len - (size_t)(end + 1 - data), &answer) < 0)
        return -EINVAL;
    answer.state = (enum live_state)state;
    *ret = answer;
    return 0;
}
