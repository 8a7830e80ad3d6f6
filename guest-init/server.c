/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "guest-init/collect.h"
#include "guest-init/compile.h"
#include "guest-init/execute.h"
#include "guest-init/frame.h"
#include "guest-init/tar_read.h"
#include "guest-init/wake.h"

/* As for the start of a zygote: see ZYGOTE_TIMEOUT_MS of main.c. */
#define WARM_TIMEOUT_MS 120000
/* Input up to this size is also given as SANDBOX_INPUT. */
#define INPUT_VARIABLE_MAX (128u * 1024u)
_Static_assert(ERR_MESSAGE_MAX <= 1024, "FAIL holds at most 1024 bytes");
/* The host has checked archives against its own limits; these only keep a fault from running
 * on. */
#define TREE_BYTES_MAX   (1ull << 30)
#define TREE_ENTRIES_MAX 200000u

struct session {
    struct server *server;
    int conn;
    struct frame_reader reader;
    struct frame_writer writer;
    struct run run;
    struct buf input;
    bool input_clipped;
    bool cancelled; /* before the skill was started */
};

/* The next frame of the given type. 1, 0 when CANCEL came instead, or -errno with err set. */
static int expect(struct session *s, uint8_t type, struct frame *ret_frame, struct err *err)
{
    int r = frame_reader_wait(&s->reader, s->conn, ret_frame, err);

    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ECONNRESET, "the host closed the connection");
    if (ret_frame->type == PROTO_CANCEL && ret_frame->len == 0 && type != PROTO_RUN) {
        s->cancelled = true;
        return 0;
    }
    if (ret_frame->type != type)
        return err_set(err, EPROTO, "frame 0x%02x where 0x%02x was due", ret_frame->type, type);
    return 1;
}

/* Interpreters of other languages have no part in it: neither their memory nor their end. */
static int take_run(struct session *s, struct err *err)
{
    struct frame frame;
    int r = expect(s, PROTO_RUN, &frame, err);

    if (r < 0)
        return r;
    r = run_decode(frame.data, frame.len, &s->run, err);
    for (unsigned lang = 0; r == 0 && lang < RUN_LANGS; lang++)
        if (lang != s->run.lang)
            zygote_stop(&s->server->zygotes[lang]);
    return r;
}

static int take_tree(struct session *s, uint8_t type, int dir, struct err *err)
{
    struct tar_read tar;
    struct frame frame;
    int r;

    if (s->cancelled)
        return 0;
    tar_read_init(&tar, dir, TREE_BYTES_MAX, TREE_ENTRIES_MAX);
    while ((r = expect(s, type, &frame, err)) > 0 && frame.len > 0) {
        r = tar_read_feed(&tar, frame.data, frame.len, err);
        if (r < 0)
            break;
    }
    if (r > 0)
        r = tar_read_end(&tar, err);
    tar_read_finish(&tar);
    return r;
}

/* As a stream, or on the disk that is there when its end comes. */
static int take_skill(struct session *s, struct err *err)
{
    struct sandbox *sb = s->server->sandbox;
    struct frame frame;
    int r;

    if (!s->run.is_on_disk)
        return take_tree(s, PROTO_SKILL, sb->skill_dir, err);
    r = s->cancelled ? 0 : expect(s, PROTO_SKILL, &frame, err);
    if (r <= 0)
        return r;
    if (frame.len > 0)
        return err_set(err, EPROTO, "a skill that is on the disk came as a stream too");
    return sandbox_mount_skill(sb, err);
}

/* They are the skill's own copies. */
static int take_files(struct session *s, uint8_t type, int dir, struct err *err)
{
    struct sandbox *sb = s->server->sandbox;
    int r;

    sandbox_make_for_skill(sb, true);
    r = take_tree(s, type, dir, err);
    sandbox_make_for_skill(sb, false);
    return r;
}

/* What it finds of earlier runs, if this one has a session. */
static int take_session(struct session *s, struct err *err)
{
    struct sandbox *sb = s->server->sandbox;
    int r;

    if (s->run.session_bytes == 0)
        return 0;
    r = sandbox_add_session(sb, err);
    return r < 0 ? r : take_files(s, PROTO_SESSION_IN, sb->session_dir, err);
}

