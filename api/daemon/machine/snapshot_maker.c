/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/snapshot_maker.h"

#include "api/daemon/machine/checksum.h"
#include "api/daemon/machine/guest.h"
#include "api/daemon/machine/vm.h"
#include "api/daemon/machine/warmup.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

CLEANUP_WITH(struct guest *, guest_close)

#define MAKING_NAME     "snapshot-in-the-making"
#define SAVE_TIMEOUT_MS 120000ull

/* What one step gives the next. */
struct work {
    struct snapshot_inputs inputs; /* with the name and the image's digest */
    int image_fd;                  /* borrowed */
    enum warmup_kind warmup;
    char key[SNAPSHOT_KEY_SIZE];
    const struct job *held; /* its packages, while it is made */
    struct vm_files files;
    struct snapshot_contents contents;
};

void snapshot_maker_init(struct snapshot_maker *maker, const struct snapshots_config *config)
{
    *maker = (struct snapshot_maker){.config = config, .kernel_fd = -1};
    for (unsigned i = 0; i < IMAGES_MAX; i++)
        maker->images[i].fd = -1;
    (void)pthread_mutex_init(&maker->lock, NULL);
}

void snapshot_maker_stop(struct snapshot_maker *maker)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&maker->lock);

    maker->stopping = true;
    if (maker->vm)
        vm_kill(maker->vm);
}

static void close_inputs(struct snapshot_maker *maker)
{
    fd_close(&maker->kernel_fd);
    for (unsigned i = 0; i < IMAGES_MAX; i++)
        fd_close(&maker->images[i].fd);
}

void snapshot_maker_finish(struct snapshot_maker *maker)
{
    close_inputs(maker);
    (void)pthread_mutex_destroy(&maker->lock);
}

/* Opens and digests what was built and has its checksum beside it; image is as of digest_way.
 */
static int open_built(struct snapshot_maker *maker, const char *path, const char *what,
                      const char *image, char digest[SHA256_HEX_SIZE], int *ret_fd,
                      struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = snapshot_input_open(path, what, image, &maker->known, digest, &fd, err);

    if (r < 0)
        return r;
    r = checksum_check(path, what, digest, err);
    if (r == 0)
        *ret_fd = fd_steal(&fd);
    return r;
}

int snapshot_maker_read_inputs(struct snapshot_maker *maker, struct err *err)
{
    const struct snapshots_config *config = maker->config;
    struct snapshot_inputs *inputs = &maker->inputs;
    const uint64_t start_ns = clock_monotonic_ns();
    _cleanup_fd_ int vmm_fd = -1;
    int r;

    known_digests_open(&maker->known, config->snapshots_fd);
    close_inputs(maker);
    inputs->memory_mib = config->memory_mib;
    r = open_built(maker, config->kernel_path, "guest kernel", config->share_image,
                   inputs->kernel, &maker->kernel_fd, err);
    if (r < 0)
        return r;
    r = snapshot_input_open(config->vmm_program, "program", config->share_image, &maker->known,
                            inputs->vmm, &vmm_fd, err);
    if (r < 0)
        return r;
    r = vm_query(config->vmm_program, "fingerprint", inputs->fingerprint,
                 sizeof(inputs->fingerprint), err);
    log_info("snapshot", "inputs ms=%llu",
             (unsigned long long)((clock_monotonic_ns() - start_ns) / NS_PER_MS));
    return r;
}

void snapshot_maker_forget(struct snapshot_maker *maker)
{
    for (unsigned i = 0; i < IMAGES_MAX; i++) {
        struct maker_image *image = &maker->images[i];

        if (image->fd >= 0 &&
            !image_tables_have(maker->config->images, image->name, image->asked))
            fd_close(&image->fd);
    }
}

