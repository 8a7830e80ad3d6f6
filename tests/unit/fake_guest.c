/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_guest.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32.h"
#include "base/fd.h"
#include "guest-init/proto.h"
#include "tests/unit/fake_disk.h"
#include "tests/unit/fake_files_in.h"
#include "tests/unit/fake_net.h"
#include "tests/unit/fake_session.h"
#include "tests/unit/fake_tar.h"
#include "tests/unit/fake_ticks.h"
#include "tests/unit/frame_header.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

void fake_die(const char *what)
{
    fprintf(stderr, "fake_vmm: %s: %s\n", what, strerror(errno));
    _exit(1);
}

void fake_event(const struct fake *f, enum vmm_event_type type, const char *message)
{
    struct vmm_event e = {VMM_CONTROL_VERSION, type, clock_monotonic_ns(), 0, {0}};

    snprintf(e.message, sizeof(e.message), "%s", message);
    if (fd_send(f->control_fd, &e, sizeof(e), NULL, 0) < 0)
        _exit(1);
}

void fake_send_frame(const struct fake *f, uint8_t type, const void *data, size_t len)
{
    uint8_t header[PROTO_HEADER_SIZE];

    frame_header_write(header, type, len);
    if (fd_write_full(f->vsock_fd, header, sizeof(header)) < 0 ||
        fd_write_full(f->vsock_fd, data, len) < 0)
        _exit(1);
}

void fake_send_text(const struct fake *f, uint8_t type, const char *text)
{
    fake_send_frame(f, type, text, strlen(text));
}

void fake_send_ready(const struct fake *f, uint32_t version)
{
    uint8_t raw[4] = {(uint8_t)version, (uint8_t)(version >> 8), 0, 0};

    fake_send_frame(f, PROTO_READY, raw, sizeof(raw));
}

static void send_exit(const struct fake *f, uint32_t code, uint32_t sig, uint32_t flags)
{
    uint8_t raw[PROTO_EXIT_SIZE];
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u32(&w, code);
    bytes_put_u32(&w, sig);
    bytes_put_u32(&w, flags);
    bytes_put_u32(&w, strcmp(f->behaviour, "limits") == 0 ? (uint32_t)atoi(f->payload) : 0);
    bytes_put_u64(&w, 12345);
    bytes_put_u64(&w, 655);
    bytes_put_u64(&w, 7u << 20);
    bytes_put_u64(&w, 20000);
    fake_send_frame(f, PROTO_EXIT, raw, sizeof(raw));
}

uint8_t fake_receive_frame(const struct fake *f, uint8_t **ret, size_t *ret_len)
{
    uint8_t header[PROTO_HEADER_SIZE] = {0};
    struct bytes_reader r = bytes_reader_init(header, sizeof(header));
    uint32_t len;

    if (fd_read_full(f->vsock_fd, header, sizeof(header)) != (ssize_t)sizeof(header))
        _exit(0);
    len = bytes_get_u32(&r);
    if (len > PROTO_PAYLOAD_MAX)
        fake_die("frame length");
    *ret = malloc(len + 1);
    if (!*ret || fd_read_full(f->vsock_fd, *ret, len) != (ssize_t)len)
        _exit(0);
    (*ret)[len] = 0;
    *ret_len = len;
    return header[4];
}

/* Notes a RUN field for the answer, and what it says about the behaviour. */
static void note_field(struct fake *f, uint16_t tag, const uint8_t *data, uint32_t len)
{
    uint64_t number = 0;

    buf_printf(&f->run_text, "%s\"%u.%zu\":", f->run_text.len ? "," : "", tag, f->run_text.len);
    f->has_session |= tag == PROTO_F_SESSION_BYTES;
    f->has_disk |= tag == PROTO_F_SKILL_DISK;
    if (tag == PROTO_F_MODE || tag == PROTO_F_PACKAGES || tag == PROTO_F_SKILL_DISK ||
        (tag >= PROTO_F_TIMEOUT_MS && tag <= PROTO_F_OUTPUT_BYTES) ||
        (tag >= PROTO_F_SESSION_FILES && tag <= PROTO_F_SESSION_BYTES)) {
        for (uint32_t i = 0; i < len; i++)
            number |= (uint64_t)data[i] << (8 * i);
        buf_printf(&f->run_text, "%llu", (unsigned long long)number);
    } else {
        buf_printf(&f->run_text, "\"%.*s\"", (int)(len < 200 ? len : 200), (const char *)data);
    }
    f->is_probe |= tag == PROTO_F_ENTRY && fake_tar_is_probe(data, len);
    if (tag == PROTO_F_ENV && len > 5 && memcmp(data, "FAKE=", 5) == 0)
        snprintf(f->behaviour, sizeof(f->behaviour), "%.*s", (int)len - 5,
                 (const char *)data + 5);
    if (tag == PROTO_F_ENV && len > 10 && memcmp(data, "FAKE_DATA=", 10) == 0)
        snprintf(f->payload, sizeof(f->payload), "%.*s", (int)len - 10,
                 (const char *)data + 10);
}

