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
#include "tests/unit/fake_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_SIZE (8u << 20)

/* Nothing of the daemon's but what it meant to give. */
static void check_descriptors(int expected)
{
    int n = 0;

    for (int fd = 3; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    if (n == expected)
        return;
    for (int fd = 3; fd < 1024; fd++) {
        char path[32], target[256] = "";

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) >= 0)
            fprintf(stderr, "fake_vmm: descriptor %d is %s\n", fd, target);
    }
    errno = EMFILE;
    fake_die("inherited descriptors");
}

/* What others have, too, is only read: a VMM that was taken over must not be able to write to
 * it. */
static void check_read_only(int fd)
{
    if (fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
        fake_die("a file that can be written to");
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
    buf_clear(&f->session);
    f->has_session = false;
    fake_disk_forget(f);
    f->behaviour[0] = f->payload[0] = '\0';
    f->is_probe = false;
    f->skill_bytes = 0;
    f->packages_bytes = 0;
    f->skill_crc = 0;
}

enum step {
    STEP_END,
    STEP_RESUMED,
    STEP_RESET,
    STEP_CONNECTED,
    STEP_READY,
    STEP_READY_99, /* of another protocol */
    STEP_OLD_ENDS, /* what is left of the run before has nobody at the other end */
    STEP_FAIL_STATE,
    STEP_FAIL_DIFFERENCE,
    STEP_FAIL_KVM,
    STEP_EXITED,
    STEP_TALK,
    STEP_MOMENT, /* time for what must not be waited for */
    STEP_WHILE,
    STEP_PAUSE,
    STEP_BURN,
    STEP_BLIP,
    STEP_EXIT,
    STEP_EXIT_1,
    STEP_EXIT_FIRST, /* where none has before it */
    STEP_ABORT,
    STEP_FLOOD,
};

/* What is said before RUN. A machine of another name does as the first of its kind. */
static const struct script {
    const char *name;
    enum step steps[7];
} scripts[] = {
    {"boot", {STEP_RESUMED, STEP_CONNECTED}},
    {"boot=failed", {STEP_FAIL_KVM, STEP_EXIT_1}},
    {"boot=die-first", {STEP_RESUMED, STEP_EXIT_FIRST, STEP_CONNECTED}},
    {"boot=flood", {STEP_FLOOD}},
    {"boot=silent", {STEP_PAUSE}},
    {"boot=slower", {STEP_RESUMED, STEP_CONNECTED, STEP_WHILE, STEP_WHILE, STEP_WHILE}},
    {"restore", {STEP_RESUMED, STEP_CONNECTED, STEP_READY}},
    {"restore=die", {STEP_EXIT_1}},
    {"restore=die-first", {STEP_EXIT_FIRST, STEP_RESUMED, STEP_CONNECTED, STEP_READY}},
    {"restore=failed", {STEP_FAIL_STATE, STEP_EXIT_1}},
    {"restore=silent", {STEP_RESUMED, STEP_PAUSE}},
    {"restore=version", {STEP_RESUMED, STEP_CONNECTED, STEP_READY_99}},
    {"reset", {STEP_RESET, STEP_CONNECTED, STEP_READY}},
    {"reset-late", {STEP_RESET, STEP_CONNECTED, STEP_READY, STEP_OLD_ENDS}},
    {"reset-hang", {STEP_PAUSE}},
    {"reset-die", {STEP_ABORT}},
    {"reset-fail", {STEP_FAIL_DIFFERENCE, STEP_EXIT_1}},
    {"reset-unready", {STEP_RESET, STEP_PAUSE}},
    {"reset-slow", {STEP_RESET, STEP_WHILE, STEP_CONNECTED, STEP_READY}},
    /* The guest is quicker than what is said of it. */
    {"reset-order", {STEP_RESET, STEP_READY, STEP_MOMENT, STEP_CONNECTED}},
    {"reset-more", {STEP_RESET, STEP_READY, STEP_READY, STEP_MOMENT, STEP_CONNECTED}},
    {"parked-die", {STEP_RESET, STEP_CONNECTED, STEP_READY, STEP_WHILE, STEP_EXIT}},
    {"parked-talk", {STEP_RESET, STEP_CONNECTED, STEP_READY, STEP_WHILE, STEP_TALK}},
    {"parked-event", {STEP_RESET, STEP_CONNECTED, STEP_READY, STEP_WHILE, STEP_EXITED}},
    {"parked-burn", {STEP_RESET, STEP_CONNECTED, STEP_READY, STEP_WHILE, STEP_BURN}},
    {"parked-blip", {STEP_RESET, STEP_CONNECTED, STEP_READY, STEP_WHILE, STEP_BLIP}},
};

static void expect_old_end(struct fake *f)
{
    struct pollfd p = {.fd = f->old_fd};

    if (poll(&p, 1, 60000) != 1 || fd_write_full(f->old_fd, "late", 4) == 0)
        fake_die("the stream of the run before is still open");
    fd_close(&f->old_fd);
}

/* Until so much processor time is gone; 0: for ever. */
static void burn(clock_t us)
{
    while (us == 0 || clock() < us)
        ;
}

/* What a process that was taken over writes to the operator's log. */
static _Noreturn void flood(void)
{
    for (;;)
        fputs("error \"engine\" \033[31m\302\233forged\n", stderr);
}

/* All machines have the same open file, which is told what it reads from. */
bool fake_is_first(const struct fake *f)
{
    bool is = lseek(f->image_fd, 0, SEEK_CUR) == 0;

    (void)lseek(f->image_fd, 1, SEEK_SET);
    return is;
}

static void take_step(struct fake *f, enum step step)
{
    static const struct {
        enum vmm_event_type type;
        const char *message;
    } events[] = {
        [STEP_RESUMED] = {VMM_EVENT_RESUMED, ""},
        [STEP_RESET] = {VMM_EVENT_RESET, ""},
        [STEP_CONNECTED] = {VMM_EVENT_CONNECTED, ""},
        [STEP_EXITED] = {VMM_EVENT_EXITED, ""},
        [STEP_FAIL_STATE] = {VMM_EVENT_FAILED, "state: made-up refusal"},
        [STEP_FAIL_DIFFERENCE] = {VMM_EVENT_FAILED, "a made-up difference"},
        [STEP_FAIL_KVM] = {VMM_EVENT_FAILED, "no KVM today"},
    };

    if (step < sizeof(events) / sizeof(events[0]) && events[step].message)
        fake_event(f, events[step].type, events[step].message);
    else if (step == STEP_READY || step == STEP_READY_99)
        fake_send_ready(f, step == STEP_READY ? PROTO_VERSION : 99);
    else if (step == STEP_OLD_ENDS)
        expect_old_end(f);
    else if (step == STEP_TALK)
        fake_send_text(f, PROTO_STDOUT, "psst");
    else if (step == STEP_MOMENT || step == STEP_WHILE)
        usleep(step == STEP_MOMENT ? 200000 : 1000000);
    else if (step == STEP_PAUSE && prctl(PR_SET_NAME, "pausing") == 0)
        pause();
    else if (step == STEP_ABORT)
        abort();
    else if (step == STEP_EXIT || step == STEP_EXIT_1)
        _exit(step == STEP_EXIT_1);
    else if (step == STEP_EXIT_FIRST && fake_is_first(f))
        _exit(1);
    else if (step == STEP_BURN)
        burn(0);
    else if (step == STEP_BLIP)
        burn(300000);
    else if (step == STEP_FLOOD)
        flood();
}

/* The script of this name, else the one of usual. */
static void play(struct fake *f, const char *name, const char *usual)
{
    const struct script *found = NULL;

    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (strcmp(scripts[i].name, name) == 0 ||
            (!found && strcmp(scripts[i].name, usual) == 0))
            found = &scripts[i];
    }
    for (const enum step *step = found->steps; *step != STEP_END; step++)
        take_step(f, *step);
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
    play(f, how, "reset");
}

