/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/snapshots.h"

#include "api/daemon/machine/guest.h"
#include "api/daemon/machine/snapshot_files.h"
#include "api/daemon/machine/vm.h"
#include "api/daemon/machine/warmup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKING_NAME     "snapshot-in-the-making"
#define SAVE_TIMEOUT_MS 120000ull
#define MS              1000000ull
#define SECOND_NS       1000000000ull

struct snapshots {
    struct snapshots_config config;
    pthread_t thread;
    struct snapshot_inputs inputs; /* the thread's own */
    char key[SNAPSHOT_KEY_SIZE];
    int kernel_fd;
    int image_fd;
    struct snapshot_fds files;
    uint64_t age_ns; /* of those files */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    enum snapshots_state state;
    char text[ERR_MESSAGE_MAX];
    struct snapshot *current; /* once there is one, whatever is done meanwhile */
    struct renewal renewal;
    uint64_t made;
    uint64_t failed;
    bool stopping;
    struct vm *vm; /* at work for us, so that stopping can end it; else NULL */
};

/* Says what is being done, or went wrong; with a snapshot there is nothing to wait for. */
static void say(struct snapshots *s, enum snapshots_state state, const char *text)
{
    (void)pthread_mutex_lock(&s->lock);
    if (!s->current) {
        s->state = state;
        (void)snprintf(s->text, sizeof(s->text), "%s", text);
    }
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

/* Opens and digests everything that shapes the snapshot. */
static int read_inputs(struct snapshots *s, struct err *err)
{
    _cleanup_fd_ int vmm_fd = -1;
    int r;

    fd_close(&s->kernel_fd);
    fd_close(&s->image_fd);
    s->inputs.memory_mib = s->config.memory_mib;
    r = snapshot_input_open(s->config.kernel_path, "guest kernel", s->inputs.kernel,
                            &s->kernel_fd, err);
    if (r == 0)
        r = snapshot_input_open(s->config.image_path, "guest image", s->inputs.image,
                                &s->image_fd, err);
    if (r == 0)
        r = snapshot_input_open(s->config.vmm_program, "program", s->inputs.vmm, &vmm_fd, err);
    if (r == 0)
        r = vm_query(s->config.vmm_program, "fingerprint", s->inputs.fingerprint,
                     sizeof(s->inputs.fingerprint), err);
    if (r == 0 && snapshot_inputs_key(&s->inputs, s->key) < 0)
        r = err_set(err, ENOMEM, "out of memory");
    return r;
}

/* What was made in the future was made now. */
static uint64_t age_since(uint64_t made_s)
{
    uint64_t now_ns = clock_realtime_ns(), made_ns = made_s * SECOND_NS;

    return now_ns > made_ns ? now_ns - made_ns : 0;
}

/* Opens the snapshot of this key and checks it. -ENOENT without a message when there is none.
 */
static int load(struct snapshots *s, struct err *err)
{
    _cleanup_fd_ int dir =
        openat(s->config.snapshots_fd, s->key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct snapshot_fds files = snapshot_no_files;
    struct snapshot_contents contents = {0};
    int r;

    if (dir < 0)
        return errno == ENOENT ? -ENOENT : err_set_errno(err, errno, "cannot open its folder");
    r = snapshot_manifest_check(dir, s->key, &s->inputs, &contents, err);
    if (r == 0)
        r = snapshot_files_open(dir, O_RDONLY, contents.working_set_bytes > 0, &files, err);
    if (r == 0)
        r = snapshot_contents_check(&files, &contents, err);
    if (r < 0)
        snapshot_files_close(&files);
    else
        s->files = files;
    s->age_ns = age_since(contents.made_s);
    return r;
}

/* Boots, waits until the guest is ready, and saves it into the open files. */
static int boot_and_save(struct snapshots *s, struct vm *vm, const struct snapshot_fds *files,
                         uint64_t *ret_boot_ms, struct err *err)
{
    uint64_t start_ns = clock_monotonic_ns();
    struct vmm_event event;
    struct guest *guest = guest_open(vm, start_ns, s->config.grace_ms);
    int r = guest ? guest_wait_ready(guest, start_ns + s->config.boot_timeout_ms * MS, err)
                  : err_set(err, ENOMEM, "out of memory");

    guest_close(guest);
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
        snapshot_log_console(dir);
    return r;
}

/* Runs the warm-up in a machine that records, and has it end by itself, which writes the
 * record.
 */
static int run_warmup(struct snapshots *s, struct vm *vm, struct err *err)
{
    struct guest *guest = guest_open(vm, clock_monotonic_ns(), s->config.grace_ms);
    struct job job = job_init();
    int r = guest ? warmup_job(&job, err) : err_set(err, ENOMEM, "out of memory");

    if (r == 0)
        r = warmup_run(guest, &job, err);
    job_finish(&job);
    guest_close(guest);
    return r < 0 ? r : vm_quit(vm, clock_monotonic_ns() + 6 * s->config.grace_ms * MS, err);
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
        r = run_warmup(s, &vm, &err);
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
    struct snapshot_fds files = snapshot_no_files;
    struct snapshot_contents contents = {0};
    int r;

    snapshot_remove(s->config.tmp_fd, MAKING_NAME);
    if (mkdirat(s->config.tmp_fd, MAKING_NAME, 0700) < 0)
        return err_set_errno(err, errno, "cannot create a folder for the snapshot");
    dir = openat(s->config.tmp_fd, MAKING_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, errno, "cannot open the folder of the snapshot");
    r = snapshot_files_open(dir, O_CREAT | O_EXCL | O_RDWR, false, &files, err);
    if (r == 0)
        r = boot(s, dir, &files, &contents.boot_ms, err);
    if (r == 0) {
        record_working_set(s, dir, &files);
        r = snapshot_contents_seal(&files, &contents, err);
    }
    if (r == 0)
        r = store(s, dir, &contents, err);
    snapshot_files_close(&files);
    if (r < 0) {
        snapshot_remove(s->config.tmp_fd, MAKING_NAME);
        return r;
    }
    s->age_ns = 0;
    (void)pthread_mutex_lock(&s->lock);
    s->made++;
    (void)pthread_mutex_unlock(&s->lock);
    log_info("snapshot", "made key=%.16s boot_ms=%llu state_bytes=%llu working_set_bytes=%llu",
             s->key, (unsigned long long)contents.boot_ms,
             (unsigned long long)contents.state_bytes,
             (unsigned long long)contents.working_set_bytes);
    return snapshot_files_open(dir, O_RDONLY, contents.working_set_bytes > 0, &s->files, err);
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
        log_info("snapshot", "loaded key=%.16s ms=%llu age_s=%llu", s->key,
                 (unsigned long long)((clock_monotonic_ns() - start_ns) / MS),
                 (unsigned long long)(s->age_ns / SECOND_NS));
    } else {
        log_info("snapshot", "making key=%.16s reason=\"%s\"", s->key,
                 refused.code ? refused.message : "there is none yet");
        say(s, SNAPSHOTS_PREPARING, "booting the guest once");
        r = make(s, err);
    }
    if (r == 0)
        snapshot_remove_others(s->config.snapshots_fd, s->key);
    return r;
}

void snapshot_unref(struct snapshot *snapshot)
{
    if (!snapshot || __atomic_sub_fetch(&snapshot->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    fd_close(&snapshot->image_fd);
    fd_close(&snapshot->state_fd);
    fd_close(&snapshot->memory_fd);
    fd_close(&snapshot->working_set_fd);
    free(snapshot);
}

/* Puts the snapshot whose files are open into use, in place of another. */
static int publish(struct snapshots *s, struct err *err)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot)), *old;
    int image_fd = fcntl(s->image_fd, F_DUPFD_CLOEXEC, 0);

    if (!snapshot || image_fd < 0) {
        int code = snapshot ? errno : ENOMEM;

        fd_close(&image_fd);
        free(snapshot);
        snapshot_files_close(&s->files);
        return err_set_errno(err, code, "cannot use the snapshot");
    }
    *snapshot = (struct snapshot){.references = 1,
                                  .image_fd = image_fd,
                                  .state_fd = s->files.state,
                                  .memory_fd = s->files.memory,
                                  .working_set_fd = s->files.working_set};
    memcpy(snapshot->key, s->key, sizeof(snapshot->key));
    s->files = snapshot_no_files;
    (void)pthread_mutex_lock(&s->lock);
    old = s->current;
    s->current = snapshot;
    renewal_begin(&s->renewal, clock_monotonic_ns(), s->age_ns);
    s->state = SNAPSHOTS_READY;
    (void)snprintf(s->text, sizeof(s->text), "ok");
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    snapshot_unref(old);
    return 0;
}