static int take_input(struct session *s, struct err *err)
{
    struct sandbox *sb = s->server->sandbox;
    struct frame frame;
    uint64_t at = 0;
    int r = 0;

    while (!s->cancelled && (r = expect(s, PROTO_INPUT, &frame, err)) > 0 && frame.len > 0) {
        r = fd_pwrite_full(sb->input_write, frame.data, frame.len, at);
        if (r < 0)
            return err_set_errno(err, -r, "cannot write the input");
        at += frame.len;
        if (memchr(frame.data, 0, frame.len) ||
            buf_append(&s->input, frame.data, frame.len) < 0)
            s->input_clipped = true;
    }
    fd_close(&sb->input_write);
    return r < 0 ? r : 0;
}

static int run_skill(struct session *s, struct execute_result *ret_result, struct err *err)
{
    struct execute x = {
        .sandbox = s->server->sandbox,
        .zygote = &s->server->zygotes[s->run.lang],
        .run = &s->run,
        .input = s->input_clipped ? NULL : buf_cstr(&s->input),
        .conn = s->conn,
        .signals = s->server->signals,
        .reader = &s->reader,
        .writer = &s->writer,
    };

    if (s->cancelled) {
        *ret_result = (struct execute_result){.signal = 9, .flags = PROTO_EXIT_CANCELLED};
        return 0;
    }
    return execute_run(&x, ret_result, err);
}

/* Looks at the session, unless the skill was ended: what it was about to do there is not done.
 */
static int open_session(struct session *s, const struct execute_result *result,
                        struct collect *collect)
{
    const uint32_t ended =
        PROTO_EXIT_TIMED_OUT | PROTO_EXIT_CANCELLED | PROTO_EXIT_OUT_OF_MEMORY;

    if (s->run.session_bytes == 0 || (result->flags & ended))
        return 0;
    return collect_open_session(s->server->sandbox->session_dir, &s->run, collect);
}

static int report(struct session *s, struct execute_result *result)
{
    uint8_t payload[PROTO_EXIT_SIZE];
    _cleanup_collect_ struct collect collect;
    int r = collect_open(s->server->sandbox->out_dir, &s->run, &collect);

    if (r < 0)
        return r;
    r = open_session(s, result, &collect);
    if (r < 0)
        return r;
    if (collect.session.truncated)
        result->flags |= PROTO_EXIT_SESSION_TOO_LARGE;
    if (collect.output_too_large)
        result->flags |= PROTO_EXIT_OUTPUT_TOO_LARGE;
    if (collect.files.truncated)
        result->flags |= PROTO_EXIT_FILES_TRUNCATED;
    execute_encode(result, payload);
    r = frame_writer_send(&s->writer, PROTO_EXIT, payload, sizeof(payload));
    if (r < 0)
        return r;
    r = collect_send(&collect, &s->writer);
    if (r == 0 && s->run.session_bytes > 0)
        r = collect_send_session(&collect, &s->writer);
    if (r < 0)
        return r;
    r = frame_writer_send(&s->writer, PROTO_DONE, NULL, 0);
    return r < 0 ? r : frame_writer_flush(&s->writer);
}

static int execute(struct session *s, struct err *err)
{
    struct sandbox *sb = s->server->sandbox;
    struct execute_result result;
    int r = take_run(s, err);

    if (r < 0)
        return r;
    if (s->run.has_packages)
        r = take_tree(s, PROTO_PACKAGES, sb->packages_dir, err);
    if (r < 0)
        return r;
    r = take_skill(s, err);
    if (r < 0)
        return r;
    r = take_input(s, err);
    if (r < 0)
        return r;
    r = take_files(s, PROTO_FILES_IN, sb->in_dir, err);
    if (r < 0)
        return r;
    r = take_session(s, err);
    if (r < 0)
        return r;
    r = sandbox_limit(sb, &s->run, err);
    if (r < 0)
        return r;
    r = run_skill(s, &result, err);
    if (r < 0)
        return r;
    r = report(s, &result);
    return r < 0 ? err_set_errno(err, -r, "cannot send the result") : 0;
}