static void take_run(struct fake *f, const uint8_t *data, size_t len)
{
    struct bytes_reader r = bytes_reader_init(data, len);

    while (bytes_left(&r) > 0) {
        uint16_t tag = bytes_get_u16(&r);
        uint32_t size;
        const uint8_t *value;

        (void)bytes_get_u16(&r);
        size = bytes_get_u32(&r);
        value = bytes_take(&r, size);
        if (!value)
            fake_die("RUN field");
        note_field(f, tag, value, size);
    }
}

void fake_take_injection(struct fake *f)
{
    for (;;) {
        uint8_t *data;
        size_t len;
        uint8_t type = fake_receive_frame(f, &data, &len);

        switch (type) {
        case PROTO_WAKE:
            if (len != PROTO_WAKE_SIZE)
                fake_die("WAKE");
            break;
        case PROTO_RUN:
            take_run(f, data, len);
            if (f->has_disk)
                fake_disk_take(f);
            break;
        case PROTO_PACKAGES:
            f->packages_bytes += len;
            break;
        case PROTO_SKILL:
            f->skill_bytes += len;
            if (f->is_probe)
                buf_append(&f->skill, data, len);
            f->skill_crc = crc32_update(f->skill_crc, data, len);
            break;
        case PROTO_INPUT:
            buf_append(&f->input, data, len);
            break;
        case PROTO_FILES_IN:
            buf_append(&f->files_in, data, len);
            if (len > 0 || f->has_session)
                break;
            free(data);
            return;
        case PROTO_SESSION_IN:
            if (!f->has_session)
                fake_die("SESSION_IN");
            buf_append(&f->session, data, len);
            if (len > 0)
                break;
            free(data);
            return;
        default:
            fake_die("unexpected frame");
        }
        free(data);
    }
}

/* One file of a ustar stream. */
static void send_file(const struct fake *f, const char *name, const char *content, char type)
{
    uint8_t block[1024];

    fake_send_frame(f, PROTO_FILES, block, fake_tar_file(block, name, content, type));
}

static void send_files_end(const struct fake *f)
{
    static const uint8_t zeros[1024];

    fake_send_frame(f, PROTO_FILES, zeros, sizeof(zeros));
    fake_send_frame(f, PROTO_FILES, NULL, 0);
    if (f->has_session)
        fake_session_send(f);
}

static void send_output(const struct fake *f, const char *text)
{
    if (*text)
        fake_send_text(f, PROTO_OUTPUT, text);
    fake_send_frame(f, PROTO_OUTPUT, NULL, 0);
}

void fake_finish(const struct fake *f, uint32_t code, uint32_t sig, uint32_t flags)
{
    send_exit(f, code, sig, flags);
    send_output(f, "");
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
}

/* Everything that arrived, as the skill's output. */
static void behave_echo(struct fake *f)
{
    struct buf out = buf_init(1u << 24);

    buf_printf(&out,
               "{\"run\": {%s},\n \"skill_bytes\": %llu, \"packages_bytes\": %llu, "
               "\"skill_crc\": %u, ",
               buf_cstr(&f->run_text), (unsigned long long)f->skill_bytes,
               (unsigned long long)f->packages_bytes, f->skill_crc);
    if (f->has_disk)
        fake_disk_tell(f, &out);
    buf_printf(&out, "\"files_in\": ");
    if (fake_files_in_list(f->files_in.data, f->files_in.len, &out) < 0)
        fake_die("FILES_IN");
    buf_printf(&out, ", \"input\": ");
    buf_append(&out, f->input.data, f->input.len);
    buf_append(&out, "}", 1);
    send_exit(f, 0, 0, 0);
    for (size_t at = 0; at < out.len; at += 60000)
        fake_send_frame(f, PROTO_OUTPUT, out.data + at,
                        out.len - at < 60000 ? out.len - at : 60000);
    send_output(f, "");
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
    buf_finish(&out);
}