/* Waits for a change, until a time (monotonic) at most. Under the lock. */
static void wait_change(struct snapshots *s, uint64_t until_ns)
{
    if (until_ns == RENEWAL_NEVER)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    else
        (void)cond_wait_until(&s->changed, &s->lock, until_ns);
}

/* Waits a while before the next try. False when it is time to stop. */
static bool wait_retry(struct snapshots *s)
{
    uint64_t until_ns = clock_monotonic_ns() + s->config.retry_ms * MS;
    bool stopping;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->stopping && clock_monotonic_ns() < until_ns)
        wait_change(s, until_ns);
    stopping = s->stopping;
    (void)pthread_mutex_unlock(&s->lock);
    return !stopping;
}

/* Waits until the snapshot is to be made anew, and says why. False when it is time to stop. */
static bool wait_renewal(struct snapshots *s)
{
    const char *reason = NULL;
    uint64_t now_ns, age_ns, uses;

    (void)pthread_mutex_lock(&s->lock);
    do {
        now_ns = clock_monotonic_ns();
        reason = renewal_reason(&s->renewal, now_ns);
        if (!reason && !s->stopping)
            wait_change(s, renewal_next_ns(&s->renewal));
    } while (!reason && !s->stopping);
    age_ns = renewal_age_ns(&s->renewal, now_ns);
    uses = s->renewal.uses;
    if (s->stopping)
        reason = NULL;
    (void)pthread_mutex_unlock(&s->lock);
    if (!reason)
        return false;
    log_info("snapshot", "renewing key=%.16s reason=%s age_s=%llu uses=%llu", s->key, reason,
             (unsigned long long)(age_ns / SECOND_NS), (unsigned long long)uses);
    return true;
}