/* What was open since the image was found: its path may be another's by now, or nobody's. */
static int open_found(struct snapshot_maker *maker, const struct image *found,
                      char digest[SHA256_HEX_SIZE], int *ret_fd)
{
    const struct digest_way way = {"sha256", NULL, sha256_of_fd};

    if (found->fd < 0)
        return -ENOENT;
    if (found->is_checked)
        memcpy(digest, found->digest, SHA256_HEX_SIZE);
    else if (known_digests_of(&maker->known, found->fd, &way, digest) < 0 ||
             strcmp(digest, found->digest) != 0)
        return -EBADMSG;
    *ret_fd = fcntl(found->fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? -errno : 0;
}

/*
 * By its path, where it can be mended or put when it is damaged or missing, unless that has
 * become another image.
 */
static int open_image(struct snapshot_maker *maker, const struct image *found,
                      struct maker_image *ret, struct err *err)
{
    const bool is_first = found->fd < 0 && !found->is_added;
    const char *share_image = found->is_added ? NULL : maker->config->share_image;
    struct err why = {0};
    int r;

    if (found->is_checked && open_found(maker, found, ret->digest, &ret->fd) == 0)
        return 0;
    r = open_built(maker, found->path, "guest image", share_image, ret->digest, &ret->fd, &why);
    if (r == 0 && (!found->digest[0] || strcmp(ret->digest, found->digest) == 0))
        return 0;
    fd_close(&ret->fd);
    if (open_found(maker, found, ret->digest, &ret->fd) == 0)
        return 0;
    return r < 0 ? err_set(err, -r, "%s", why.message)
                 : err_set(err, ESTALE, "the guest image %s is another by now: %s", found->path,
                           is_first ? "start the daemon anew" : "reload the images");
}

/* One that nobody asked for yet, in the place of another. */
static int find_image(struct snapshot_maker *maker, const struct snapshot_name *name,
                      struct maker_image *ret, struct err *err)
{
    unsigned place;
    _cleanup_images_ struct images *images =
        image_tables_find(maker->config->images, name->image, name->image_digest, &place);

    if (!images)
        return err_set(err, ENOENT, "there is no image %s", name->image);
    *ret = (struct maker_image){.fd = -1,
                                .warmup = warmup_kind_of(&images->known.list[place].manifest)};
    memcpy(ret->name, name->image, sizeof(ret->name));
    memcpy(ret->asked, name->image_digest, sizeof(ret->asked));
    return open_image(maker, &images->list[place], ret, err);
}

static int take_image(struct snapshot_maker *maker, const struct snapshot_name *name,
                      const struct maker_image **ret, struct err *err)
{
    struct maker_image image;
    int r;

    for (unsigned i = 0; i < IMAGES_MAX; i++) {
        *ret = &maker->images[i];
        if ((*ret)->fd >= 0 && strcmp((*ret)->name, name->image) == 0 &&
            strcmp((*ret)->asked, name->image_digest) == 0)
            return 0;
    }
    r = find_image(maker, name, &image, err);
    if (r < 0)
        return r;
    *ret = &maker->images[maker->next_image];
    fd_close(&maker->images[maker->next_image].fd);
    maker->images[maker->next_image] = image;
    maker->next_image = (maker->next_image + 1) % IMAGES_MAX;
    return 0;
}

/* Everything that shapes the snapshot of a name. */
static int begin(struct snapshot_maker *maker, const struct snapshot_name *name,
                 struct work *ret, struct err *err)
{
    const struct maker_image *image;
    int r = take_image(maker, name, &image, err);

    if (r < 0)
        return r;
    *ret = (struct work){.inputs = maker->inputs,
                         .image_fd = image->fd,
                         .warmup = image->warmup,
                         .files = snapshot_no_files};
    memcpy(ret->inputs.image, image->digest, sizeof(ret->inputs.image));
    ret->inputs.name = *name;
    return snapshot_inputs_key(&ret->inputs, ret->key) < 0 ? err_no_memory(err) : 0;
}

int snapshot_maker_key(struct snapshot_maker *maker, const struct snapshot_name *name,
                       char ret_key[SNAPSHOT_KEY_SIZE])
{
    struct err ignored = {0};
    struct work work;
    int r = begin(maker, name, &work, &ignored);

    if (r == 0)
        memcpy(ret_key, work.key, SNAPSHOT_KEY_SIZE);
    return r;
}

/* What was made in the future was made now. */
static uint64_t age_since(uint64_t made_s)
{
    uint64_t now_ns = clock_realtime_ns(), made_ns = made_s * NS_PER_SECOND;

    return now_ns > made_ns ? now_ns - made_ns : 0;
}

/* The value that is handed out: takes the files over, in any case. */
static int publish(struct work *work, uint64_t age_ns, struct snapshot **ret, struct err *err)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    int image_fd = fcntl(work->image_fd, F_DUPFD_CLOEXEC, 0);
    struct stat memory;

    if (!snapshot || image_fd < 0 || fstat(work->files.fds[VM_MEMORY], &memory) < 0) {
        int code = snapshot ? errno : ENOMEM;

        fd_close(&image_fd);
        free(snapshot);
        snapshot_files_close(&work->files);
        return err_set_errno(err, code, "cannot use the snapshot");
    }
    *snapshot = (struct snapshot){.references = 1,
                                  .is_current = true,
                                  .age_ns = age_ns,
                                  .disk_bytes = (uint64_t)memory.st_blocks * 512,
                                  .warmup = work->warmup,
                                  .image_fd = image_fd,
                                  .files = work->files,
                                  .contents = work->contents};
    memcpy(snapshot->key, work->key, sizeof(snapshot->key));
    memcpy(snapshot->profile, work->inputs.name.profile, sizeof(snapshot->profile));
    memcpy(snapshot->packages, work->inputs.name.packages, sizeof(snapshot->packages));
    *ret = snapshot;
    return 0;
}

