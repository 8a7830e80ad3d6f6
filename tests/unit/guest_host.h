/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host for guest-init/server over a socket pair: a whole execution, without the machine (no
 * mounts, cgroup or user).
 */
#ifndef SKILLVM_TESTS_UNIT_GUEST_HOST_H
#define SKILLVM_TESTS_UNIT_GUEST_HOST_H

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "guest-init/frame.h"
#include "guest-init/server.h"
#include "guest-init/tar_read.h"
#include "guest-init/tar_write.h"
#include "tests/unit/guest_tree.h"

#define PYTHON "/usr/bin/python3.11"

struct host {
    struct tree root;        /* the guest's file system */
    struct tree skill;       /* what is sent as the skill */
    struct tree got;         /* unpacked artifacts */
    struct tree session;     /* what is sent as the session, */
    struct tree got_session; /* and what comes back */
    bool has_session;
    bool has_packages;       /* the skill's tree is sent as them first */
    bool holds_packages;     /* of them only the end is sent */
    unsigned session_frames; /* that are not empty */
    int conn;
    pid_t guest;
    struct frame_reader reader;
    struct frame_writer writer;
    struct buf fields; /* RUN */
    struct buf out;
    struct buf err;
    struct buf output;
    char fail[1025];
    uint32_t code, signal, flags;
    unsigned started, done;
};

static inline void guest_main(const struct tree *root, int conn)
{
    struct sandbox_config config = {.root = root->path,
                                    .python = PYTHON,
                                    .bash = "/bin/bash",
                                    .node = "/nonexistent",
                                    .zygote_dirs = {getenv("SKILLVM_TEST_ZYGOTE")}};
    struct zygote zygotes[RUN_LANGS] = {[0 ... RUN_LANGS - 1] = ZYGOTE_NONE};
    struct sandbox sandbox;
    struct server server = {.sandbox = &sandbox, .zygotes = zygotes};
    struct err err = {0};
    enum server_end end;
    sigset_t chld;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &chld, NULL);
    server.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (sandbox_open(&sandbox, &config, &err) < 0)
        _exit(3);
    if (config.zygote_dirs[RUN_LANG_PYTHON] && access(PYTHON, X_OK) == 0 &&
        zygote_start(&sandbox, RUN_LANG_PYTHON, 60000, &zygotes[RUN_LANG_PYTHON], &err) < 0)
        _exit(4);
    end = server_serve(&server, conn, &err);
    zygote_stop(&zygotes[RUN_LANG_PYTHON]);
    sandbox_close(&sandbox);
    _exit(end == SERVER_SPENT ? 0 : 2);
}

static inline void next_frame(struct host *h, struct frame *frame)
{
    struct err err = {0};

    if (frame_reader_wait(&h->reader, h->conn, frame, &err) != 1)
        fail_msg("no frame: %s", err.message);
}

static inline int setup(void **state)
{
    struct host *h = calloc(1, sizeof(*h));
    struct frame ready;
    int pair[2];

    assert_non_null(h);
    tree_make(&h->root);
    tree_make(&h->skill);
    tree_make(&h->got);
    tree_make(&h->session);
    tree_make(&h->got_session);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    h->guest = fork();
    if (h->guest == 0) {
        fd_close(&pair[0]);
        guest_main(&h->root, pair[1]);
    }
    fd_close(&pair[1]);
    h->conn = pair[0];
    frame_reader_init(&h->reader);
    frame_writer_init(&h->writer, h->conn);
    h->fields = buf_init(1u << 20);
    h->out = buf_init(8u << 20);
    h->err = buf_init(8u << 20);
    h->output = buf_init(8u << 20);
    next_frame(h, &ready);
    assert_int_equal(ready.type, PROTO_READY);
    assert_int_equal(ready.len, 4);
    assert_int_equal(ready.data[0], PROTO_VERSION);
    *state = h;
    return 0;
}

static inline int teardown(void **state)
{
    struct host *h = *state;
    int status;

    fd_close(&h->conn);
    assert_int_equal(waitpid(h->guest, &status, 0), h->guest);
    assert_true(WIFEXITED(status));
    frame_reader_finish(&h->reader);
    frame_writer_finish(&h->writer);
    buf_finish(&h->fields);
    buf_finish(&h->out);
    buf_finish(&h->err);
    buf_finish(&h->output);
    tree_remove(&h->root);
    tree_remove(&h->skill);
    tree_remove(&h->got);
    tree_remove(&h->session);
    tree_remove(&h->got_session);
    free(h);
    return 0;
}

static inline void send_frame(struct host *h, uint8_t type, const void *data, size_t len)
{
    assert_int_equal(frame_writer_send(&h->writer, type, data, len), 0);
    assert_int_equal(frame_writer_flush(&h->writer), 0);
}

static inline void field(struct host *h, uint16_t tag, const void *value, size_t len)
{
    uint8_t header[8];
    struct bytes_writer w = bytes_writer_init(header, sizeof(header));

    bytes_put_u16(&w, tag);
    bytes_put_u16(&w, 0);
    bytes_put_u32(&w, (uint32_t)len);
    assert_int_equal(buf_append(&h->fields, header, sizeof(header)), 0);
    assert_int_equal(buf_append(&h->fields, value, len), 0);
}

static inline void field_text(struct host *h, uint16_t tag, const char *text)
{
    field(h, tag, text, strlen(text));
}

