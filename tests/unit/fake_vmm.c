/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for skillvm-vmm and the guest behind it, so that the daemon is tested without KVM.
 * It speaks vmm/control.h and guest-init/proto.h. How it behaves before RUN is the text of the
 * kernel (boot) or image (restore) file; after RUN it is the environment variable FAKE of the
 * request. Not a model of a guest: only what the daemon's tests ask for.
 */
#include "tests/unit/fake_guest.h"

#include "base/fd.h"
#include "guest-init/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MEMORY_SIZE (8u << 20)

/* Nothing of the daemon's but what it meant to give. */
static void check_descriptors(int expected)
{
    int n = 0;

    for (int fd = 3; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    if (n != expected) {
        errno = EMFILE;
        fake_die("inherited descriptors");
    }
}

/* The run that shows which pages are used; QUIT ends it. */
static void record(struct fake *f)
{
    struct vmm_command command;
    size_t n = 0;

    if (strcmp(f->mode, "restore=norecord") == 0)
        _exit(1);
    fake_event(f, VMM_EVENT_RESUMED, "");
    fake_send_ready(f, PROTO_VERSION);
    fake_take_injection(f);
    fake_send_frame(f, PROTO_STARTED, NULL, 0);
    fake_finish(f, 0, 0, 0);
    if (fd_receive(f->control_fd, &command, sizeof(command), NULL, 0, &n) !=
            (ssize_t)sizeof(command) ||
        command.type != VMM_COMMAND_QUIT || fd_write_full(f->record_fd, "fake pages", 10) < 0)
        fake_die("QUIT");
    _exit(0);
}

/* Forgets the run, as a guest does that is put back. */
static void forget(struct fake *f)
{
    buf_clear(&f->run_text);
    buf_clear(&f->skill);
    buf_clear(&f->input);
    buf_clear(&f->files_in);
    f->behaviour[0] = f->payload[0] = '\0';
    f->is_probe = false;
    f->skill_bytes = 0;
    f->skill_crc = 0;
}

/* Waits for RESET and obeys it, unless it was told otherwise. */
static void obey_reset(struct fake *f)
{
    struct vmm_command command;
    char how[sizeof(f->reset_how)];
    size_t n = 0;
    int fd = -1;

    snprintf(how, sizeof(how), "%s", f->reset_how);
    f->reset_how[0] = '\0';
    if (fd_receive(f->control_fd, &command, sizeof(command), &fd, 1, &n) !=
            (ssize_t)sizeof(command) ||
        command.type != VMM_COMMAND_RESET || n != 1 || !f->is_reusable)
        fake_die("RESET");
    forget(f);
    if (strcmp(how, "reset-late") == 0)
        f->old_fd = f->vsock_fd;
    else
        close(f->vsock_fd);
    f->vsock_fd = fd;
    if (strcmp(how, "reset-hang") == 0)
        pause();
    if (strcmp(how, "reset-die") == 0)
        abort();
    if (strcmp(how, "reset-fail") == 0) {
        fake_event(f, VMM_EVENT_FAILED, "a made-up difference");
        _exit(1);
    }
    fake_event(f, VMM_EVENT_RESET, "");
    if (strcmp(how, "reset-unready") == 0)
        pause();
    if (strcmp(how, "reset-slow") == 0)
        usleep(500000);
    if (strcmp(how, "reset-order") == 0 || strcmp(how, "reset-more") == 0) {
        /* The guest is quicker than what is said of it. */
        fake_send_ready(f, PROTO_VERSION);
        if (strcmp(how, "reset-more") == 0)
            fake_send_ready(f, PROTO_VERSION);
        usleep(200000);
        fake_event(f, VMM_EVENT_CONNECTED, "");
        return;
    }
    fake_event(f, VMM_EVENT_CONNECTED, "");
    fake_send_ready(f, PROTO_VERSION);
    if (f->old_fd >= 0) {
        struct pollfd p = {.fd = f->old_fd};

        /* What is left of the run before: its stream has nobody at the other end. */
        if (poll(&p, 1, 5000) != 1 || fd_write_full(f->old_fd, "late", 4) == 0)
            fake_die("the stream of the run before is still open");
        fd_close(&f->old_fd);
    }
    if (strncmp(how, "parked-", 7) == 0)
        usleep(200000);
    if (strcmp(how, "parked-die") == 0)
        _exit(0);
    if (strcmp(how, "parked-talk") == 0)
        fake_send_text(f, PROTO_STDOUT, "psst");
    if (strcmp(how, "parked-event") == 0)
        fake_event(f, VMM_EVENT_EXITED, "");
    while (strcmp(how, "parked-burn") == 0)
        ;
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
        fake_event(f, VMM_EVENT_FAILED, "state: made-up refusal");
        _exit(1);
    }
    if (pread(f->state_fd, state, sizeof(state) - 1, 0) < 0 || strcmp(state, "fake state") != 0)
        fake_die("state");
    fake_event(f, VMM_EVENT_RESUMED, "");
    if (strcmp(f->mode, "restore") == 0 &&
        (pread(f->working_set_fd, state, 10, 0) != 10 || memcmp(state, "fake pages", 10) != 0))
        fake_die("working set");
    if (strcmp(f->mode, "restore=silent") == 0)
        pause();
    fake_event(f, VMM_EVENT_CONNECTED, "");
    fake_send_ready(f, strcmp(f->mode, "restore=version") == 0 ? 99 : PROTO_VERSION);
    for (;;) {
        fake_take_injection(f);
        f->runs++;
        fake_behave(f);
        /* The daemon kills when it has what it wants, or has another job. */
        obey_reset(f);
    }
}