static void behave_files(const struct fake *f)
{
    send_exit(f, 0, 0, 0);
    send_output(f, "{\"ok\": true}");
    send_file(f, "a.txt", "alpha", '0');
    send_file(f, "sub/b.txt", "beta", '0');
    send_file(f, "../escape", "evil", '0');
    send_file(f, "link", "", '2');
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
}

/* A file of so many MiB that packs to little, each block of it another; one after it. */
static void behave_bulk(const struct fake *f)
{
    const unsigned size = (unsigned)atoi(f->payload) << 20;
    uint8_t block[65536];

    send_exit(f, 0, 0, 0);
    send_output(f, "");
    fake_tar_header(block, "bulk.bin", size, '0');
    fake_send_frame(f, PROTO_FILES, block, 512);
    for (unsigned at = 0; at < size; at += sizeof(block)) {
        memset(block, (int)(at / sizeof(block)), sizeof(block));
        fake_send_frame(f, PROTO_FILES, block, sizeof(block));
    }
    send_file(f, "small.txt", "small", '0');
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
}

/* The daemon has read all that was sent. */
static void wait_taken(const struct fake *f)
{
    int left = 1;

    while (ioctl(f->vsock_fd, SIOCOUTQ, &left) == 0 && left > 0)
        usleep(1000);
}

static void behave_flood(const struct fake *f)
{
    char chunk[65536];

    memset(chunk, 'x', sizeof(chunk));
    for (int i = 0; i < 64; i++)
        fake_send_frame(f, i % 2 ? PROTO_STDERR : PROTO_STDOUT, chunk, sizeof(chunk));
    fake_finish(f, 0, 0, PROTO_EXIT_LOGS_TRUNCATED);
}

/* Byte by byte, and each of them six in JSON. */
static void send_greedy_log(const struct fake *f)
{
    enum { SIZE = PROTO_HEADER_SIZE + 1 };
    uint8_t frames[64 * SIZE];

    for (size_t i = 0; i < 64; i++) {
        frame_header_write(frames + i * SIZE, i % 2 ? PROTO_STDERR : PROTO_STDOUT, 1);
        frames[i * SIZE + PROTO_HEADER_SIZE] = 1;
    }
    for (size_t i = 0; i < (1u << 20) / 64; i++) {
        if (fd_write_full(f->vsock_fd, frames, sizeof(frames)) < 0)
            _exit(1);
    }
}

/* More than is kept: folders in folders, then long names that double in JSON. */
static void send_greedy_names(const struct fake *f)
{
    char name[100];

    for (int i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof(name), "%05d", i);
        for (size_t n = 5; n < 98; n += 3)
            memcpy(name + n, "/aa", 4);
        send_file(f, name, "", '0');
    }
    memset(name, '"', sizeof(name) - 1);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(name, 6, "%05d", i);
        name[5] = '"';
        send_file(f, name, "", '0');
    }
}

/* All that a guest may leave, in the form that takes the most memory. */
static void behave_greedy(const struct fake *f)
{
    char text[65537];

    send_greedy_log(f);
    send_exit(f, 0, 0, 0);
    memset(text, '1', 65536);
    text[65536] = '\0';
    for (int i = 0; i < 64; i++)
        fake_send_text(f, PROTO_OUTPUT, text);
    send_output(f, "");
    send_greedy_names(f);
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
}

static void behave_hostile(const struct fake *f, const char *how)
{
    uint8_t raw[8] = {0xff, 0xff, 0xff, 0xff, PROTO_STDOUT, 0, 0, 0};
    char chunk[65536];

    memset(chunk, '[', sizeof(chunk));
    if (strcmp(how, "length") == 0)
        (void)fd_write_full(f->vsock_fd, raw, sizeof(raw));
    else if (strcmp(how, "type") == 0)
        fake_send_frame(f, 0x7f, "x", 1);
    else if (strcmp(how, "order") == 0)
        fake_send_frame(f, PROTO_DONE, NULL, 0);
    else if (strcmp(how, "exit") == 0)
        send_exit(f, 70000, 9, 0xffffffff);
    else if (strcmp(how, "output") == 0) {
        send_exit(f, 0, 0, 0);
        for (int i = 0; i < 1000; i++)
            fake_send_frame(f, PROTO_OUTPUT, chunk, sizeof(chunk));
    } else if (strcmp(how, "files") == 0) {
        send_exit(f, 0, 0, 0);
        send_output(f, "");
        fake_send_frame(f, PROTO_FILES, chunk, sizeof(chunk));
        fake_send_frame(f, PROTO_FILES, NULL, 0);
        fake_send_frame(f, PROTO_DONE, NULL, 0);
    } else if (strcmp(how, "deep") == 0) {
        send_exit(f, 0, 0, 0);
        fake_send_frame(f, PROTO_OUTPUT, chunk, sizeof(chunk));
        send_output(f, "");
        send_files_end(f);
        fake_send_frame(f, PROTO_DONE, NULL, 0);
    } else if (strcmp(how, "after") == 0) {
        send_exit(f, 0, 0, 0);
        fake_send_text(f, PROTO_STDOUT, "late");
    }
    pause();
}