static inline void field_u64(struct host *h, uint16_t tag, uint64_t value)
{
    uint8_t bytes[8];
    struct bytes_writer w = bytes_writer_init(bytes, sizeof(bytes));

    bytes_put_u64(&w, value);
    field(h, tag, bytes, sizeof(bytes));
}

static inline int sink_to_skill(void *context, const void *data, size_t len)
{
    send_frame(context, PROTO_SKILL, data, len);
    return 0;
}

static inline int sink_to_packages(void *context, const void *data, size_t len)
{
    send_frame(context, PROTO_PACKAGES, data, len);
    return 0;
}

static inline int sink_to_session(void *context, const void *data, size_t len)
{
    send_frame(context, PROTO_SESSION_IN, data, len);
    return 0;
}

static inline void send_session(struct host *h)
{
    static const struct tar_limits limits = {
        .files_max = 100, .bytes_max = 1u << 20, .folders = true};
    struct tar_list list = {0};

    assert_int_equal(tar_list_scan(h->session.fd, &limits, &list), 0);
    assert_int_equal(tar_list_stream(&list, sink_to_session, h), 0);
    send_frame(h, PROTO_SESSION_IN, NULL, 0);
    tar_list_finish(&list);
}

static inline void send_packages(struct host *h, struct tar_list *list)
{
    assert_int_equal(tar_list_stream(list, sink_to_packages, h), 0);
    send_frame(h, PROTO_PACKAGES, NULL, 0);
}

/* Has it hold the skill's tree as packages. */
static inline void send_held(struct host *h)
{
    static const struct tar_limits limits = {.files_max = 100, .bytes_max = 1u << 20};
    struct tar_list list = {0};
    struct frame f;

    assert_int_equal(tar_list_scan(h->skill.fd, &limits, &list), 0);
    send_frame(h, PROTO_HOLD, NULL, 0);
    send_packages(h, &list);
    tar_list_finish(&list);
    next_frame(h, &f);
    assert_int_equal(f.type, PROTO_WARMED);
}

/* Sends WAKE, RUN of the fields, the skill's tree and the input; the skill then runs. */
static inline void send_all(struct host *h, const char *input)
{
    static const struct tar_limits limits = {.files_max = 100, .bytes_max = 1u << 20};
    static const uint8_t wake[PROTO_WAKE_SIZE];
    struct tar_list list = {0};

    assert_int_equal(tar_list_scan(h->skill.fd, &limits, &list), 0);
    send_frame(h, PROTO_WAKE, wake, sizeof(wake));
    assert_int_equal(frame_writer_send(&h->writer, PROTO_RUN, h->fields.data, h->fields.len),
                     0);
    if (h->has_packages && !h->holds_packages)
        send_packages(h, &list);
    else if (h->has_packages)
        send_frame(h, PROTO_PACKAGES, NULL, 0);
    assert_int_equal(tar_list_stream(&list, sink_to_skill, h), 0);
    send_frame(h, PROTO_SKILL, NULL, 0);
    send_frame(h, PROTO_INPUT, input, strlen(input));
    send_frame(h, PROTO_INPUT, NULL, 0);
    send_frame(h, PROTO_FILES_IN, NULL, 0);
    if (h->has_session)
        send_session(h);
    tar_list_finish(&list);
}

static inline void take_exit(struct host *h, const struct frame *frame)
{
    struct bytes_reader r = bytes_reader_init(frame->data, frame->len);

    assert_int_equal(frame->len, PROTO_EXIT_SIZE);
    h->code = bytes_get_u32(&r);
    h->signal = bytes_get_u32(&r);
    h->flags = bytes_get_u32(&r);
}

/* Receives until DONE or FAIL. */
static inline void receive_all(struct host *h)
{
    struct tar_read tar, session;

    tar_read_init(&tar, h->got.fd, 16u << 20, 20000);
    tar_read_init(&session, h->got_session.fd, 16u << 20, 20000);
    while (!h->done && !h->fail[0]) {
        struct frame f;

        next_frame(h, &f);
        if (f.type == PROTO_STARTED)
            h->started++;
        else if (f.type == PROTO_STDOUT)
            assert_int_equal(buf_append(&h->out, f.data, f.len), 0);
        else if (f.type == PROTO_STDERR)
            assert_int_equal(buf_append(&h->err, f.data, f.len), 0);
        else if (f.type == PROTO_EXIT)
            take_exit(h, &f);
        else if (f.type == PROTO_OUTPUT)
            assert_int_equal(buf_append(&h->output, f.data, f.len), 0);
        else if (f.type == PROTO_FILES)
            assert_int_equal(tar_read_feed(&tar, f.data, f.len, NULL), 0);
        else if (f.type == PROTO_SESSION && h->has_session) {
            h->session_frames += f.len > 0;
            assert_int_equal(tar_read_feed(&session, f.data, f.len, NULL), 0);
        } else if (f.type == PROTO_DONE)
            h->done++;
        else if (f.type == PROTO_FAIL)
            memcpy(h->fail, f.data, f.len);
        else
            fail_msg("frame 0x%02x", f.type);
    }
    assert_int_equal(tar_read_end(&tar, NULL), 0);
    assert_int_equal(tar_read_end(&session, NULL), 0);
    tar_read_finish(&tar);
    tar_read_finish(&session);
}

static inline void run_bash(struct host *h, const char *script)
{
    tree_write(&h->skill, "main.sh", script);
    field_text(h, PROTO_F_LANG, "bash");
    field_text(h, PROTO_F_ENTRY, "main.sh");
    send_all(h, "{\"n\": 1}");
    receive_all(h);
}

#endif
