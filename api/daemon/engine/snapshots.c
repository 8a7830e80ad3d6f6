/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/snapshots.h"

#include "api/daemon/engine/guest_session.h"
#include "api/daemon/engine/snapshot_files.h"
#include "api/daemon/engine/vm.h"
#include "api/daemon/engine/warmup.h"
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
    struct snapshot_fds files;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    enum snapshots_state state;
    char text[ERR_MESSAGE_MAX];
    bool stopping;
    struct vm *vm; /* at work for us, so that stopping can end it; else NULL */
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

static void close_files(struct snapshot_fds *files)
{
    fd_close(&files->state);
    fd_close(&files->memory);
    fd_close(&files->working_set);
}

static const struct snapshot_fds no_files = {-1, -1, -1};

/* Opens the files; working-set only where with_working_set says that there is one. */
static int open_files(int dir, int flags, bool with_working_set, struct snapshot_fds *ret,
                      struct err *err)
{
    struct snapshot_fds files = no_files;

    flags |= O_CLOEXEC | O_NOFOLLOW;
    files.state = openat(dir, "state", flags, 0600);
    if (files.state >= 0)
        files.memory = openat(dir, "memory", flags, 0600);
    if (files.memory >= 0 && with_working_set)
        files.working_set = openat(dir, "working-set", flags, 0600);
    if (files.memory < 0 || (with_working_set && files.working_set < 0)) {
        int code = errno;

        close_files(&files);
        return err_set_errno(err, code, "cannot open the files of the snapshot");
    }
    *ret = files;
    return 0;
}

/* Opens the snapshot of this key and checks it. -ENOENT without a message when there is none.
 */
