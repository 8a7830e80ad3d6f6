/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init/server, driven by a host over a socket pair: whole executions, so that order,
 * streams, deadline, cancel and collection are tested natively.
 */
#include "guest-init/server.h"

#include "tests/unit/guest_host.h"

static void test_bash(void **state)
{
    struct host *h = *state;

    field_text(h, PROTO_F_ARG, "a b");
    field_text(h, PROTO_F_ENV, "COLOUR=blue");
    field_text(h, PROTO_F_SKILL_NAME, "trial");
    run_bash(h, "echo \"$1 $COLOUR $SKILL_NAME $SANDBOX_INPUT $(cat)\"; echo problem >&2\n"
                "echo '[1]' > $SANDBOX_OUTPUT; echo kept > ${SANDBOX_FILES_DIR}kept.txt\n"
                "echo beside > ${SANDBOX_FILES_DIR}../beside.txt; exit 7");
    assert_string_equal(buf_cstr(&h->out), "a b blue trial {\"n\": 1} {\"n\": 1}\n");
    assert_string_equal(buf_cstr(&h->err), "problem\n");
    assert_string_equal(buf_cstr(&h->output), "[1]\n");
    assert_int_equal(h->code, 7);
    assert_int_equal(h->signal, 0);
    assert_int_equal(h->flags, 0);
    assert_int_equal(h->started, 1);
    assert_string_equal(tree_read(&h->got, "kept.txt"), "kept\n");
    assert_string_equal(tree_read(&h->got, "beside.txt"), "beside\n");
}

/* Sends a script and receives what it does; fields of its own are set before. */
static void run_python(struct host *h, const char *source, const char *input)
{
    tree_write(&h->skill, "main.py", source);
    field_text(h, PROTO_F_LANG, "python");
    field_text(h, PROTO_F_ENTRY, "main.py");
    send_all(h, input);
    receive_all(h);
}

static void test_packages_have_a_place_of_their_own(void **state)
{
    struct host *h = *state;
    const uint8_t yes = 1;

    tree_write(&h->skill, "one.py", "text\n");
    field(h, PROTO_F_PACKAGES, &yes, 1);
    h->has_packages = true;
    run_bash(h, "cd \"$(dirname \"$0\")/..\"; cat packages/one.py; ls packages");
    assert_string_equal(buf_cstr(&h->out), "text\nmain.sh\none.py\n");
}

static void test_packages_that_are_held_are_not_sent_again(void **state)
{
    struct host *h = *state;
    const uint8_t yes = 1;

    tree_write(&h->skill, "one.py", "text\n");
    send_held(h);
    field(h, PROTO_F_PACKAGES, &yes, 1);
    h->has_packages = h->holds_packages = true;
    run_bash(h, "cd \"$(dirname \"$0\")/..\"; cat packages/one.py; ls packages/*.py");
    assert_string_equal(buf_cstr(&h->out), "text\npackages/one.py\n");
}

/* As pip leaves them: what somebody brought has no say in it, and cannot break it. */
static void test_packages_that_are_held_are_compiled(void **state)
{
    struct host *h = *state;
    const uint8_t yes = 1;

    if (access(PYTHON, X_OK) < 0 || !getenv("SKILLVM_TEST_ZYGOTE"))
        skip();
    tree_write(&h->skill, "one.py", "raise SystemExit('run')\n");
    tree_write(&h->skill, "broken.py", "def (\n");
    tree_write(&h->skill, "sitecustomize.py", "raise SystemExit('run')\n");
    send_held(h);
    field(h, PROTO_F_PACKAGES, &yes, 1);
    h->has_packages = h->holds_packages = true;
    run_bash(h, "cd \"$(dirname \"$0\")/../packages\"; ls; cd __pycache__; ls -d *");
    assert_string_equal(buf_cstr(&h->out),
                        "__pycache__\nbroken.py\none.py\nsitecustomize.py\n"
                        "one.cpython-311.pyc\nsitecustomize.cpython-311.pyc\n");
}

/* A module of that name may be one of the packages. */
static void test_nothing_is_imported_beside_packages(void **state)
{
    struct host *h = *state;

    tree_write(&h->skill, "decimal.py", "raise SystemExit\n");
    send_held(h);
    send_frame(h, PROTO_WARM, "decimal", 7);
    receive_all(h);
    assert_non_null(strstr(h->fail, "frame 0x07 where WAKE was due"));
}

/* What RUN did not say is no packages. */
static void test_packages_come_only_when_they_are_announced(void **state)
{
    struct host *h = *state;

    h->has_packages = true;
    run_bash(h, "exit 0");
    assert_non_null(strstr(h->fail, "frame 0x18 where 0x03 was due"));
}

