/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/zygote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dotted.h"
#include "base/fd.h"
#include "guest-init/skill.h"

#define MESSAGE_MAX (8u << 20)

/* Gives back the mapping that the zygote shares, or NULL: it then ends as any process. */
static struct zygote_end *share_end(int control)
{
    char byte = 'e';
    struct iovec text = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } with = {0};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = with.room,
                             .msg_controllen = sizeof(with.room)};
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    _cleanup_fd_ int fd = memfd_create("end", MFD_CLOEXEC);
    struct zygote_end *end;

    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return NULL;
    end = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (end == MAP_FAILED)
        return NULL;
    with.header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&with.header), &fd, sizeof(int));
    if (sendmsg(control, &message, MSG_NOSIGNAL) < 0) {
        (void)munmap(end, size);
        return NULL;
    }
    return end;
}

bool zygote_is_over(const struct zygote *z, uint8_t *ret_status)
{
    if (!z->end || __atomic_load_n(&z->end->is_over, __ATOMIC_ACQUIRE) != 1)
        return false;
    *ret_status = (uint8_t)z->end->status;
    return true;
}

void zygote_stop(struct zygote *z)
{
    if (z->pid > 0) {
        (void)kill(z->pid, SIGKILL);
        while (waitpid(z->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    z->pid = 0;
    fd_close(&z->control);
    if (z->end)
        (void)munmap(z->end, (size_t)sysconf(_SC_PAGESIZE));
    z->end = NULL;
}

static int wait_warm(int control, int timeout_ms, struct err *err)
{
    uint64_t deadline = clock_monotonic_ns() + (uint64_t)timeout_ms * 1000000u;
    struct pollfd p = {.fd = control, .events = POLLIN};
    char byte;
    int n;

    do
        n = poll(&p, 1, clock_timeout_ms(deadline));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set_errno(err, errno, "cannot wait for the zygote");
    if (n == 0)
        return err_set(err, ETIMEDOUT, "zygote not warm after %d ms", timeout_ms);
    if (read(control, &byte, 1) != 1)
        return err_set(err, EPIPE, "zygote ended before it was warm");
    return 0;
}

/* How an interpreter is brought to load what it waits in. */
static int start_environment(const struct sandbox *sb, enum run_lang lang,
                             struct run_strings *ret_env)
{
    const char *dir = sb->config->zygote_dirs[lang];
    const struct run none = {0};
    char option[SANDBOX_PATH_MAX];

    (void)skill_environment(sb, &none, NULL, ret_env);
    if (lang == RUN_LANG_PYTHON)
        return run_strings_add_env(ret_env, "PYTHONPATH", dir);
    (void)snprintf(option, sizeof(option), "--require=%s/node.cjs", dir);
    return run_strings_add_env(ret_env, "NODE_OPTIONS", option);
}

/*
 * The script is never opened: the zygote replaces it by the run's before it would be. To Node
 * what begins with a hyphen is no path, and it asks process.argv for one when it needs it.
 */
static int start_arguments(const char *program, enum run_lang lang,
                           struct run_strings *ret_argv)
{
    (void)run_strings_add(ret_argv, program, strlen(program));
    if (lang == RUN_LANG_PYTHON)
        return run_strings_add(ret_argv, "skill", strlen("skill"));
    (void)run_strings_add(ret_argv, "--", strlen("--"));
    return run_strings_add(ret_argv, "-skill", strlen("-skill"));
}

static int spawn(const struct sandbox *sb, enum run_lang lang, int extra_fd, pid_t *ret_pid,
                 struct err *err)
{
    const struct run run = {.lang = lang};
    const char *program = skill_interpreter(sb, &run);
    _cleanup_run_strings_ struct run_strings argv = {0};
    _cleanup_run_strings_ struct run_strings env = {0};
    struct skill_command command = {.path = program, .cwd = "/", .extra_fd = extra_fd};

    if (!program)
        return err_set(err, ENOENT, "there is no interpreter for the zygote");
    if (start_environment(sb, lang, &env) < 0 || start_arguments(program, lang, &argv) < 0)
        return err_set_errno(err, ENOMEM, "zygote");
    command.argv = argv.items;
    command.env = env.items;
    return skill_spawn(sb, &command, ret_pid, err);
}

static int start(const struct sandbox *sb, int timeout_ms, struct zygote *z, struct err *err)
{
    int pair[2];
    int r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set_errno(err, errno, "cannot make a socket pair");
    z->control = pair[0];
    z->end = share_end(z->control);
    r = spawn(sb, z->lang, pair[1], &z->pid, err);
    fd_close(&pair[1]);
    return r < 0 ? r : wait_warm(z->control, timeout_ms, err);
}

int zygote_start(const struct sandbox *sb, enum run_lang lang, int timeout_ms,
                 struct zygote *ret_zygote, struct err *err)
{
    struct zygote z = ZYGOTE_NONE;
    int r;

    z.lang = lang;
    r = start(sb, timeout_ms, &z, err);
    if (r < 0) {
        zygote_stop(&z);
        return r;
    }
    *ret_zygote = z;
    return 0;
}

static bool begins_with_one_of(const char *variable, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (strncmp(variable, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

/* Variables that libc or the interpreter reads at its start, before a zygote could be told. */
static bool shapes_startup(enum run_lang lang, const char *variable)
{
    static const char *const any[] = {"LC_",     "LANG=",           "LANGUAGE=", "LD_",
                                      "MALLOC_", "GLIBC_TUNABLES=", "LOCPATH=",  "GCONV_",
                                      "PATH=",   "HOME=",           NULL};
    static const char *const python[] = {"PYTHON", NULL};
    /* Of Node's own, NODE_ENV is the scripts' to read. */
    static const char *const node[] = {"NODE_D", "NODE_N", "ICU_", "OPENSSL_",
                                       "SSL_",   "UV_",    NULL};

    return begins_with_one_of(variable, any) ||
           begins_with_one_of(variable, lang == RUN_LANG_PYTHON ? python : node);
}

/* Variables that modules worth warming, or libraries below them, read when they are loaded. */
static bool shapes_warmed(const char *variable)
{
    static const char *const prefixes[] = {"GOTOBLAS_",      "NPY_",      "NUMPY_",   "OMP_",
                                           "OPENBLAS_",      "OPENPYXL_", "OPENSSL_", "PILLOW_",
                                           "SQLITE_TMPDIR=", "TMPDIR=",   NULL};

    return begins_with_one_of(variable, prefixes);
}

bool zygote_fits(const struct zygote *z, const struct run *run)
{
    if (z->pid == 0 || run->lang != z->lang)
        return false;
    for (size_t i = 0; i < run->env.count; i++)
        if (shapes_startup(z->lang, run->env.items[i]) ||
            (z->warmed && shapes_warmed(run->env.items[i])))
            return false;
    return true;
}

static void put(struct buf *b, const char *text)
{
    (void)buf_append(b, text, strlen(text) + 1);
}

static void put_all(struct buf *b, const struct run_strings *list)
{
    for (size_t i = 0; i < list->count; i++)
        put(b, list->items[i]);
}

/* Writes the length in front of a message that began with room for it. 0 or the buffer's error.
 */
static int seal(struct buf *message)
{
    struct bytes_writer w;

    if (message->error)
        return message->error;
    w = bytes_writer_init(message->data, 4);
    bytes_put_u32(&w, (uint32_t)(message->len - 4));
    return 0;
}

static int make_message(const struct sandbox *sb, const struct run *run,
                        const struct run_strings *env, struct buf *message)
{
    char cwd[SANDBOX_PATH_MAX];
    char count[24];
    _cleanup_free_ char *target = NULL;
    int r = skill_target(sb, run, &target);

    if (r < 0)
        return r;
    skill_cwd(sb, run, cwd);
    (void)snprintf(count, sizeof(count), "%zu", run->args.count);
    (void)buf_append(message, "\0\0\0\0", 4);
    put(message, run->mode == PROTO_MODE_MODULE ? "module" : "file");
    put(message, cwd);
    put(message, target);
    put(message, count);
    put_all(message, &run->args);
    put_all(message, env);
    return seal(message);
}

/* The "warm" message: every name is checked, since it goes into an import. */
static int make_warm_message(const char *names, size_t len, struct buf *message,
                             struct err *err)
{
    const char *end = names + len;

    if (len == 0 || len > PROTO_WARM_MAX)
        return err_set(err, EPROTO, "WARM is no list of modules");
    (void)buf_append(message, "\0\0\0\0warm", sizeof("\0\0\0\0warm"));
    for (;;) {
        const char *plus = memchr(names, '+', (size_t)(end - names));
        size_t n = (size_t)((plus ? plus : end) - names);

        if (!dotted_is_name(names, n))
            return err_set(err, EPROTO, "WARM is no list of modules");
        (void)buf_append(message, names, n);
        (void)buf_append(message, "", 1);
        if (!plus)
            return seal(message);
        names = plus + 1;
    }
}

static int warm(const struct zygote *z, const char *names, size_t len, int timeout_ms,
                struct err *err)
{
    _cleanup_buf_ struct buf message = buf_init(2 * PROTO_WARM_MAX);
    int r = make_warm_message(names, len, &message, err);

    if (r < 0)
        return r;
    if (z->pid == 0)
        return err_set(err, ENOENT, "there is no zygote to warm");
    r = fd_write_full(z->control, message.data, message.len);
    return r < 0 ? r : wait_warm(z->control, timeout_ms, err);
}

int zygote_warm(struct zygote *z, const char *names, size_t len, int timeout_ms,
                struct err *err)
{
    int r = warm(z, names, len, timeout_ms, err);

    if (r < 0) {
        zygote_stop(z);
        return err_set_errno(err, -r, "cannot warm the zygote");
    }
    z->warmed = true;
    return 0;
}

static int tell(const struct zygote *z, const struct sandbox *sb, const struct run *run,
                const struct run_strings *env)
{
    _cleanup_buf_ struct buf message = buf_init(MESSAGE_MAX);
    int r = make_message(sb, run, env, &message);

    return r < 0 ? r : fd_write_full(z->control, message.data, message.len);
}

int zygote_run(struct zygote *z, const struct sandbox *sb, const struct run *run,
               const struct run_strings *env, pid_t *ret_pid, struct err *err)
{
    int r = tell(z, sb, run, env);

    if (r < 0) {
        zygote_stop(z);
        return err_set_errno(err, -r, "cannot tell the zygote what to run");
    }
    *ret_pid = z->pid;
    z->pid = 0;
    fd_close(&z->control);
    return 0;
}
