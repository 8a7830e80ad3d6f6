/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes ask and say of an execution, as it is written and as it is read from a stranger.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/cluster/live_ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ID             "exec_0123456789abcdef0123456789abcdef"
#define ASK            "{\"schema\":1,\"tenant\":\"default\",\"id\":\"" ID "\","
#define STRANGE_ID     "{\"schema\":1,\"tenant\":\"default\",\"id\":\"exec_1\","
#define STRANGE_TENANT "{\"schema\":1,\"tenant\":\"../x\",\"id\":\"" ID "\","
#define NEWER          "{\"schema\":2,\"tenant\":\"default\",\"id\":\"" ID "\","
#define HEAD           "{\"schema\":1,\"state\":\"runs\",\"image\":\"\",\"image_reason\":\"\"}\n"

static void what_is_written_is_read(void **state)
{
    struct live_ask ask = {.tenant = "default",
                           .id = ID,
                           .log_at = LIMIT_LOG_BYTES,
                           .wait_ms = LIVE_WAIT_MAX_MS,
                           .is_begun = true};
    struct live_answer answer = {.state = LIVE_WAITS, .image = "data"}, back;
    _cleanup_buf_ struct buf text = {0}, out = buf_init(LIVE_ANSWER_MAX);
    struct live_piece piece;
    struct live_ask again;
    size_t at = 0;

    (void)state;
    assert_int_equal(live_ask_write(&ask, &text), 0);
    assert_int_equal(live_ask_parse(buf_cstr(&text), text.len, &again), 0);
    assert_string_equal(again.tenant, ask.tenant);
    assert_string_equal(again.id, ask.id);
    assert_true(again.log_at == ask.log_at && again.wait_ms == ask.wait_ms && again.is_begun);
    assert_false(again.is_of_row);
    ask.is_of_row = true;
    buf_finish(&text);
    assert_int_equal(live_ask_write(&ask, &text), 0);
    assert_int_equal(live_ask_parse(buf_cstr(&text), text.len, &again), 0);
    assert_true(again.is_of_row);
    snprintf(answer.image_reason, sizeof(answer.image_reason), "has \"numpy\" \xc3\xa9");
    assert_int_equal(live_answer_write(&answer, &out), 0);
    assert_int_equal(live_piece_write(false, "a\0\n", 3, &out), 0);
    assert_int_equal(live_piece_write(true, "\xff", 1, &out), 0);
    assert_int_equal(live_answer_parse((const char *)out.data, out.len, &back), 0);
    assert_int_equal(back.state, LIVE_WAITS);
    assert_string_equal(back.image, "data");
    assert_string_equal(back.image_reason, answer.image_reason);
    assert_int_equal(back.log_len, 4);
    assert_true(live_next_piece(&back, &at, &piece));
    assert_true(!piece.is_stderr && piece.len == 3 && memcmp(piece.data, "a\0\n", 3) == 0);
    assert_true(live_next_piece(&back, &at, &piece));
    assert_true(piece.is_stderr && piece.len == 1 && piece.data[0] == 0xff);
    assert_false(live_next_piece(&back, &at, &piece));
}

static void what_a_later_version_adds_is_left_alone(void **state)
{
    static const char ask[] =
        ASK "\"later\":{\"of\":[1,null]},\"log_at\":7,\"wait_ms\":0,\"begun\":true}";
    static const char answer[] = "{\"schema\":1,\"later\":[{}],\"state\":\"runs\","
                                 "\"image\":\"\",\"image_reason\":\"\"}\n";
    struct live_answer said;
    struct live_ask asked;

    (void)state;
    assert_int_equal(live_ask_parse(ask, strlen(ask), &asked), 0);
    assert_int_equal(asked.log_at, 7);
    assert_int_equal(live_answer_parse(answer, strlen(answer), &said), 0);
    assert_int_equal(said.state, LIVE_RUNS);
}

static void pieces_fit_to_the_byte(void **state)
{
    static const uint8_t zeros[LIVE_LOG_MAX];
    _cleanup_buf_ struct buf out = buf_init(2 * LIVE_ANSWER_MAX);
    struct live_answer answer = {.state = LIVE_RUNS}, back;
    const size_t most = LIVE_LOG_MAX - sizeof(uint32_t);

    (void)state;
    assert_true(live_piece_fits(0, most));
    assert_false(live_piece_fits(0, most + 1));
    assert_false(live_piece_fits(LIVE_LOG_MAX - 4, 1));
    assert_false(live_piece_fits(LIVE_LOG_MAX + 1, 1));
    assert_int_equal(live_answer_write(&answer, &out), 0);
    assert_int_equal(live_piece_write(false, zeros, most, &out), 0);
    assert_int_equal(live_answer_parse((const char *)out.data, out.len, &back), 0);
    assert_int_equal(back.log_len, most);
    buf_clear(&out);
    assert_int_equal(live_answer_write(&answer, &out), 0);
    assert_int_equal(live_piece_write(false, zeros, most + 1, &out), 0);
    assert_int_equal(live_answer_parse((const char *)out.data, out.len, &back), -EINVAL);
}

static void nonsense_is_refused(void **state)
{
    static const char *const asks[] = {
        "",
        "{}",
        ASK "\"log_at\":0,\"wait_ms\":0}",
        ASK "\"log_at\":0,\"wait_ms\":1001,\"begun\":true}",
        ASK "\"log_at\":1048577,\"wait_ms\":0,\"begun\":true}",
        ASK "\"log_at\":-1,\"wait_ms\":0,\"begun\":true}",
        ASK "\"log_at\":0,\"wait_ms\":0,\"begun\":true,\"row\":1}",
        NEWER "\"log_at\":0,\"wait_ms\":0,\"begun\":true}",
        STRANGE_TENANT "\"log_at\":0,\"wait_ms\":0,\"begun\":true}",
        STRANGE_ID "\"log_at\":0,\"wait_ms\":0,\"begun\":true}",
    };
    static const struct {
        const char *text;
        size_t len;
    } answers[] = {
        {"", 0},
        {"{}\n", 3},
        {HEAD, sizeof(HEAD) - 2},            /* no end of the line */
        {HEAD "\1\0\0\0", sizeof(HEAD) + 3}, /* a piece that is not there */
        {HEAD "\0\0\0\0", sizeof(HEAD) + 3}, /* an empty one */
        {HEAD "\1\0\0", sizeof(HEAD) + 2},
        {HEAD "\1\0\0\0ab", sizeof(HEAD) + 5},
        {HEAD "\xff\xff\xff\xff"
              "ab",
         sizeof(HEAD) + 5},
    };
    struct live_answer answer = {.state = LIVE_RUNS};
    struct live_ask ask = {.log_at = 7};

    (void)state;
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
        assert_int_equal(live_ask_parse(asks[i], strlen(asks[i]), &ask), -EINVAL);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        assert_int_equal(live_answer_parse(answers[i].text, answers[i].len, &answer), -EINVAL);
    assert_int_equal(ask.log_at, 7);
    assert_int_equal(answer.state, LIVE_RUNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_a_later_version_adds_is_left_alone),
        cmocka_unit_test(pieces_fit_to_the_byte),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
