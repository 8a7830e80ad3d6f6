/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for skillvm-vmm and the guest behind it, so that the daemon is tested without KVM.
 * It speaks vmm/control.h and guest-init/proto.h. How it behaves before RUN is the text of the
 * kernel (boot) or image (restore) file; after RUN it is the environment variable FAKE of the
 * request. Not a model of a guest: only what the daemon's tests ask for.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32.h"
#include "base/fd.h"
#include "guest-init/proto.h"
#include "tests/unit/fake_files_in.h"
#include "tests/unit/fake_tar.h"
#include "vmm/control.h"

#define MEMORY_SIZE (8u << 20)

struct fake {
    int control_fd, vsock_fd, kernel_fd, image_fd, state_fd, memory_fd;
    int working_set_fd, record_fd;
    char mode[64];
    struct buf run_text; /* the RUN fields as JSON members */
    char behaviour[64];  /* FAKE */
    char payload[4096];  /* FAKE_DATA */
    bool is_probe;       /* it looks at the parser of a script */
    struct buf skill;    /* its tar, then */
    uint64_t skill_bytes;
    uint32_t skill_crc;
    struct buf input;
    struct buf files_in; /* the tar stream */
};

static void die(const char *what)
{
    fprintf(stderr, "fake_vmm: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void event(const struct fake *f, enum vmm_event_type type, const char *message)
{
    struct vmm_event e = {VMM_CONTROL_VERSION, type, clock_monotonic_ns(), 0, {0}};

    snprintf(e.message, sizeof(e.message), "%s", message);
    if (fd_send(f->control_fd, &e, sizeof(e), NULL, 0) < 0)
        _exit(1);
}

static void send_frame(const struct fake *f, uint8_t type, const void *data, size_t len)
{
    uint8_t header[PROTO_HEADER_SIZE];
    struct bytes_writer w = bytes_writer_init(header, sizeof(header));

    bytes_put_u32(&w, (uint32_t)len);
    bytes_put_u8(&w, type);
    bytes_put_u8(&w, 0);
    bytes_put_u16(&w, 0);
    if (fd_write_full(f->vsock_fd, header, sizeof(header)) < 0 ||
        fd_write_full(f->vsock_fd, data, len) < 0)
        _exit(1);
}

static void send_text(const struct fake *f, uint8_t type, const char *text)
{
    send_frame(f, type, text, strlen(text));
}

static void send_ready(const struct fake *f, uint32_t version)
{
    uint8_t raw[4] = {(uint8_t)version, (uint8_t)(version >> 8), 0, 0};

    send_frame(f, PROTO_READY, raw, sizeof(raw));
}

static void send_exit(const struct fake *f, uint32_t code, uint32_t sig, uint32_t flags)
{
    uint8_t raw[PROTO_EXIT_SIZE];
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u32(&w, code);
    bytes_put_u32(&w, sig);
    bytes_put_u32(&w, flags);
    bytes_put_u32(&w, 0);
    bytes_put_u64(&w, 12345);
    bytes_put_u64(&w, 655);
    bytes_put_u64(&w, 7u << 20);
    bytes_put_u64(&w, 20000);
    send_frame(f, PROTO_EXIT, raw, sizeof(raw));
}

/* One frame from the host; its payload is the caller's to free. */
static uint8_t receive_frame(const struct fake *f, uint8_t **ret, size_t *ret_len)
{
    uint8_t header[PROTO_HEADER_SIZE] = {0};
    struct bytes_reader r = bytes_reader_init(header, sizeof(header));
    uint32_t len;

    if (fd_read_full(f->vsock_fd, header, sizeof(header)) != (ssize_t)sizeof(header))
        _exit(0);
    len = bytes_get_u32(&r);
    if (len > PROTO_PAYLOAD_MAX)
        die("frame length");
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
    if (tag == PROTO_F_MODE || (tag >= PROTO_F_TIMEOUT_MS && tag <= PROTO_F_OUTPUT_BYTES)) {
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
            die("RUN field");
        note_field(f, tag, value, size);
    }
}

/* Takes everything the host sends before STARTED. */
static void take_injection(struct fake *f)
{
    for (;;) {
        uint8_t *data;
        size_t len;
        uint8_t type = receive_frame(f, &data, &len);

        switch (type) {
        case PROTO_WAKE:
            if (len != PROTO_WAKE_SIZE)
                die("WAKE");
            break;
        case PROTO_RUN:
            take_run(f, data, len);
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
            if (len > 0)
                break;
            free(data);
            return;
        default:
            die("unexpected frame");
        }
        free(data);
    }
}

/* One file of a ustar stream. */
static void send_file(const struct fake *f, const char *name, const char *content, char type)
{
    uint8_t block[1024];

    send_frame(f, PROTO_FILES, block, fake_tar_file(block, name, content, type));
}

static void send_files_end(const struct fake *f)
{
    static const uint8_t zeros[1024];

    send_frame(f, PROTO_FILES, zeros, sizeof(zeros));
    send_frame(f, PROTO_FILES, NULL, 0);
}

static void send_output(const struct fake *f, const char *text)
{
    if (*text)
        send_text(f, PROTO_OUTPUT, text);
    send_frame(f, PROTO_OUTPUT, NULL, 0);
}

static void finish(const struct fake *f, uint32_t code, uint32_t sig, uint32_t flags)
{
    send_exit(f, code, sig, flags);
    send_output(f, "");
    send_files_end(f);
    send_frame(f, PROTO_DONE, NULL, 0);
}

/* Everything that arrived, as the skill's output. */
static void behave_echo(struct fake *f)
{
    struct buf out = buf_init(1u << 24);

    buf_printf(&out, "{\"run\": {%s},\n \"skill_bytes\": %llu, \"skill_crc\": %u, ",
               buf_cstr(&f->run_text), (unsigned long long)f->skill_bytes, f->skill_crc);
    buf_printf(&out, "\"files_in\": ");
    if (fake_files_in_list(f->files_in.data, f->files_in.len, &out) < 0)
        die("FILES_IN");
    buf_printf(&out, ", \"input\": ");
    buf_append(&out, f->input.data, f->input.len);
    buf_append(&out, "}", 1);
    send_exit(f, 0, 0, 0);
    for (size_t at = 0; at < out.len; at += 60000)
        send_frame(f, PROTO_OUTPUT, out.data + at, out.len - at < 60000 ? out.len - at : 60000);
    send_output(f, "");
    send_files_end(f);
    send_frame(f, PROTO_DONE, NULL, 0);
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
    send_frame(f, PROTO_DONE, NULL, 0);
}

/* A tick on stdout every 100 ms until CANCEL comes. */
static void behave_ticks(const struct fake *f, bool obey)
{
    for (int i = 0; i < 600; i++) {
        struct pollfd p = {.fd = f->vsock_fd, .events = POLLIN};
        char text[32];

        snprintf(text, sizeof(text), "tick %d\n", i);
        send_text(f, PROTO_STDOUT, text);
        if (poll(&p, 1, 100) > 0) {
            uint8_t *data;
            size_t len;

            if (receive_frame(f, &data, &len) != PROTO_CANCEL)
                die("not CANCEL");
            free(data);
            if (obey) {
                finish(f, 0, 9, PROTO_EXIT_CANCELLED);
                return;
            }
        }
    }
}

static void behave_flood(const struct fake *f)
{
    char chunk[65536];

    memset(chunk, 'x', sizeof(chunk));
    for (int i = 0; i < 64; i++)
        send_frame(f, i % 2 ? PROTO_STDERR : PROTO_STDOUT, chunk, sizeof(chunk));
    finish(f, 0, 0, PROTO_EXIT_LOGS_TRUNCATED);
}

static void behave_hostile(const struct fake *f, const char *how)
{
    uint8_t raw[8] = {0xff, 0xff, 0xff, 0xff, PROTO_STDOUT, 0, 0, 0};
    char chunk[65536];

    memset(chunk, '[', sizeof(chunk));
    if (strcmp(how, "length") == 0)
        (void)fd_write_full(f->vsock_fd, raw, sizeof(raw));
    else if (strcmp(how, "type") == 0)
        send_frame(f, 0x7f, "x", 1);
    else if (strcmp(how, "order") == 0)
        send_frame(f, PROTO_DONE, NULL, 0);
    else if (strcmp(how, "exit") == 0)
        send_exit(f, 70000, 9, 0xffffffff);
    else if (strcmp(how, "output") == 0) {
        send_exit(f, 0, 0, 0);
        for (int i = 0; i < 1000; i++)
            send_frame(f, PROTO_OUTPUT, chunk, sizeof(chunk));
    } else if (strcmp(how, "files") == 0) {
        send_exit(f, 0, 0, 0);
        send_output(f, "");
        send_frame(f, PROTO_FILES, chunk, sizeof(chunk));
        send_frame(f, PROTO_FILES, NULL, 0);
        send_frame(f, PROTO_DONE, NULL, 0);
    } else if (strcmp(how, "deep") == 0) {
        send_exit(f, 0, 0, 0);
        send_frame(f, PROTO_OUTPUT, chunk, sizeof(chunk));
        send_output(f, "");
        send_files_end(f);
        send_frame(f, PROTO_DONE, NULL, 0);
    } else if (strcmp(how, "after") == 0) {
        send_exit(f, 0, 0, 0);
        send_text(f, PROTO_STDOUT, "late");
    }
    pause();
}

/* Takes this much CPU time, whatever EXIT says. */
static void behave_burn(const struct fake *f)
{
    uint64_t us = (uint64_t)atoi(f->payload) * 1000;
    struct rusage used;

    do
        getrusage(RUSAGE_SELF, &used);
    while ((uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
               (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) <
           us);
    finish(f, 0, 0, 0);
}

/* A look at a parser: the skill says what comes of it. */
static void behave_probe(struct fake *f)
{
    const char *text = fake_tar_probe(&f->skill);

    if (!text)
        die("probe");
    if (text[0] == '=') {
        snprintf(f->behaviour, sizeof(f->behaviour), "%s", text + 1);
        return;
    }
    send_frame(f, PROTO_STARTED, NULL, 0);
    send_exit(f, 0, 0, 0);
    send_output(f, text);
    send_files_end(f);
    send_frame(f, PROTO_DONE, NULL, 0);
    pause();
}

static void behave(struct fake *f)
{
    const char *how = f->behaviour;

    if (f->is_probe)
        behave_probe(f);
    if (strcmp(how, "before") == 0) {
        send_exit(f, 0, 0, 0);
        pause();
    }
    if (strcmp(how, "fail") == 0) {
        send_text(f, PROTO_FAIL, "no \x1b[31minterpreter\xff");
        pause();
    }
    if (strcmp(how, "never") == 0)
        pause();
    send_frame(f, PROTO_STARTED, NULL, 0);
    if (strcmp(how, "exit") == 0) {
        send_text(f, PROTO_STDOUT, "out\n");
        send_text(f, PROTO_STDERR, "err\n");
        finish(f, (uint32_t)atoi(f->payload), 0, 0);
    } else if (strcmp(how, "signal") == 0) {
        finish(f, 0, (uint32_t)atoi(f->payload), 0);
    } else if (strcmp(how, "timeout") == 0) {
        send_text(f, PROTO_STDOUT, "partial\n");
        finish(f, 0, 9, PROTO_EXIT_TIMED_OUT);
    } else if (strcmp(how, "oom") == 0) {
        finish(f, 0, 9, PROTO_EXIT_OUT_OF_MEMORY);
    } else if (strcmp(how, "files") == 0) {
        behave_files(f);
    } else if (strcmp(how, "stdout") == 0) {
        send_text(f, PROTO_STDOUT, f->payload);
        finish(f, 0, 0, 0);
    } else if (strcmp(how, "utf8") == 0) {
        send_text(f, PROTO_STDOUT, "\xe2\x82");
        send_text(f, PROTO_STDOUT, "\xac\xff!");
        send_text(f, PROTO_STDERR, "\xf0\x9f");
        finish(f, 0, 0, 0);
    } else if (strcmp(how, "ticks") == 0 || strcmp(how, "deaf") == 0) {
        behave_ticks(f, how[0] == 't');
    } else if (strcmp(how, "burn") == 0) {
        behave_burn(f);
    } else if (strcmp(how, "sleep") == 0) {
        usleep((unsigned)atoi(f->payload) * 1000u);
        finish(f, 0, 0, 0);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "flood") == 0) {
        behave_flood(f);
    } else if (strcmp(how, "hang") == 0) {
        pause();
    } else if (strcmp(how, "hang-collect") == 0) {
        send_exit(f, 0, 0, 0);
        pause();
    } else if (strcmp(how, "die") == 0) {
        send_text(f, PROTO_STDOUT, "last words\n");
        _exit(1);
    } else if (strcmp(how, "vmm-failed") == 0) {
        event(f, VMM_EVENT_FAILED, "KVM_RUN: made up");
        _exit(1);
    } else if (strcmp(how, "guest-exited") == 0) {
        event(f, VMM_EVENT_EXITED, "");
        _exit(0);
    } else if (strcmp(how, "close") == 0) {
        shutdown(f->vsock_fd, SHUT_RDWR);
        pause();
    } else if (strncmp(how, "hostile-", 8) == 0) {
        behave_hostile(f, how + 8);
    } else {
        behave_echo(f);
    }
}

/* Nothing of the daemon's but what it meant to give. */
static void check_descriptors(int expected)
{
    int n = 0;

    for (int fd = 3; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    if (n != expected) {
        errno = EMFILE;
        die("inherited descriptors");
    }
}

/* The run that shows which pages are used; QUIT ends it. */
static void record(struct fake *f)
{
    struct vmm_command command;
    size_t n = 0;

    if (strcmp(f->mode, "restore=norecord") == 0)
        _exit(1);
    event(f, VMM_EVENT_RESUMED, "");
    send_ready(f, PROTO_VERSION);
    take_injection(f);
    send_frame(f, PROTO_STARTED, NULL, 0);
    finish(f, 0, 0, 0);
    if (fd_receive(f->control_fd, &command, sizeof(command), NULL, 0, &n) !=
            (ssize_t)sizeof(command) ||
        command.type != VMM_COMMAND_QUIT || fd_write_full(f->record_fd, "fake pages", 10) < 0)
        die("QUIT");
    _exit(0);
}

static void restore(struct fake *f)
{
    char state[16] = {0};

    check_descriptors(5 + (f->working_set_fd >= 0) + (f->record_fd >= 0));
    if (f->record_fd >= 0)
        record(f);

    if (strcmp(f->mode, "restore=die") == 0)
        _exit(1);
    if (strcmp(f->mode, "restore=failed") == 0) {
        event(f, VMM_EVENT_FAILED, "state: made-up refusal");
        _exit(1);
    }
    if (pread(f->state_fd, state, sizeof(state) - 1, 0) < 0 || strcmp(state, "fake state") != 0)
        die("state");
    event(f, VMM_EVENT_RESUMED, "");
    if (strcmp(f->mode, "restore") == 0 &&
        (pread(f->working_set_fd, state, 10, 0) != 10 || memcmp(state, "fake pages", 10) != 0))
        die("working set");
    if (strcmp(f->mode, "restore=silent") == 0)
        pause();
    event(f, VMM_EVENT_CONNECTED, "");
    send_ready(f, strcmp(f->mode, "restore=version") == 0 ? 99 : PROTO_VERSION);
    take_injection(f);
    behave(f);
    /* The daemon kills when it has what it wants. */
    pause();
}

static void boot(struct fake *f)
{
    struct vmm_command command;
    uint8_t page[4096] = "a page";
    int fds[2];
    size_t n = 0;
    char byte;

    check_descriptors(5);
    if (strcmp(f->mode, "boot=failed") == 0) {
        event(f, VMM_EVENT_FAILED, "no KVM today");
        _exit(1);
    }
    event(f, VMM_EVENT_RESUMED, "");
    event(f, VMM_EVENT_CONNECTED, "");
    if (strcmp(f->mode, "boot=slow") == 0)
        usleep(1500000);
    send_ready(f, PROTO_VERSION);
    while (read(f->vsock_fd, &byte, 1) > 0)
        ;
    if (fd_receive(f->control_fd, &command, sizeof(command), fds, 2, &n) !=
            (ssize_t)sizeof(command) ||
        command.type != VMM_COMMAND_SNAPSHOT || n != 2)
        die("SNAPSHOT");
    if (fd_write_full(fds[0], "fake state", 10) < 0 || ftruncate(fds[1], MEMORY_SIZE) < 0 ||
        fd_pwrite_full(fds[1], page, sizeof(page), 1u << 20) < 0)
        die("save");
    event(f, VMM_EVENT_SNAPSHOT, "");
    _exit(0);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"control-fd", required_argument, NULL, 'c'},
                                          {"vsock-fd", required_argument, NULL, 'v'},
                                          {"kernel-fd", required_argument, NULL, 'k'},
                                          {"image-fd", required_argument, NULL, 'i'},
                                          {"state-fd", required_argument, NULL, 's'},
                                          {"memory-fd", required_argument, NULL, 'm'},
                                          {"console-fd", required_argument, NULL, 'o'},
                                          {"memory-mib", required_argument, NULL, 'M'},
                                          {"working-set-fd", required_argument, NULL, 'w'},
                                          {"record-fd", required_argument, NULL, 'r'},
                                          {NULL, 0, NULL, 0}};
    struct fake f = {.control_fd = -1,
                     .vsock_fd = -1,
                     .kernel_fd = -1,
                     .image_fd = -1,
                     .state_fd = -1,
                     .memory_fd = -1,
                     .working_set_fd = -1,
                     .record_fd = -1,
                     .run_text = buf_init(1u << 20),
                     .skill = buf_init(1u << 24),
                     .input = buf_init(1u << 25),
                     .files_in = buf_init(1u << 28)};
    const struct {
        int option;
        int *fd;
    } fds[] = {{'c', &f.control_fd},     {'v', &f.vsock_fd}, {'k', &f.kernel_fd},
               {'i', &f.image_fd},       {'s', &f.state_fd}, {'m', &f.memory_fd},
               {'w', &f.working_set_fd}, {'r', &f.record_fd}};
    int option;

    if (argc == 2 && strcmp(argv[1], "fingerprint") == 0) {
        puts("fake cpu");
        return 0;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == '?')
            return 2;
        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
            if (fds[i].option == option)
                *fds[i].fd = atoi(optarg);
        }
    }
    if (optind >= argc)
        return 2;
    if (strcmp(argv[optind], "boot") == 0) {
        if (pread(f.kernel_fd, f.mode, sizeof(f.mode) - 1, 0) < 0)
            die("kernel");
        boot(&f);
    }
    if (pread(f.image_fd, f.mode, sizeof(f.mode) - 1, 0) < 0)
        die("image");
    restore(&f);
    return 0;
}