/* Until the host closes; what it wants warmed is, but "refused". */
static void warm(struct fake *f)
{
    uint8_t header[PROTO_HEADER_SIZE], names[PROTO_WARM_MAX + 1] = {0};

    while (fd_read_full(f->vsock_fd, header, sizeof(header)) == (ssize_t)sizeof(header)) {
        size_t len = header[0] | (size_t)header[1] << 8;

        if (header[4] != PROTO_WARM || len > PROTO_WARM_MAX ||
            fd_read_full(f->vsock_fd, names, len) != (ssize_t)len)
            fake_die("WARM");
        if (strstr((const char *)names, "refused"))
            fake_send_text(f, PROTO_FAIL, "no module of this name");
        else
            fake_send_frame(f, PROTO_WARMED, NULL, 0);
    }
}

static void boot(struct fake *f)
{
    struct vmm_command command;
    uint8_t page[4096] = "a page";
    int fds[2];
    size_t n = 0;

    check_descriptors(5);
    if (strcmp(f->mode, "boot=failed") == 0) {
        fake_event(f, VMM_EVENT_FAILED, "no KVM today");
        _exit(1);
    }
    fake_event(f, VMM_EVENT_RESUMED, "");
    fake_event(f, VMM_EVENT_CONNECTED, "");
    if (strcmp(f->mode, "boot=slow") == 0)
        usleep(1500000);
    /* Until the kernel file says something else. */
    while (strcmp(f->mode, "boot=wait") == 0) {
        char mode[sizeof(f->mode)] = {0};

        usleep(10000);
        if (pread(f->kernel_fd, mode, sizeof(mode) - 1, 0) < 0)
            fake_die("kernel");
        snprintf(f->mode, sizeof(f->mode), "%s", mode);
    }
    fake_send_ready(f, PROTO_VERSION);
    warm(f);
    if (fd_receive(f->control_fd, &command, sizeof(command), fds, 2, &n) !=
            (ssize_t)sizeof(command) ||
        command.type != VMM_COMMAND_SNAPSHOT || n != 2)
        fake_die("SNAPSHOT");
    if (fd_write_full(fds[0], "fake state", 10) < 0 || ftruncate(fds[1], MEMORY_SIZE) < 0 ||
        fd_pwrite_full(fds[1], page, sizeof(page), 1u << 20) < 0)
        fake_die("save");
    fake_event(f, VMM_EVENT_SNAPSHOT, "");
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
                                          {"reusable", no_argument, NULL, 'R'},
                                          {NULL, 0, NULL, 0}};
    struct fake f = {.control_fd = -1,
                     .vsock_fd = -1,
                     .kernel_fd = -1,
                     .image_fd = -1,
                     .state_fd = -1,
                     .memory_fd = -1,
                     .working_set_fd = -1,
                     .record_fd = -1,
                     .old_fd = -1,
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
        f.is_reusable |= option == 'R';
        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
            if (fds[i].option == option)
                *fds[i].fd = atoi(optarg);
        }
    }
    if (optind >= argc)
        return 2;
    if (strcmp(argv[optind], "boot") == 0) {
        if (pread(f.kernel_fd, f.mode, sizeof(f.mode) - 1, 0) < 0)
            fake_die("kernel");
        boot(&f);
    }
    if (pread(f.image_fd, f.mode, sizeof(f.mode) - 1, 0) < 0)
        fake_die("image");
    restore(&f);
    return 0;
}
