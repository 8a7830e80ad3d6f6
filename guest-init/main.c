/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of the guest: makes the machine ready, warms the zygotes, listens on the vsock port,
 * serves one execution and ends the machine. It must never exit: the kernel would panic.
 */
#include <errno.h>
#include <linux/vm_sockets.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "guest-init/boot.h"
#include "guest-init/net.h"
#include "guest-init/sandbox.h"
#include "guest-init/server.h"
#include "guest-init/zygote.h"

#define COMPONENT "init"
/* A counting software host takes a minute where a real machine takes 100 ms. */
#define ZYGOTE_TIMEOUT_MS 120000

static struct sandbox_config config = {
    .root = "",
    .zygote_dirs = {[RUN_LANG_PYTHON] = "/usr/lib/skillvm/zygote",
                    [RUN_LANG_NODE] = "/usr/lib/skillvm/zygote-node"},
    .dns_port = NET_DNS_PORT,
    .isolated = true,
};

static void __attribute__((noreturn)) end_machine(void)
{
    sync();
    /* With reboot=t the kernel ends in a triple fault, which the VMM sees as a shutdown. */
    (void)reboot(RB_AUTOBOOT);
    for (;;)
        (void)pause();
}

/* The first that is there, else the last, whose absence is then told. */
static const char *find_program(const char *const *paths)
{
    while (paths[1] && access(paths[0], X_OK) < 0)
        paths++;
    return paths[0];
}

/* As a skill's PATH would have them: an image that was made elsewhere may keep them anywhere.
 */
static void find_interpreters(void)
{
    static const char *const python[] = {"/usr/local/bin/python3", "/usr/bin/python3",
                                         "/bin/python3", NULL};
    static const char *const node[] = {"/usr/local/bin/node", "/usr/bin/node", "/bin/node",
                                       NULL};
    static const char *const bash[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
                                       NULL};

    config.python = find_program(python);
    config.node = find_program(node);
    config.bash = find_program(bash);
}

static int listen_vsock(struct err *err)
{
    _cleanup_fd_ int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_vm address = {
        .svm_family = AF_VSOCK, .svm_port = PROTO_PORT, .svm_cid = VMADDR_CID_ANY};

    if (fd < 0)
        return err_set_errno(err, errno, "cannot make a vsock socket");
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
        return err_set_errno(err, errno, "cannot listen on vsock port %u", PROTO_PORT);
    return fd_steal(&fd);
}

static int open_signals(struct err *err)
{
    sigset_t all;
    int fd;

    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return err_set_errno(err, errno, "cannot block signals");
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? err_set_errno(err, errno, "signalfd") : fd;
}

/* Those whose folders the image has. */
static void warm(const struct sandbox *sb, struct zygote *zygotes)
{
    for (enum run_lang lang = 0; lang < RUN_LANGS; lang++) {
        const char *dir = config.zygote_dirs[lang];
        struct err err = {0};

        if (dir && access(dir, F_OK) == 0 &&
            zygote_start(sb, lang, ZYGOTE_TIMEOUT_MS, &zygotes[lang], &err) < 0)
            log_warn(COMPONENT, "zygote=failed folder=%s reason=\"%s\"", dir, err.message);
    }
}

/* Accepts connections until one has used the machine up. */
static void serve_all(struct server *server, int listener)
{
    enum server_end end = SERVER_UNUSED;

    while (end == SERVER_UNUSED) {
        _cleanup_fd_ int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct err err = {0};

        if (conn < 0) {
            log_warn(COMPONENT, "accept errno=%d", errno);
            continue;
        }
        end = server_serve(server, conn, &err);
        if (err.code)
            log_warn(COMPONENT, "connection reason=\"%s\"", err.message);
    }
}

static int run(struct err *err)
{
    struct zygote zygotes[RUN_LANGS] = {[0 ... RUN_LANGS - 1] = ZYGOTE_NONE};
    struct sandbox sandbox;
    struct server server = {.sandbox = &sandbox, .zygotes = zygotes};
    int listener;
    int r = boot_machine(err);

    if (r < 0)
        return r;
    find_interpreters();
    r = sandbox_open(&sandbox, &config, err);
    if (r < 0)
        return r;
    server.signals = open_signals(err);
    if (server.signals < 0)
        return server.signals;
    listener = listen_vsock(err);
    if (listener < 0)
        return listener;
    warm(&sandbox, zygotes);
    log_info(COMPONENT, "ready port=%u uptime_ms=%llu", PROTO_PORT,
             (unsigned long long)(clock_monotonic_ns() / 1000000u));
    serve_all(&server, listener);
    return 0;
}

int main(void)
{
    struct err err = {0};

    if (getpid() != 1) {
        log_error(COMPONENT, "this program is PID 1 of a skillvm guest");
        return EXIT_FAILURE;
    }
    if (run(&err) < 0)
        log_error(COMPONENT, "reason=\"%s\"", err.message);
    end_machine();
}
