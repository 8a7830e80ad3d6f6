/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session in guest-init/server: it is unpacked before the skill runs, and what is there
 * afterwards comes back, unless the skill was ended or it is too much.
 */
#include "guest-init/server.h"

#include "tests/unit/guest_host.h"

static void field_session(struct host *h, uint32_t files, uint64_t bytes)
{
    uint8_t raw[4];
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u32(&w, files);
    field(h, PROTO_F_SESSION_FILES, raw, sizeof(raw));
    field_u64(h, PROTO_F_SESSION_BYTES, bytes);
    h->has_session = true;
}

/* It is found as it was left, changed, and comes back whole, empty folders too. */
static void test_session(void **state)
{
    struct host *h = *state;
    struct stat st;

    field_session(h, 100, 1u << 20);
    tree_write(&h->session, "log", "one\n");
    tree_write(&h->session, "gone", "x");
    assert_int_equal(mkdirat(h->session.fd, "empty", 0755), 0);
    tree_write(&h->session, "empty/tool", "#!/bin/sh\necho ran\n");
    assert_int_equal(fchmodat(h->session.fd, "empty/tool", 0755, 0), 0);
    run_bash(h, "cd $SANDBOX_SESSION_DIR; echo two >> log; rm gone; empty/tool; rm empty/tool\n"
                "mkdir -p deep/er; ln -s log link; ln log deep/hard; exit 3");
    assert_string_equal(buf_cstr(&h->err), "");
    assert_string_equal(buf_cstr(&h->out), "ran\n");
    assert_int_equal(h->code, 3);
    assert_int_equal(h->flags, 0);
    assert_string_equal(tree_read(&h->got_session, "log"), "one\ntwo\n");
    assert_string_equal(tree_read(&h->got_session, "deep/hard"), "one\ntwo\n");
    assert_int_equal(fstatat(h->got_session.fd, "deep/er", &st, 0), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(fstatat(h->got_session.fd, "empty", &st, 0), 0);
    assert_int_equal(faccessat(h->got_session.fd, "gone", F_OK, 0), -1);
    assert_int_equal(faccessat(h->got_session.fd, "link", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

/* Without one nothing of it is there. */
static void test_no_session(void **state)
{
    struct host *h = *state;

    run_bash(h, "echo ${SANDBOX_SESSION_DIR-none}");
    assert_string_equal(buf_cstr(&h->out), "none\n");
    assert_int_equal(faccessat(h->root.fd, "sandbox/session", F_OK, 0), -1);
}

static void expect_no_session_of(struct host *h, const char *script, uint32_t flags)
{
    run_bash(h, script);
    assert_int_equal(h->flags, flags);
    assert_int_equal(h->session_frames, 0);
    assert_int_equal(h->done, 1);
}

static void test_session_with_too_many_files(void **state)
{
    field_session(*state, 2, 1u << 20);
    expect_no_session_of(*state, "cd $SANDBOX_SESSION_DIR; touch a b; mkdir c",
                         PROTO_EXIT_SESSION_TOO_LARGE);
}

static void test_session_with_too_many_bytes(void **state)
{
    field_session(*state, 10, 1000);
    expect_no_session_of(*state, "head -c 1001 /dev/zero > $SANDBOX_SESSION_DIR/a",
                         PROTO_EXIT_SESSION_TOO_LARGE);
}

static void test_session_of_what_is_ended(void **state)
{
    field_u64(*state, PROTO_F_TIMEOUT_MS, 500);
    field_session(*state, 10, 1000);
    expect_no_session_of(*state, "echo half > $SANDBOX_SESSION_DIR/a; sleep 100",
                         PROTO_EXIT_TIMED_OUT);
}

#define SERVER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(test_session),
        SERVER_TEST(test_no_session),
        SERVER_TEST(test_session_with_too_many_files),
        SERVER_TEST(test_session_with_too_many_bytes),
        SERVER_TEST(test_session_of_what_is_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