static int load(struct snapshots *s, struct err *err)
{
    _cleanup_fd_ int dir =
        openat(s->config.snapshots_fd, s->key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct snapshot_fds files = no_files;
    struct snapshot_contents contents = {0};
    int r;

    if (dir < 0)
        return errno == ENOENT ? -ENOENT : err_set_errno(err, errno, "cannot open its folder");
    r = snapshot_manifest_check(dir, s->key, &s->inputs, &contents, err);
    if (r == 0)
        r = open_files(dir, O_RDONLY, contents.working_set_bytes > 0, &files, err);
    if (r == 0)
        r = snapshot_contents_check(&files, &contents, err);
    if (r < 0)
        close_files(&files);
    else
        s->files = files;
    return r;
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
static int boot_and_save(struct snapshots *s, struct vm *vm, const struct snapshot_fds *files,
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
    r = vm_send_snapshot(vm, files->state, files->memory, err);
    if (r == 0)
        r = vm_wait_event(vm, VMM_EVENT_SNAPSHOT, clock_monotonic_ns() + SAVE_TIMEOUT_MS * MS,
                          &event, err);
    return r;
}

/* Starts a machine that stopping can end: boot or restore is NULL. finish_vm is due on 0. */
static int start_vm(struct snapshots *s, const struct vm_boot *boot,
                    const struct vm_restore *restore, struct vm *vm, struct err *err)
{
    int r;

    (void)pthread_mutex_lock(&s->lock);
    if (s->stopping)
        r = err_set(err, ECANCELED, "the daemon is stopping");
    else
        r = boot ? vm_start_boot(boot, vm, err) : vm_start_restore(restore, vm, err);
    s->vm = r == 0 ? vm : NULL;
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}

static void finish_vm(struct snapshots *s, struct vm *vm)
{
    (void)pthread_mutex_lock(&s->lock);
    s->vm = NULL;
    (void)pthread_mutex_unlock(&s->lock);
    vm_finish(vm);
}

static int boot(struct snapshots *s, int dir, const struct snapshot_fds *files,
                uint64_t *ret_boot_ms, struct err *err)
{
    _cleanup_fd_ int console =
        openat(dir, "boot.log", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    const struct vm_boot how = {.program = s->config.vmm_program,
                                .kernel_fd = s->kernel_fd,
                                .image_fd = s->image_fd,
                                .console_fd = console,
                                .memory_mib = s->config.memory_mib};
    struct vm vm = vm_init();
    int r = start_vm(s, &how, NULL, &vm, err);

    if (r < 0)
        return r;
    r = boot_and_save(s, &vm, files, ret_boot_ms, err);
    finish_vm(s, &vm);
    if (r < 0)
        log_console(dir);
    return r;
}

/*
 * Runs a small skill from the new snapshot and keeps the list of pages it used, which later
 * restores have ready from the start. Without that list everything works, a little slower.
 */
static void record_working_set(struct snapshots *s, int dir, struct snapshot_fds *files)
{
    _cleanup_fd_ int record =
        openat(dir, "working-set", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    const struct vm_restore how = {.program = s->config.vmm_program,
                                   .image_fd = s->image_fd,
                                   .state_fd = files->state,
                                   .memory_fd = files->memory,
                                   .working_set_fd = -1,
                                   .record_fd = record};
    struct vm vm = vm_init();
    struct err err = {0};
    struct stat st;
    int r;

    say(s, SNAPSHOTS_PREPARING, "recording which pages a run uses");
    r = record < 0 ? err_set_errno(&err, errno, "cannot create working-set")
                   : start_vm(s, NULL, &how, &vm, &err);
    if (r == 0) {
        r = warmup_run(&vm, s->config.tmp_fd, s->config.grace_ms, &err);
        finish_vm(s, &vm);
    }
    if (r == 0 && (fstat(record, &st) < 0 || st.st_size == 0))
        r = err_set(&err, ENODATA, "nothing was recorded");
    if (r == 0) {
        files->working_set = fd_steal(&record);
        return;
    }
    log_warn("snapshot", "key=%.16s working_set=none reason=\"%s\"", s->key, err.message);
    (void)unlinkat(dir, "working-set", 0);
}

/* Writes the manifest and moves the folder to its place. */
static int store(struct snapshots *s, int dir, const struct snapshot_contents *contents,
                 struct err *err)
{
    int r = snapshot_manifest_write(dir, s->key, &s->inputs, contents, err);

    if (r < 0)
        return r;
    if (fsync(dir) < 0)
        return err_set_errno(err, errno, "cannot write the folder of the snapshot to disk");
    snapshot_remove(s->config.snapshots_fd, s->key);
    if (renameat(s->config.tmp_fd, MAKING_NAME, s->config.snapshots_fd, s->key) < 0 ||
        fsync(s->config.snapshots_fd) < 0)
        return err_set_errno(err, errno, "cannot store the snapshot");
    return 0;
}

/* Makes the snapshot in a temporary folder and moves it to its place. */
static int make(struct snapshots *s, struct err *err)
{
    _cleanup_fd_ int dir = -1;
    struct snapshot_fds files = no_files;
    struct snapshot_contents contents = {0};
    int r;

    snapshot_remove(s->config.tmp_fd, MAKING_NAME);
    if (mkdirat(s->config.tmp_fd, MAKING_NAME, 0700) < 0)
        return err_set_errno(err, errno, "cannot create a folder for the snapshot");
    dir = openat(s->config.tmp_fd, MAKING_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, errno, "cannot open the folder of the snapshot");
    r = open_files(dir, O_CREAT | O_EXCL | O_RDWR, false, &files, err);
    if (r == 0)
        r = boot(s, dir, &files, &contents.boot_ms, err);
    if (r == 0) {
        record_working_set(s, dir, &files);
        r = snapshot_contents_seal(&files, &contents, err);
    }
    if (r == 0)
        r = store(s, dir, &contents, err);
    close_files(&files);
    if (r < 0) {
        snapshot_remove(s->config.tmp_fd, MAKING_NAME);
        return r;
    }
    log_info("snapshot", "made key=%.16s boot_ms=%llu state_bytes=%llu working_set_bytes=%llu",
             s->key, (unsigned long long)contents.boot_ms,
             (unsigned long long)contents.state_bytes,
             (unsigned long long)contents.working_set_bytes);
    return open_files(dir, O_RDONLY, contents.working_set_bytes > 0, &s->files, err);
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
    s->kernel_fd = s->image_fd = -1;
    s->files = no_files;
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
    if (s->vm)
        vm_kill(s->vm);
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    fd_close(&s->kernel_fd);
    fd_close(&s->image_fd);
    close_files(&s->files);
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
                                      .state_fd = s->files.state,
                                      .memory_fd = s->files.memory,
                                      .working_set_fd = s->files.working_set};
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}
