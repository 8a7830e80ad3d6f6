/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nodes say to each other without a stream. What must hold: what is taken is written and
 * read again as the same, and what is known of two that say it is gone with them.
 */
#include "api/daemon/cluster/live_ask.h"
#include "api/daemon/cluster/loads.h"
#include "api/daemon/cluster/node_wish.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_wish(const char *text, size_t len)
{
    enum node_wish wish, again;
    struct buf written;

    if (node_wish_parse(text, len, &wish) < 0)
        return;
    check(wish < NODE_WISHES && node_wish_write(wish, &written) == 0 &&
          node_wish_parse(buf_cstr(&written), written.len, &again) == 0 && again == wish);
    buf_finish(&written);
}

static void check_drain(const char *text, size_t len)
{
    struct node_drain drain, again;
    struct buf written;

    if (node_drain_parse(text, len, &drain) < 0)
        return;
    /* What was written with fewer characters than we write it with may not fit. */
    if (node_drain_write(&drain, &written) < 0)
        return;
    check(node_drain_parse(buf_cstr(&written), written.len, &again) == 0 &&
          again.is_draining == drain.is_draining && again.running == drain.running &&
          again.waiting == drain.waiting && strcmp(again.refused, drain.refused) == 0);
    buf_finish(&written);
}

static void check_ask(const char *text, size_t len)
{
    struct live_ask ask, again;
    struct buf written;

    if (live_ask_parse(text, len, &ask) < 0)
        return;
    check(ask.log_at <= LIMIT_LOG_BYTES && ask.wait_ms <= LIVE_WAIT_MAX_MS);
    check(live_ask_write(&ask, &written) == 0 &&
          live_ask_parse(buf_cstr(&written), written.len, &again) == 0 &&
          strcmp(again.tenant, ask.tenant) == 0 && strcmp(again.id, ask.id) == 0 &&
          again.log_at == ask.log_at && again.wait_ms == ask.wait_ms &&
          again.is_begun == ask.is_begun && again.is_of_row == ask.is_of_row);
    buf_finish(&written);
}

static void check_answer(const char *text, size_t len)
{
    struct live_answer answer, again;
    struct buf written = buf_init(2 * LIVE_ANSWER_MAX);
    struct live_piece piece;
    size_t at = 0, log_len = 0;

    if (live_answer_parse(text, len, &answer) < 0)
        return;
    check(answer.pieces_len <= LIVE_LOG_MAX && answer.pieces_len <= len);
    check(live_answer_write(&answer, &written) == 0);
    while (live_next_piece(&answer, &at, &piece)) {
        check(piece.len > 0 && piece.data >= answer.pieces &&
              piece.data + piece.len <= answer.pieces + answer.pieces_len);
        log_len += piece.len;
        check(live_piece_write(piece.is_stderr, piece.data, piece.len, &written) == 0);
    }
    check(at == answer.pieces_len && log_len == answer.log_len);
    check(live_answer_parse((const char *)written.data, written.len, &again) == 0 &&
          again.state == answer.state && strcmp(again.image, answer.image) == 0 &&
          strcmp(again.image_reason, answer.image_reason) == 0 &&
          again.pieces_len == answer.pieces_len && again.log_len == log_len);
    buf_finish(&written);
}

static bool none(void *ctx, const char *node, const char *instance)
{
    (void)ctx;
    (void)node;
    (void)instance;
    return false;
}

static void check_loads(const struct load *load)
{
    static struct load_charges charges;
    static struct load other;
    struct loads loads = {0};

    other = *load;
    other.node[0] = other.node[0] == 'a' ? 'b' : 'a';
    check(loads_take(&loads, load, 1, &charges) == 0 && charges.n == 0);
    check(loads_take(&loads, &other, 2, &charges) == 0 && loads.n == 2);
    other.n_tenants /= 2;
    check(loads_take(&loads, &other, 3, &charges) == 0);
    for (size_t i = 0; i < load->n_tenants; i++) {
        check(loads_of(&loads, load->tenants[i].tenant).running >= load->tenants[i].running);
        (void)loads_waits_since(&loads, load->tenants[i].tenant);
    }
    loads_forget(&loads, 0, none, NULL);
    check(loads.n == 0 && loads.running == 0 && loads.waiting == 0);
    for (size_t i = 0; i < LOADS_BUCKETS; i++)
        check(LIST_EMPTY(&loads.sums[i]));
    loads_finish(&loads);
}

static void check_load(const char *text, size_t len)
{
    static struct load load, again;
    enum node_refusal why;
    struct buf written;

    if (load_entry_parse("n", text, len, &load, &why) < 0) {
        check(why < NODE_REFUSALS);
        return;
    }
    check(strcmp(load.node, "n") == 0 && load.n_tenants <= LOAD_TENANTS_MAX);
    check_loads(&load);
    /* What was written with fewer characters than we write it with may not fit. */
    if (load_entry_write(&load, &written) < 0)
        return;
    check(load_entry_parse("n", buf_cstr(&written), written.len, &again, &why) == 0 &&
          again.n_tenants == load.n_tenants && again.free == load.free &&
          strcmp(again.instance, load.instance) == 0);
    for (size_t i = 0; i < load.n_tenants; i++)
        check(strcmp(again.tenants[i].tenant, load.tenants[i].tenant) == 0 &&
              again.tenants[i].running == load.tenants[i].running &&
              again.tenants[i].taken == load.tenants[i].taken);
    buf_finish(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    check_wish(text, size);
    check_drain(text, size);
    check_load(text, size);
    check_ask(text, size);
    check_answer(text, size);
    free(text);
    return 0;
}