/* What is on a disk is not sent as well. */
static void test_a_skill_comes_in_one_way(void **state)
{
    struct host *h = *state;
    const uint8_t yes = 1;

    field(h, PROTO_F_SKILL_DISK, &yes, 1);
    run_bash(h, "exit 0");
    assert_non_null(strstr(h->fail, "on the disk came as a stream too"));
}

/* A disk takes a machine, which this test has none of. */
static void test_a_disk_that_is_not_there_is_an_error(void **state)
{
    static const uint8_t wake[PROTO_WAKE_SIZE];
    struct host *h = *state;
    const uint8_t yes = 1;

    field_text(h, PROTO_F_LANG, "bash");
    field_text(h, PROTO_F_ENTRY, "main.sh");
    field(h, PROTO_F_SKILL_DISK, &yes, 1);
    send_frame(h, PROTO_WAKE, wake, sizeof(wake));
    send_frame(h, PROTO_RUN, h->fields.data, h->fields.len);
    send_frame(h, PROTO_SKILL, NULL, 0);
    receive_all(h);
    assert_non_null(strstr(h->fail, "no disks without a machine"));
}

static void test_python_by_zygote(void **state)
{
    struct host *h = *state;

    if (access(PYTHON, X_OK) < 0 || !getenv("SKILLVM_TEST_ZYGOTE"))
        skip();
    field_text(h, PROTO_F_ARG, "x");
    field_text(h, PROTO_F_INSTRUCTIONS, "body");
    run_python(
        h,
        "import json, os, sys\n"
        "data = json.load(sys.stdin)\n"
        "print(sys.argv[1:], os.environ['SKILL_INSTRUCTIONS'], 'dataclasses' in sys.modules)\n"
        "json.dump(data, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n"
        "raise SystemExit(3)\n",
        "{\"n\": 1}");
    assert_string_equal(buf_cstr(&h->err), "");
    assert_string_equal(buf_cstr(&h->out), "['x'] body True\n");
    assert_int_equal(h->flags, PROTO_EXIT_WARM);
    assert_string_equal(buf_cstr(&h->output), "{\"n\": 1}");
    assert_int_equal(h->code, 3);
}

/* A variable that shapes the interpreter's start is honoured by a plain start. */
static void test_python_plain(void **state)
{
    struct host *h = *state;

    if (access(PYTHON, X_OK) < 0)
        skip();
    field_text(h, PROTO_F_ENV, "LC_ALL=C.UTF-8");
    run_python(h, "import sys\nprint('dataclasses' in sys.modules)\n", "{}");
    assert_string_equal(buf_cstr(&h->out), "False\n");
    assert_int_equal(h->flags, 0);
}

static void run_until_timeout(struct host *h, uint64_t timeout_ms)
{
    field_u64(h, PROTO_F_TIMEOUT_MS, timeout_ms);
    run_bash(h, "echo part > $SANDBOX_FILES_DIR/part; echo before; sleep 100 & sleep 100");
    assert_int_equal(h->signal, SIGKILL);
    assert_int_equal(h->flags, PROTO_EXIT_TIMED_OUT);
}

/* After it has begun, for which a busy machine may take longer than the shortest of these. */
static void test_timeout_keeps_partial_output(void **state)
{
    struct host *h = *state;

    run_until_timeout(h, 2000);
    for (uint64_t ms = 10000; h->out.len == 0 && ms <= 60000; ms += 50000) {
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
        h = *state;
        run_until_timeout(h, ms);
    }
    assert_string_equal(buf_cstr(&h->out), "before\n");
    assert_string_equal(tree_read(&h->got, "part"), "part\n");
}

static void test_cancel(void **state)
{
    struct host *h = *state;
    struct frame f;

    tree_write(&h->skill, "main.sh", "echo ready; sleep 100");
    field_text(h, PROTO_F_LANG, "bash");
    field_text(h, PROTO_F_ENTRY, "main.sh");
    send_all(h, "{}");
    do
        next_frame(h, &f);
    while (f.type != PROTO_STDOUT);
    send_frame(h, PROTO_CANCEL, NULL, 0);
    receive_all(h);
    assert_int_equal(h->flags, PROTO_EXIT_CANCELLED);
    assert_int_equal(h->signal, SIGKILL);
}