static void check_files(const struct fake *f)
{
    char text[16] = {0};

    if (pread(f->state_fd, text, sizeof(text) - 1, 0) < 0 || strcmp(text, "fake state") != 0)
        fake_die("state");
    if (strcmp(f->mode, "restore") == 0 &&
        (pread(f->working_set_fd, text, 10, 0) != 10 || memcmp(text, "fake pages", 10) != 0))
        fake_die("working set");
}

static void restore(struct fake *f)
{
    check_descriptors(5 + (f->working_set_fd >= 0) + (f->record_fd >= 0));
    check_read_only(f->image_fd);
    if (f->record_fd >= 0)
        record(f);
    check_read_only(f->state_fd);
    check_read_only(f->memory_fd);
    check_read_only(f->working_set_fd);
    check_files(f);
    play(f, f->mode, "restore");
    for (;;) {
        fake_take_injection(f);
        f->runs++;
        fake_behave(f);
        /* The daemon kills when it has what it wants, or has another job. */
        obey_reset(f);
    }
}

/* Until the host closes; what it wants warmed and held is, but "refused". */
static void warm(struct fake *f)
{
    bool is_holding = false;
    char next;

    while (recv(f->vsock_fd, &next, 1, MSG_PEEK) == 1) {
        uint8_t *data;
        size_t len;
        uint8_t type = fake_receive_frame(f, &data, &len);

        if (type != (is_holding ? PROTO_PACKAGES : PROTO_WARM) && type != PROTO_HOLD)
            fake_die("WARM or HOLD");
        is_holding = type == PROTO_HOLD || (is_holding && len > 0);
        if (type == PROTO_WARM && strstr((const char *)data, "refused"))
            fake_send_text(f, PROTO_FAIL, "no module of this name");
        else if (!is_holding)
            fake_send_frame(f, PROTO_WARMED, NULL, 0);
        free(data);
    }
}

static void boot(struct fake *f)
{
    struct vmm_command command;
    uint8_t page[4096] = "a page";
    int fds[2];
    size_t n = 0;

    check_descriptors(5);
    check_read_only(f->kernel_fd);
    check_read_only(f->image_fd);
    play(f, f->mode, "boot");
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

/* This process's number outside of its PID namespace, whose /proc it was given. */
static int pid_outside(int proc_fd)
{
    char number[16] = "";

    return readlinkat(proc_fd, "self", number, sizeof(number) - 1) < 0 ? -1 : atoi(number);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"kvm-fd", required_argument, NULL, 'K'},
                                          {"proc-fd", required_argument, NULL, 'P'},
                                          {"control-fd", required_argument, NULL, 'c'},
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
                     .files_in = buf_init(1u << 28),
                     .session = buf_init(1u << 28)};
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
        if (option == 'P')
            f.pid = pid_outside(atoi(optarg));
        if (option == 'P' || option == 'K')
            close(atoi(optarg));
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