static uint64_t cpu_us(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Takes this much CPU time, whatever EXIT says. */
static void behave_burn(const struct fake *f)
{
    uint64_t us = cpu_us() + (uint64_t)atoi(f->payload) * 1000;

    while (cpu_us() < us)
        ;
    fake_finish(f, 0, 0, 0);
}

/* Sleeps for so many ms, and says when that began and ended, by the clock of all of them. */
static void behave_span(const struct fake *f)
{
    char text[64];
    uint64_t began_ns = clock_monotonic_ns();

    usleep((unsigned)atoi(f->payload) * 1000u);
    snprintf(text, sizeof(text), "span %llu %llu\n", (unsigned long long)began_ns,
             (unsigned long long)clock_monotonic_ns());
    fake_send_text(f, PROTO_STDOUT, text);
    fake_finish(f, 0, 0, 0);
}

/* A look at a parser: the skill says what comes of it. */
static void behave_probe(struct fake *f)
{
    const char *text = fake_tar_probe(&f->skill);
    char about[512];

    if (!text)
        fake_die("probe");
    if (text[0] == '?' && fake_is_first(f)) {
        snprintf(f->behaviour, sizeof(f->behaviour), "timeout");
        return;
    }
    text += text[0] == '?';
    if (text[0] == '=') {
        snprintf(f->behaviour, sizeof(f->behaviour), "%s", text + 1);
        return;
    }
    if (strcmp(text, "@image") == 0) {
        snprintf(about, sizeof(about),
                 "{\"version\":1,\"doc\":\"%s\",\"parser\":{\"description\":null,"
                 "\"actions\":[]}}",
                 f->mode);
        text = about;
    }
    fake_send_frame(f, PROTO_STARTED, NULL, 0);
    send_exit(f, 0, 0, 0);
    send_output(f, text);
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
    pause();
}

/* Who this is, and what it has been. */
static void behave_who(const struct fake *f)
{
    char text[64];

    snprintf(text, sizeof(text), "{\"pid\":%d,\"runs\":%u}", f->pid, f->runs);
    send_exit(f, 0, 0, 0);
    send_output(f, text);
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
}

/* What it found in its session; what it leaves there is in FAKE_DATA. */
static void behave_session(const struct fake *f)
{
    struct buf found = buf_init(1u << 20);

    if (fake_files_in_list(f->session.data, f->session.len, &found) < 0)
        fake_die("SESSION_IN");
    fake_be_late(f);
    send_exit(f, strcmp(f->behaviour, "session-exit") == 0 ? 3 : 0, 0,
              strcmp(f->behaviour, "session-flag") == 0  ? PROTO_EXIT_SESSION_TOO_LARGE
              : strcmp(f->behaviour, "session-oom") == 0 ? PROTO_EXIT_OUT_OF_MEMORY
                                                         : 0);
    send_output(f, buf_cstr(&found));
    send_files_end(f);
    fake_send_frame(f, PROTO_DONE, NULL, 0);
    buf_finish(&found);
}

void fake_behave(struct fake *f)
{
    const char *how = f->behaviour;

    if (f->is_probe)
        behave_probe(f);
    if (strcmp(how, "before") == 0) {
        send_exit(f, 0, 0, 0);
        pause();
    }
    if (strcmp(how, "fail") == 0) {
        fake_send_text(f, PROTO_FAIL, "no \x1b[31minterpreter\xff");
        pause();
    }
    if (strcmp(how, "never") == 0)
        pause();
    if (strcmp(how, "die-early") == 0 || (strcmp(how, "die-first") == 0 && fake_is_first(f)))
        _exit(1);
    fake_send_frame(f, PROTO_STARTED, NULL, 0);
    if (strncmp(how, "who", 3) == 0) {
        behave_who(f);
        while (strcmp(how, "who-burns") == 0)
            (void)clock_thread_cpu_ns();
    } else if (strncmp(how, "reset-", 6) == 0 || strncmp(how, "parked-", 7) == 0) {
        snprintf(f->reset_how, sizeof(f->reset_how), "%s", how);
        behave_who(f);
    } else if (strcmp(how, "exit") == 0) {
        fake_send_text(f, PROTO_STDOUT, "out\n");
        fake_send_text(f, PROTO_STDERR, "err\n");
        fake_finish(f, (uint32_t)atoi(f->payload), 0, 0);
    } else if (strcmp(how, "image") == 0) {
        /* What the machine was begun with. */
        fake_send_text(f, PROTO_STDOUT, f->mode);
        fake_finish(f, 0, 0, 0);
    } else if (strcmp(how, "stderr") == 0) {
        fake_send_text(f, PROTO_STDERR, f->payload);
        fake_finish(f, 1, 0, 0);
    } else if (strcmp(how, "signal") == 0) {
        fake_finish(f, 0, (uint32_t)atoi(f->payload), 0);
    } else if (strcmp(how, "timeout") == 0) {
        fake_send_text(f, PROTO_STDOUT, "partial\n");
        fake_finish(f, 0, 9, PROTO_EXIT_TIMED_OUT);
    } else if (strcmp(how, "full") == 0) {
        fake_finish(f, 0, 9, PROTO_EXIT_TIMED_OUT | PROTO_EXIT_MEMORY_FULL);
    } else if (strcmp(how, "oom") == 0) {
        fake_finish(f, 0, 9, PROTO_EXIT_OUT_OF_MEMORY);
    } else if (strcmp(how, "limits") == 0) {
        fake_finish(f, 0, 0, PROTO_EXIT_OUT_OF_MEMORY);
    } else if (strcmp(how, "files") == 0) {
        behave_files(f);
    } else if (strncmp(how, "session", 7) == 0) {
        behave_session(f);
    } else if (strcmp(how, "bulk") == 0) {
        behave_bulk(f);
    } else if (strcmp(how, "stdout") == 0) {
        fake_send_text(f, PROTO_STDOUT, f->payload);
        fake_finish(f, 0, 0, 0);
    } else if (strcmp(how, "utf8") == 0) {
        fake_send_text(f, PROTO_STDOUT, "\xe2\x82");
        fake_send_text(f, PROTO_STDOUT, "\xac\xff!");
        fake_send_text(f, PROTO_STDERR, "\xf0\x9f");
        fake_finish(f, 0, 0, 0);
    } else if (strcmp(how, "ticks") == 0 || strcmp(how, "deaf") == 0 ||
               strcmp(how, "chatty") == 0) {
        fake_tick(f);
    } else if (strcmp(how, "told") == 0) {
        fake_wait_told(f);
    } else if (strncmp(how, "net", 3) == 0) {
        fake_net_behave(f);
    } else if (strcmp(how, "burn") == 0) {
        behave_burn(f);
    } else if (strcmp(how, "sleep") == 0) {
        usleep((unsigned)atoi(f->payload) * 1000u);
        fake_finish(f, 0, 0, 0);
    } else if (strcmp(how, "span") == 0) {
        behave_span(f);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "flood") == 0) {
        behave_flood(f);
    } else if (strcmp(how, "greedy") == 0) {
        behave_greedy(f);
    } else if (strcmp(how, "hang") == 0) {
        pause();
    } else if (strcmp(how, "hang-collect") == 0) {
        send_exit(f, 0, 0, 0);
        wait_taken(f);
        /* For a test that waits for it. */
        (void)prctl(PR_SET_NAME, "collecting");
        pause();
    } else if (strcmp(how, "die") == 0) {
        fake_send_text(f, PROTO_STDOUT, "last words\n");
        _exit(1);
    } else if (strcmp(how, "vmm-failed") == 0) {
        fake_event(f, VMM_EVENT_FAILED, "KVM_RUN: made up");
        _exit(1);
    } else if (strcmp(how, "guest-exited") == 0) {
        fake_event(f, VMM_EVENT_EXITED, "");
        _exit(0);
    } else if (strcmp(how, "close") == 0) {
        shutdown(f->vsock_fd, SHUT_RDWR);
        pause();
    } else if (strcmp(how, "restart") == 0) {
        shutdown(f->vsock_fd, SHUT_RDWR);
        usleep(1000000); /* a guest takes its time for the rest */
        fake_event(f, VMM_EVENT_EXITED, "");
        _exit(0);
    } else if (strncmp(how, "hostile-", 8) == 0) {
        behave_hostile(f, how + 8);
    } else {
        behave_echo(f);
    }
}