static void test_cancel_before_the_start(void **state)
{
    static const uint8_t wake[PROTO_WAKE_SIZE];
    struct host *h = *state;

    field_text(h, PROTO_F_LANG, "bash");
    field_text(h, PROTO_F_ENTRY, "main.sh");
    send_frame(h, PROTO_WAKE, wake, sizeof(wake));
    send_frame(h, PROTO_RUN, h->fields.data, h->fields.len);
    send_frame(h, PROTO_CANCEL, NULL, 0);
    receive_all(h);
    assert_int_equal(h->flags, PROTO_EXIT_CANCELLED);
    assert_int_equal(h->started, 0);
    assert_int_equal(h->done, 1);
}

/* Output over the limit is dropped, the skill is not held up, children keep no pipe open. */
static void test_log_limit_and_children(void **state)
{
    struct host *h = *state;

    field_u64(h, PROTO_F_LOG_BYTES, 100);
    run_bash(h, "(sleep 100) & head -c 1000000 /dev/zero | tr '\\0' x; echo end >&2");
    assert_int_equal(h->code, 0);
    assert_int_equal(h->out.len + h->err.len, 100);
    assert_int_equal(h->flags, PROTO_EXIT_LOGS_TRUNCATED);
}

static void test_hostile_output(void **state)
{
    struct host *h = *state;

    field_u64(h, PROTO_F_OUTPUT_BYTES, 10);
    run_bash(h,
             "cd $SANDBOX_FILES_DIR/..; ln -s /etc/passwd link; rmdir files; ln -s /etc files\n"
             "mkfifo pipe; head -c 11 /dev/zero > output.json; echo ok > fine");
    assert_int_equal(h->flags, PROTO_EXIT_OUTPUT_TOO_LARGE);
    assert_int_equal(h->output.len, 0);
    assert_string_equal(tree_read(&h->got, "fine"), "ok\n");
    assert_string_equal(tree_read(&h->got, "passwd"), "-");
    assert_string_equal(tree_read(&h->got, "link"), "-");
}

static void test_output_is_a_link(void **state)
{
    struct host *h = *state;

    run_bash(h, "ln -s /etc/hostname $SANDBOX_OUTPUT");
    assert_int_equal(h->output.len, 0);
    assert_int_equal(h->flags, 0);
}

static void test_no_interpreter(void **state)
{
    struct host *h = *state;

    field_text(h, PROTO_F_LANG, "node");
    field_text(h, PROTO_F_ENTRY, "main.js");
    send_all(h, "{}");
    receive_all(h);
    assert_non_null(strstr(h->fail, "no interpreter"));
}

static void test_wrong_first_frame(void **state)
{
    struct host *h = *state;

    send_frame(h, PROTO_RUN, NULL, 0);
    receive_all(h);
    assert_non_null(strstr(h->fail, "WAKE was due"));
}

static void test_bad_skill_stream(void **state)
{
    static const uint8_t wake[PROTO_WAKE_SIZE];
    struct host *h = *state;

    field_text(h, PROTO_F_LANG, "bash");
    field_text(h, PROTO_F_ENTRY, "main.sh");
    send_frame(h, PROTO_WAKE, wake, sizeof(wake));
    send_frame(h, PROTO_RUN, h->fields.data, h->fields.len);
    send_frame(h, PROTO_SKILL, "not a tar", 9);
    send_frame(h, PROTO_SKILL, NULL, 0);
    receive_all(h);
    assert_non_null(strstr(h->fail, "tar"));
}

/* Asks for modules and waits for the answer; whatever comes instead is left in h->fail. */
static void warm(struct host *h, const char *names)
{
    struct frame f;

    if (access(PYTHON, X_OK) < 0 || !getenv("SKILLVM_TEST_ZYGOTE"))
        skip();
    send_frame(h, PROTO_WARM, names, strlen(names));
    next_frame(h, &f);
    if (f.type == PROTO_FAIL)
        memcpy(h->fail, f.data, f.len);
    else
        assert_int_equal(f.type, PROTO_WARMED);
    assert_int_equal(h->fail[0] != 0, f.len > 0);
}

static void run_warm_python(struct host *h)
{
    run_python(h,
               "import sys\n"
               "print([m in sys.modules for m in ('decimal', 'xml.etree.ElementTree', 'csv',"
               " 'sqlite3')])\n",
               "{}");
    assert_string_equal(buf_cstr(&h->err), "");
}

static void test_warm(void **state)
{
    struct host *h = *state;

    warm(h, "decimal+xml.etree.ElementTree");
    assert_string_equal(h->fail, "");
    run_warm_python(h);
    assert_string_equal(buf_cstr(&h->out), "[True, True, True, False]\n");
}