static int say_ready(struct session *s)
{
    uint8_t version[4];
    struct bytes_writer w = bytes_writer_init(version, sizeof(version));
    int r;

    bytes_put_u32(&w, PROTO_VERSION);
    r = frame_writer_send(&s->writer, PROTO_READY, version, sizeof(version));
    return r < 0 ? r : frame_writer_flush(&s->writer);
}

static void say_fail(struct session *s, const struct err *err)
{
    size_t len = strlen(err->message);

    if (frame_writer_send(&s->writer, PROTO_FAIL, err->message, len) == 0)
        (void)frame_writer_flush(&s->writer);
}

/* The host kills the machine now; a host that only closes sees it end by itself. */
static void wait_for_close(int conn)
{
    char byte;
    ssize_t n;

    do
        n = recv(conn, &byte, 1, 0);
    while (n > 0 || (n < 0 && errno == EINTR));
}

static int take_warm(struct session *s, const struct frame *frame, struct err *err)
{
    const char *names = (const char *)frame->data;

    return zygote_warm(&s->server->zygotes[RUN_LANG_PYTHON], names, frame->len, WARM_TIMEOUT_MS,
                       err);
}

static int take_held(struct session *s, const struct frame *frame, struct err *err)
{
    int r = take_tree(s, PROTO_PACKAGES, s->server->sandbox->packages_dir, err);

    (void)frame;
    if (r == 0)
        compile_packages(s->server->sandbox);
    return r;
}

/* One step of making a snapshot, if the frame asks for it, and the next frame. As talk. */
static int prepare(struct session *s, enum proto_type type, struct frame *frame,
                   int step(struct session *s, const struct frame *frame, struct err *err),
                   struct err *err)
{
    int r;

    if (frame->type != type)
        return 0;
    r = step(s, frame, err);
    if (r < 0)
        return r;
    if (frame_writer_send(&s->writer, PROTO_WARMED, NULL, 0) < 0 ||
        frame_writer_flush(&s->writer) < 0 ||
        frame_reader_wait(&s->reader, s->conn, frame, NULL) <= 0)
        return 1;
    return 0;
}

/* Nothing is imported once there are packages: it might be of them. */
static int prepare_snapshot(struct session *s, struct frame *frame, struct err *err)
{
    int r = prepare(s, PROTO_WARM, frame, take_warm, err);

    return r != 0 ? r : prepare(s, PROTO_HOLD, frame, take_held, err);
}

/* From READY to DONE. 1: the host closed before it used the machine. */
static int talk(struct session *s, struct err *err)
{
    struct frame frame;
    struct wake wake;
    int r;

    if (say_ready(s) < 0 || frame_reader_wait(&s->reader, s->conn, &frame, NULL) <= 0)
        return 1;
    r = prepare_snapshot(s, &frame, err);
    if (r != 0)
        return r;
    if (frame.type != PROTO_WAKE)
        return err_set(err, EPROTO, "frame 0x%02x where WAKE was due", frame.type);
    r = wake_decode(frame.data, frame.len, &wake, err);
    if (r < 0)
        return r;
    if (s->server->sandbox->config->isolated)
        r = wake_apply(&wake, err);
    return r < 0 ? r : execute(s, err);
}

static enum server_end serve(struct session *s, struct err *err)
{
    int r = talk(s, err);

    if (r > 0)
        return SERVER_UNUSED;
    if (r < 0 && r != -ECONNRESET)
        say_fail(s, err);
    wait_for_close(s->conn);
    return SERVER_SPENT;
}

enum server_end server_serve(struct server *server, int conn, struct err *err)
{
    struct session s = {.server = server, .conn = conn, .input = buf_init(INPUT_VARIABLE_MAX)};
    enum server_end end;

    frame_reader_init(&s.reader);
    frame_writer_init(&s.writer, conn);
    end = serve(&s, err);
    frame_reader_finish(&s.reader);
    frame_writer_finish(&s.writer);
    buf_finish(&s.input);
    run_finish(&s.run);
    return end;
}
