/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/snapshots.h"

#include "api/daemon/guest_session.h"
#include "api/daemon/snapshot_files.h"
#include "api/daemon/vm.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAKING_NAME     "snapshot-in-the-making"
#define SAVE_TIMEOUT_MS 120000ull
#define CONSOLE_TAIL    1500u
#define RETRY_SECONDS   30u
#define MS              1000000ull

struct snapshots {
    struct snapshots_config config;
    pthread_t thread;
    struct snapshot_inputs inputs; /* the thread's own */
    char key[SNAPSHOT_KEY_SIZE];
    int kernel_fd;
    int image_fd;
    int state_fd;
    int memory_fd;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    enum snapshots_state state;
    char text[ERR_MESSAGE_MAX];
    bool stopping;
    struct vm *booting; /* so that stopping can end a boot */
};

static void say(struct snapshots *s, enum snapshots_state state, const char *text)
{
    (void)pthread_mutex_lock(&s->lock);
    s->state = state;
    (void)snprintf(s->text, sizeof(s->text), "%s", text);
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

static int open_input(const char *path, const char *what, char digest[SHA256_HEX_SIZE],
                      int *ret_fd, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open the %s %s", what, path);
    r = sha256_of_fd(fd, digest);
    if (r < 0) {
        fd_close(&fd);
        return err_set_errno(err, -r, "cannot read the %s %s", what, path);
    }
    *ret_fd = fd;
    return 0;
}

/* Opens and digests everything that shapes the snapshot. */
static int read_inputs(struct snapshots *s, struct err *err)
{
    _cleanup_fd_ int vmm_fd = -1;
    int r;

    fd_close(&s->kernel_fd);
    fd_close(&s->image_fd);
    s->inputs.memory_mib = s->config.memory_mib;
    r = open_input(s->config.kernel_path, "guest kernel", s->inputs.kernel, &s->kernel_fd, err);
    if (r == 0)
        r = open_input(s->config.image_path, "guest image", s->inputs.image, &s->image_fd, err);
    if (r == 0)
        r = open_input(s->config.vmm_program, "program", s->inputs.vmm, &vmm_fd, err);
    if (r == 0)
        r = vm_query(s->config.vmm_program, "fingerprint", s->inputs.fingerprint,
                     sizeof(s->inputs.fingerprint), err);
    if (r == 0 && snapshot_inputs_key(&s->inputs, s->key) < 0)
        r = err_set(err, ENOMEM, "out of memory");
    return r;
}

static int open_files(int dir, int flags, int *ret_state, int *ret_memory, struct err *err)
{
    _cleanup_fd_ int state = openat(dir, "state", flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    _cleanup_fd_ int memory = openat(dir, "memory", flags | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (state < 0 || memory < 0)
        return err_set_errno(err, errno, "cannot open the files of the snapshot");
    *ret_state = fd_steal(&state);
    *ret_memory = fd_steal(&memory);
    return 0;
}

/* Opens the snapshot of this key and checks it. -ENOENT without a message when there is none.
 */
static int load(struct snapshots *s, struct err *err)
{
    _cleanup_fd_ int dir =
        openat(s->config.snapshots_fd, s->key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int state = -1;
    _cleanup_fd_ int memory = -1;
    struct snapshot_contents contents = {0};
    int r;

    if (dir < 0)
        return errno == ENOENT ? -ENOENT : err_set_errno(err, errno, "cannot open its folder");
    r = snapshot_manifest_check(dir, s->key, &s->inputs, &contents, err);
    if (r == 0)
        r = open_files(dir, O_RDONLY, &state, &memory, err);
    if (r == 0)
        r = snapshot_contents_check(state, memory, &contents, err);
    if (r < 0)
        return r;
    s->state_fd = fd_steal(&state);
    s->memory_fd = fd_steal(&memory);
    return 0;
}

/* Logs the end of the boot log, so that a boot that failed can be understood. */
static void log_console(int dir)
{
    _cleanup_fd_ int fd = openat(dir, "boot.log", O_RDONLY | O_CLOEXEC);
    char tail[CONSOLE_TAIL + 1];
    char *rest = tail, *line;
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    n = fd_pread_full(fd, tail, CONSOLE_TAIL,
                      st.st_size > CONSOLE_TAIL ? (uint64_t)st.st_size - CONSOLE_TAIL : 0);
    if (n < 0)
        return;
    tail[n] = '\0';
    while ((line = strsep(&rest, "\r\n"))) {
        if (*line)
            log_warn("snapshot", "console=%s", line);
    }
}

/* Boots, waits until the guest is ready, and saves it into the open files. */
static int boot_and_save(struct snapshots *s, struct vm *vm, int state, int memory,
                         uint64_t *ret_boot_ms, struct err *err)
{
    uint64_t start_ns = clock_monotonic_ns();
    struct vmm_event event;
    int r = guest_session_wait_ready(vm, start_ns + s->config.boot_timeout_ms * MS, err);

    if (r < 0)
        return r;
    *ret_boot_ms = (clock_monotonic_ns() - start_ns) / MS;
    fd_close(&vm->vsock_fd);
    say(s, SNAPSHOTS_PREPARING, "saving the guest");
    r = vm_send_snapshot(vm, state, memory, err);
    if (r == 0)
        r = vm_wait_event(vm, VMM_EVENT_SNAPSHOT, clock_monotonic_ns() + SAVE_TIMEOUT_MS * MS,
                          &event, err);
    return r;
}

static int boot(struct snapshots *s, int dir, int state, int memory, uint64_t *ret_boot_ms,
                struct err *err)
{
    _cleanup_fd_ int console =
        openat(dir, "boot.log", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    const struct vm_boot how = {.program = s->config.vmm_program,
                                .kernel_fd = s->kernel_fd,
                                .image_fd = s->image_fd,
                                .console_fd = console,
                                .memory_mib = s->config.memory_mib};
    struct vm vm = vm_init();
    int r;

    (void)pthread_mutex_lock(&s->lock);
    r = s->stopping ? -ECANCELED : vm_start_boot(&how, &vm, err);
    s->booting = r == 0 ? &vm : NULL;
    (void)pthread_mutex_unlock(&s->lock);
    if (r < 0)
        return r;
    r = boot_and_save(s, &vm, state, memory, ret_boot_ms, err);
    (void)pthread_mutex_lock(&s->lock);
    s->booting = NULL;
    (void)pthread_mutex_unlock(&s->lock);
    vm_finish(&vm);
    return r;
}

/* Makes the snapshot in a temporary folder and moves it to its place. */
static int make(struct snapshots *s, struct err *err)
{
    _cleanup_fd_ int dir = -1;
    _cleanup_fd_ int state = -1;
    _cleanup_fd_ int memory = -1;
    struct snapshot_contents contents = {0};
    int r;

    snapshot_remove(s->config.tmp_fd, MAKING_NAME);
    if (mkdirat(s->config.tmp_fd, MAKING_NAME, 0700) < 0)
        return err_set_errno(err, errno, "cannot create a folder for the snapshot");
    dir = openat(s->config.tmp_fd, MAKING_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, errno, "cannot open the folder of the snapshot");
    r = open_files(dir, O_CREAT | O_EXCL | O_RDWR, &state, &memory, err);
    if (r == 0)
        r = boot(s, dir, state, memory, &contents.boot_ms, err);
    if (r < 0)
        log_console(dir);
    if (r == 0)
        r = snapshot_contents_seal(state, memory, &contents, err);
    if (r == 0)
        r = snapshot_manifest_write(dir, s->key, &s->inputs, &contents, err);
    if (r == 0 && fsync(dir) < 0)
        r = err_set_errno(err, errno, "cannot write the folder of the snapshot to disk");
    if (r == 0) {
        snapshot_remove(s->config.snapshots_fd, s->key);
        if (renameat(s->config.tmp_fd, MAKING_NAME, s->config.snapshots_fd, s->key) < 0 ||
            fsync(s->config.snapshots_fd) < 0)
            r = err_set_errno(err, errno, "cannot store the snapshot");
    }
    if (r < 0) {
        snapshot_remove(s->config.tmp_fd, MAKING_NAME);
        return r;
    }
    fd_close(&state);
    fd_close(&memory);
    log_info("snapshot", "made key=%.16s boot_ms=%llu state_bytes=%llu", s->key,
             (unsigned long long)contents.boot_ms, (unsigned long long)contents.state_bytes);
    return open_files(dir, O_RDONLY, &s->state_fd, &s->memory_fd, err);
}

/* Removes the snapshots of other keys: nothing will ever ask for them again. */
static void remove_others(struct snapshots *s)
{
    int fd = openat(s->config.snapshots_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        fd_close(&fd);
        return;
    }
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, s->key) == 0)
            continue;
        snapshot_remove(s->config.snapshots_fd, entry->d_name);
        log_info("snapshot", "removed key=%.16s reason=\"made from other inputs\"",
                 entry->d_name);
    }
    (void)closedir(dir);
}

static int prepare(struct snapshots *s, struct err *err)
{
    uint64_t start_ns = clock_monotonic_ns();
    struct err refused = {0};
    int r;

    say(s, SNAPSHOTS_PREPARING, "reading kernel and image");
    r = read_inputs(s, err);
    if (r < 0)
        return r;
    say(s, SNAPSHOTS_PREPARING, "checking the snapshot");
    r = load(s, &refused);
    if (r == 0) {
        log_info("snapshot", "loaded key=%.16s ms=%llu", s->key,
                 (unsigned long long)((clock_monotonic_ns() - start_ns) / MS));
    } else {
        log_info("snapshot", "making key=%.16s reason=\"%s\"", s->key,
                 refused.code ? refused.message : "there is none yet");
        say(s, SNAPSHOTS_PREPARING, "booting the guest once");
        r = make(s, err);
    }
    if (r == 0)
        remove_others(s);
    return r;
}

/* Waits a while before the next try. False when it is time to stop. */
static bool wait_retry(struct snapshots *s)
{
    struct timespec until;
    bool stopping;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RETRY_SECONDS;
    (void)pthread_mutex_lock(&s->lock);
    while (!s->stopping && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        ;
    stopping = s->stopping;
    (void)pthread_mutex_unlock(&s->lock);
    return !stopping;
}

static void *prepare_thread(void *arg)
{
    struct snapshots *s = arg;

    do {
        struct err err = {0};
        bool stopping;

        if (prepare(s, &err) == 0) {
            say(s, SNAPSHOTS_READY, "ok");
            return NULL;
        }
        (void)pthread_mutex_lock(&s->lock);
        stopping = s->stopping;
        (void)pthread_mutex_unlock(&s->lock);
        if (stopping)
            return NULL;
        log_error("snapshot", "failed retry_s=%u reason=\"%s\"", RETRY_SECONDS, err.message);
        say(s, SNAPSHOTS_FAILED, err.message);
    } while (wait_retry(s));
    return NULL;
}

int snapshots_create(const struct snapshots_config *config, struct snapshots **ret,
                     struct err *err)
{
    struct snapshots *s = calloc(1, sizeof(*s));
    pthread_condattr_t attr;
    int r;

    if (!s)
        return err_set(err, ENOMEM, "out of memory");
    s->config = *config;
    s->kernel_fd = s->image_fd = s->state_fd = s->memory_fd = -1;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    r = pthread_create(&s->thread, NULL, prepare_thread, s);
    if (r != 0) {
        free(s);
        return err_set_errno(err, r, "cannot start a thread");
    }
    *ret = s;
    return 0;
}

void snapshots_destroy(struct snapshots *s)
{
    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->stopping = true;
    if (s->booting)
        vm_kill(s->booting);
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    fd_close(&s->kernel_fd);
    fd_close(&s->image_fd);
    fd_close(&s->state_fd);
    fd_close(&s->memory_fd);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

enum snapshots_state snapshots_get_state(struct snapshots *s, char *text, unsigned size)
{
    enum snapshots_state state;

    (void)pthread_mutex_lock(&s->lock);
    state = s->state;
    (void)snprintf(text, size, "%s", s->text);
    (void)pthread_mutex_unlock(&s->lock);
    return state;
}

int snapshots_wait(struct snapshots *s, bool (*cancelled)(void *ctx), void *ctx,
                   struct snapshot_view *ret, struct err *err)
{
    int r = 0;

    (void)pthread_mutex_lock(&s->lock);
    while (r == 0 && s->state == SNAPSHOTS_PREPARING) {
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 100000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        (void)pthread_cond_timedwait(&s->changed, &s->lock, &until);
        if (s->stopping || cancelled(ctx))
            r = -ECANCELED;
    }
    if (r == 0 && s->state == SNAPSHOTS_FAILED)
        r = err_set(err, ENODEV, "there is no snapshot to start from: %s", s->text);
    if (r == 0)
        *ret = (struct snapshot_view){.key = s->key,
                                      .image_fd = s->image_fd,
                                      .state_fd = s->state_fd,
                                      .memory_fd = s->memory_fd};
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}