/* Closing its files is left to the caller. */
static int open_checked(struct snapshot_maker *maker, int dir, struct work *work,
                        struct err *err)
{
    int r = snapshot_manifest_check(dir, work->key, &work->inputs, &work->contents, err);

    if (r < 0)
        return r;
    r = snapshot_files_open(dir, O_RDONLY, work->contents.files[VM_WORKING_SET].bytes > 0,
                            &work->files, err);
    return r < 0 ? r
                 : snapshot_contents_check(&work->files, &maker->known, &work->contents, err);
}

int snapshot_maker_load(struct snapshot_maker *maker, const struct snapshot_name *name,
                        struct snapshot **ret, struct err *err)
{
    uint64_t start_ns = clock_monotonic_ns();
    _cleanup_fd_ int dir = -1;
    struct work work;
    int r = begin(maker, name, &work, err);

    if (r < 0)
        return r;
    dir = openat(maker->config->snapshots_fd, work.key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? -ENOENT : err_set_errno(err, errno, "cannot open its folder");
    r = open_checked(maker, dir, &work, err);
    if (r < 0) {
        snapshot_files_close(&work.files);
        return r;
    }
    r = publish(&work, age_since(work.contents.made_s), ret, err);
    if (r < 0)
        return r;
    log_info("snapshot", "loaded key=%.16s image=\"%s\" profile=\"%s\" ms=%llu age_s=%llu",
             work.key, name->image, name->profile,
             (unsigned long long)((clock_monotonic_ns() - start_ns) / NS_PER_MS),
             (unsigned long long)((*ret)->age_ns / NS_PER_SECOND));
    return 0;
}

/* Before a guest is booted for them: they may be deleted by now. */
static int open_packages(const struct snapshot_maker *maker, const char *digest,
                         struct job_bytes *ret, struct err *err)
{
    const struct snapshots_config *config = maker->config;
    struct stat st;