/* Counts a try that made none. False when it is time to stop, which may be why. */
static bool note_failure(struct snapshots *s)
{
    bool stopping;

    (void)pthread_mutex_lock(&s->lock);
    stopping = s->stopping;
    s->failed += !stopping;
    renewal_fail(&s->renewal, clock_monotonic_ns(), s->config.retry_ms);
    (void)pthread_mutex_unlock(&s->lock);
    return !stopping;
}

/* Makes the first one, as often as it takes. False when it is time to stop. */
static bool begin(struct snapshots *s)
{
    do {
        struct err err = {0};

        if (prepare(s, &err) == 0 && publish(s, &err) == 0)
            return true;
        if (!note_failure(s))
            return false;
        log_error("snapshot", "failed retry_ms=%llu reason=\"%s\"",
                  (unsigned long long)s->config.retry_ms, err.message);
        say(s, SNAPSHOTS_FAILED, err.message);
    } while (wait_retry(s));
    return false;
}

static void *prepare_thread(void *arg)
{
    struct snapshots *s = arg;

    if (!begin(s))
        return NULL;
    while (wait_renewal(s)) {
        struct err err = {0};

        if ((make(s, &err) < 0 || publish(s, &err) < 0) && note_failure(s))
            log_error("snapshot", "renewal=failed reason=\"%s\"", err.message);
    }
    return NULL;
}

int snapshots_create(const struct snapshots_config *config, struct snapshots **ret,
                     struct err *err)
{
    struct snapshots *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_set(err, ENOMEM, "out of memory");
    s->config = *config;
    s->renewal.limits = config->renewal;
    s->kernel_fd = s->image_fd = -1;
    s->files = snapshot_no_files;
    (void)pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->changed);
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
    snapshot_unref(s->current);
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

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* A reference to the current one. Under the lock. */
static struct snapshot *reference(struct snapshots *s)
{
    if (s->current)
        (void)__atomic_add_fetch(&s->current->references, 1, __ATOMIC_RELAXED);
    return s->current;
}

struct snapshot *snapshots_current(struct snapshots *s)
{
    struct snapshot *snapshot;

    (void)pthread_mutex_lock(&s->lock);
    snapshot = reference(s);
    (void)pthread_mutex_unlock(&s->lock);
    return snapshot;
}

int snapshots_wait(struct snapshots *s, int cancel_fd, struct snapshot **ret, struct err *err)
{
    int r = 0;

    (void)pthread_mutex_lock(&s->lock);
    do {
        if (s->stopping || is_readable(cancel_fd))
            r = err_set(err, ECANCELED, "cancelled before there was a machine");
        else if (s->state == SNAPSHOTS_PREPARING)
            wait_change(s, clock_monotonic_ns() + 100 * MS);
    } while (r == 0 && s->state == SNAPSHOTS_PREPARING);
    if (r == 0 && s->state == SNAPSHOTS_FAILED)
        r = err_set(err, ENODEV, "there is no snapshot to start from: %s", s->text);
    if (r == 0)
        *ret = reference(s);
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}

void snapshots_renew(struct snapshots *s)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->current)
        renewal_want(&s->renewal);
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

void snapshots_set(struct snapshots *s, const struct renewal_limits *limits)
{
    (void)pthread_mutex_lock(&s->lock);
    s->renewal.limits = *limits;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

void snapshots_count_use(struct snapshots *s, const struct snapshot *snapshot)
{
    (void)pthread_mutex_lock(&s->lock);
    if (snapshot == s->current && ++s->renewal.uses == s->renewal.limits.uses)
        (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

void snapshots_measure(struct snapshots *s, struct snapshots_measure *ret)
{
    (void)pthread_mutex_lock(&s->lock);
    *ret = (struct snapshots_measure){
        .is_ready = s->state == SNAPSHOTS_READY, .made = s->made, .failed = s->failed};
    if (s->current) {
        ret->age_ns = renewal_age_ns(&s->renewal, clock_monotonic_ns());
        ret->uses = s->renewal.uses;
    }
    (void)pthread_mutex_unlock(&s->lock);
}