/* What a library reads from the environment when it is loaded asks for a plain start then. */
static void test_warm_libraries(void **state)
{
    struct host *h = *state;

    warm(h, "sqlite3");
    field_text(h, PROTO_F_ENV, "TMPDIR=/tmp");
    run_warm_python(h);
    assert_string_equal(buf_cstr(&h->out), "[False, False, False, False]\n");
}

static void test_warm_numbers(void **state)
{
    struct host *h = *state;

    warm(h, "sqlite3");
    field_text(h, PROTO_F_ENV, "OPENBLAS_NUM_THREADS=1");
    run_warm_python(h);
    assert_string_equal(buf_cstr(&h->out), "[False, False, False, False]\n");
}

static void test_variable_of_a_library(void **state)
{
    struct host *h = *state;

    if (access(PYTHON, X_OK) < 0 || !getenv("SKILLVM_TEST_ZYGOTE"))
        skip();
    field_text(h, PROTO_F_ENV, "TMPDIR=/tmp");
    run_warm_python(h);
    assert_string_equal(buf_cstr(&h->out), "[False, False, True, False]\n");
}

static void expect_cold(struct host *h, const char *names, const char *reason)
{
    warm(h, names);
    if (!strstr(h->fail, reason))
        fail_msg("\"%s\" does not say \"%s\"", h->fail, reason);
}

static void test_warm_what_is_not_there(void **state)
{
    expect_cold(*state, "decimal+no_such_module+csv", "ended before it was warm");
}

static void test_warm_nothing(void **state)
{
    expect_cold(*state, "", "no list of modules");
}

static void test_warm_no_names(void **state)
{
    expect_cold(*state, "decimal++csv", "no list of modules");
}

static void test_warm_too_much(void **state)
{
    char names[PROTO_WARM_MAX + 2];

    for (size_t i = 0; i < sizeof(names) - 1; i++)
        names[i] = i % 4 == 3 ? '+' : "csv"[i % 4];
    names[sizeof(names) - 1] = '\0';
    expect_cold(*state, names, "no list of modules");
}

static void test_warm_twice(void **state)
{
    struct host *h = *state;

    warm(h, "decimal");
    expect_cold(h, "csv", "WAKE was due");
}

/* The connection ends before WAKE, and so does the guest; teardown gets another child. */
static void end_before_wake(struct host *h)
{
    int status;

    fd_close(&h->conn);
    assert_int_equal(waitpid(h->guest, &status, 0), h->guest);
    assert_int_equal(WEXITSTATUS(status), 2);
    h->guest = fork();
    if (h->guest == 0)
        _exit(0);
}

/* The snapshot of a profile is made this way. */
static void test_close_after_warm(void **state)
{
    struct host *h = *state;

    warm(h, "decimal");
    end_before_wake(h);
}

/* A snapshot is made this way: the connection ends before WAKE and nothing has happened. */
static void test_close_before_wake(void **state)
{
    end_before_wake(*state);
}

#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(test_bash),
        SERVER_TEST(test_packages_have_a_place_of_their_own),
        SERVER_TEST(test_packages_that_are_held_are_not_sent_again),
        SERVER_TEST(test_packages_that_are_held_are_compiled),
        SERVER_TEST(test_nothing_is_imported_beside_packages),
        SERVER_TEST(test_packages_come_only_when_they_are_announced),
        SERVER_TEST(test_a_skill_comes_in_one_way),
        SERVER_TEST(test_a_disk_that_is_not_there_is_an_error),
        SERVER_TEST(test_python_by_zygote),
        SERVER_TEST(test_python_plain),
        SERVER_TEST(test_timeout_keeps_partial_output),
        SERVER_TEST(test_cancel),
        SERVER_TEST(test_cancel_before_the_start),
        SERVER_TEST(test_log_limit_and_children),
        SERVER_TEST(test_hostile_output),
        SERVER_TEST(test_output_is_a_link),
        SERVER_TEST(test_no_interpreter),
        SERVER_TEST(test_wrong_first_frame),
        SERVER_TEST(test_bad_skill_stream),
        SERVER_TEST(test_warm),
        SERVER_TEST(test_warm_libraries),
        SERVER_TEST(test_warm_numbers),
        SERVER_TEST(test_variable_of_a_library),
        SERVER_TEST(test_warm_what_is_not_there),
        SERVER_TEST(test_warm_nothing),
        SERVER_TEST(test_warm_no_names),
        SERVER_TEST(test_warm_too_much),
        SERVER_TEST(test_warm_twice),
        SERVER_TEST(test_close_after_warm),
        SERVER_TEST(test_close_before_wake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