    if (!digest[0])
        return 0;
    ret->fd = config->open_packages ? config->open_packages(config->ctx, digest, err)
                                    : err_set(err, ENOENT, "there are no packages");
    if (ret->fd < 0)
        return ret->fd;
    if (fstat(ret->fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read the packages");
    ret->len = (uint64_t)st.st_size;
    return 0;
}

/* The guest says READY, and holds the modules of its profile, and its packages. */
static int prepare_guest(const struct snapshot_maker *maker, struct vm *vm,
                         const struct work *work, uint64_t start_ns, struct err *err)
{
    const struct snapshot_name *name = &work->inputs.name;
    uint64_t deadline_ns = start_ns + maker->config->boot_timeout_ms * NS_PER_MS;
    _cleanup_(guest_close) struct guest *guest =
        guest_open(vm, start_ns, maker->config->grace_ms);
    int r = guest ? guest_wait_ready(guest, deadline_ns, err) : err_no_memory(err);

    if (r == 0 && name->profile[0])
        r = guest_warm(guest, name->profile, deadline_ns, err);
    if (r == 0 && name->packages[0])
        r = guest_hold(guest, work->held, deadline_ns, err);
    return r;
}

/* Waits until a guest that boots is ready, and saves it into the open files. */
static int prepare_and_save(struct snapshot_maker *maker, struct vm *vm, struct work *work,
                            struct err *err)
{
    uint64_t start_ns = clock_monotonic_ns();
    struct vmm_event event;
    int r = prepare_guest(maker, vm, work, start_ns, err);

    if (r < 0)
        return r;
    work->contents.boot_ms = (clock_monotonic_ns() - start_ns) / NS_PER_MS;
    fd_close(&vm->vsock_fd);
    maker->say(maker->ctx, "saving the guest");
    r = vm_send_snapshot(vm, &work->files, err);
    if (r < 0)
        return r;
    return vm_wait_event(vm, VMM_EVENT_SNAPSHOT,
                         clock_monotonic_ns() + SAVE_TIMEOUT_MS * NS_PER_MS, &event, err);
}

/* Starts a machine that stopping can end: boot or restore is NULL. finish_vm is due on 0. */
static int start_vm(struct snapshot_maker *maker, const struct vm_boot *boot,
                    const struct vm_restore *restore, struct vm *vm, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&maker->lock);
    int r;

    if (maker->stopping)
        return err_set(err, ECANCELED, "the daemon is stopping");
    r = boot ? vm_start_boot(boot, vm, err) : vm_start_restore(restore, vm, err);
    maker->vm = r == 0 ? vm : NULL;
    return r;
}

static void finish_vm(struct snapshot_maker *maker, struct vm *vm)
{
    (void)pthread_mutex_lock(&maker->lock);
    maker->vm = NULL;
    (void)pthread_mutex_unlock(&maker->lock);
    vm_finish(vm);
}

static int boot(struct snapshot_maker *maker, int dir, struct work *work, struct err *err)
{
    _cleanup_fd_ int console =
        openat(dir, "boot.log", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    const struct vm_boot how = {.jail = maker->config->jail,
                                .kernel_fd = maker->kernel_fd,
                                .image_fd = work->image_fd,
                                .console_fd = console,
                                .memory_mib = maker->config->memory_mib};
    struct vm vm = vm_init();
    int r;

    if (console < 0)
        return err_set_errno(err, errno, "cannot create the log of the boot");
    r = start_vm(maker, &how, NULL, &vm, err);
    if (r < 0)
        return r;
    r = prepare_and_save(maker, &vm, work, err);
    finish_vm(maker, &vm);
    if (r < 0)
        snapshot_log_console(dir);
    return r;
}

/*
 * Runs the warm-up in a machine that records, and has it end by itself, which writes the
 * record.
 */
static int run_warmup(struct vm *vm, enum warmup_kind kind, uint64_t grace_ms, struct err *err)
{
    _cleanup_(guest_close) struct guest *guest = guest_open(vm, clock_monotonic_ns(), grace_ms);
    _cleanup_job_ struct job job = job_init();
    int r = guest ? warmup_job(kind, &job, err) : err_no_memory(err);

    if (r < 0)
        return r;
    r = warmup_run(guest, &job, err);
    return r < 0 ? r : vm_quit(vm, clock_monotonic_ns() + 6 * grace_ms * NS_PER_MS, err);
}

static int record(struct snapshot_maker *maker, enum warmup_kind kind,
                  const struct vm_restore *how, struct err *err)
{
    struct vm vm = vm_init();
    struct stat st;
    int r = start_vm(maker, NULL, how, &vm, err);

    if (r < 0)
        return r;
    r = run_warmup(&vm, kind, maker->config->grace_ms, err);
    finish_vm(maker, &vm);
    if (r < 0)
        return r;
    if (fstat(how->record_fd, &st) < 0 || st.st_size == 0)
        return err_set(err, ENODATA, "nothing was recorded");
    return 0;
}

/*
 * Runs a small skill from the new snapshot and keeps the list of pages it used, which later
 * restores have ready from the start. Without that list everything works, a little slower.
 */
static void record_working_set(struct snapshot_maker *maker, int dir, struct work *work)
{
    _cleanup_fd_ int fd =
        openat(dir, "working-set", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    const struct vm_restore how = {.jail = maker->config->jail,
                                   .image_fd = work->image_fd,
                                   .files = work->files,
                                   .record_fd = fd};
    enum warmup_kind kind = work->warmup;
    struct err err = {0};
    int r;

    /* By bash nothing is run of what somebody brought, which could hold up the others. */
    if (work->inputs.name.packages[0])
        kind = WARMUP_BASH;
    maker->say(maker->ctx, "recording which pages a run uses");
    r = fd < 0 ? err_set_errno(&err, errno, "cannot create working-set")
               : record(maker, kind, &how, &err);
    if (r == 0) {
        work->files.fds[VM_WORKING_SET] = fd_steal(&fd);
        return;
    }
    log_warn("snapshot", "key=%.16s working_set=none reason=\"%s\"", work->key, err.message);
    (void)unlinkat(dir, "working-set", 0);
}

/* Writes the manifest and moves the folder to its place. */
static int store(const struct snapshot_maker *maker, int dir, const struct work *work,
                 struct err *err)
{
    const struct snapshots_config *config = maker->config;
    int r = snapshot_manifest_write(dir, work->key, &work->inputs, &work->contents, err);

    if (r < 0)
        return r;
    if (fsync(dir) < 0)
        return err_set_errno(err, errno, "cannot write the folder of the snapshot to disk");
    fd_remove_folder(config->snapshots_fd, work->key);
    if (renameat(config->tmp_fd, MAKING_NAME, config->snapshots_fd, work->key) < 0 ||
        fsync(config->snapshots_fd) < 0)
        return err_set_errno(err, errno, "cannot store the snapshot");
    return 0;
}

static int write_in(struct snapshot_maker *maker, int dir, struct work *work, struct err *err)
{
    int r = snapshot_files_open(dir, O_CREAT | O_EXCL | O_RDWR, false, &work->files, err);

    if (r < 0)
        return r;
    r = boot(maker, dir, work, err);
    if (r < 0)
        return r;
    record_working_set(maker, dir, work);
    r = snapshot_contents_seal(&work->files, &maker->known, &work->contents, err);
    return r < 0 ? r : store(maker, dir, work, err);
}

/* Makes it in an empty folder and moves that to its place. */
static int make_in(struct snapshot_maker *maker, int dir, struct work *work, struct err *err)
{
    int r = write_in(maker, dir, work, err);

    /* They are for writing. */
    snapshot_files_close(&work->files);
    return r < 0 ? r
                 : snapshot_files_open(dir, O_RDONLY,
                                       work->contents.files[VM_WORKING_SET].bytes > 0,
                                       &work->files, err);
}

int snapshot_maker_make(struct snapshot_maker *maker, const struct snapshot_name *name,
                        struct snapshot **ret, struct err *err)
{
    int tmp_fd = maker->config->tmp_fd;
    _cleanup_job_ struct job held = job_init();
    _cleanup_fd_ int dir = -1;
    struct work work;
    int r = begin(maker, name, &work, err);

    if (r < 0)
        return r;
    r = open_packages(maker, name->packages, &held.packages, err);
    if (r < 0)
        return r;
    work.held = &held;
    maker->say(maker->ctx, "booting the guest once");
    fd_remove_folder(tmp_fd, MAKING_NAME);
    if (mkdirat(tmp_fd, MAKING_NAME, 0700) < 0)
        return err_set_errno(err, errno, "cannot create a folder for the snapshot");
    dir = openat(tmp_fd, MAKING_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, errno, "cannot open the folder of the snapshot");
    r = make_in(maker, dir, &work, err);
    if (r < 0) {
        fd_remove_folder(tmp_fd, MAKING_NAME);
        return r;
    }
    log_info("snapshot",
             "made key=%.16s image=\"%s\" profile=\"%s\" boot_ms=%llu state_bytes=%llu "
             "working_set_bytes=%llu",
             work.key, name->image, name->profile, (unsigned long long)work.contents.boot_ms,
             (unsigned long long)work.contents.files[VM_STATE].bytes,
             (unsigned long long)work.contents.files[VM_WORKING_SET].bytes);
    return publish(&work, 0, ret, err);
}
