/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot folders: keys, manifests, digests over sparse memory, and what is refused. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/snapshot_files.h"
#include "api/daemon/machine/snapshots.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[32];
    int dir_fd;
    int state_fd;
    int memory_fd;
};

static const struct snapshot_inputs inputs = {
    .kernel = "kernel", .image = "image", .vmm = "vmm", .fingerprint = "cpu", .memory_mib = 8};

static int open_file(struct fixture *f, const char *name)
{
    int fd = openat(f->dir_fd, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->state_fd = open_file(f, "state");
    f->memory_fd = open_file(f, "memory");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    const char *name = strrchr(f->dir, '/') + 1;
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    close(f->dir_fd);
    close(f->state_fd);
    close(f->memory_fd);
    fd_remove_folder(tmp, name);
    assert_int_equal(access(f->dir, F_OK), -1);
    close(tmp);
    free(f);
    return 0;
}

static void every_input_changes_the_key(void **state)
{
    struct snapshot_inputs other;
    char key[SNAPSHOT_KEY_SIZE], changed[SNAPSHOT_KEY_SIZE];

    (void)state;
    assert_int_equal(snapshot_inputs_key(&inputs, key), 0);
    other = inputs;
    strcpy(other.name.profile, "csv");
    assert_int_equal(snapshot_inputs_key(&other, changed), 0);
    assert_string_not_equal(key, changed);
    other = inputs;
    strcpy(other.name.scope, "csv");
    assert_int_equal(snapshot_inputs_key(&other, changed), 0);
    assert_string_not_equal(key, changed);
    other = inputs;
    other.kernel[0] = 'x';
    assert_int_equal(snapshot_inputs_key(&other, changed), 0);
    assert_string_not_equal(key, changed);
    other = inputs;
    other.image[0] = 'x';
    assert_int_equal(snapshot_inputs_key(&other, changed), 0);
    assert_string_not_equal(key, changed);
    other = inputs;
    other.vmm[0] = 'x';
    assert_int_equal(snapshot_inputs_key(&other, changed), 0);
    assert_string_not_equal(key, changed);
    other = inputs;
    other.fingerprint[0] = 'x';
    assert_int_equal(snapshot_inputs_key(&other, changed), 0);
    assert_string_not_equal(key, changed);
    other = inputs;
    other.memory_mib++;
    assert_int_equal(snapshot_inputs_key(&other, changed), 0);
    assert_string_not_equal(key, changed);
}

/* The digest speaks of content, not of how the file system keeps it. */
static void digest_ignores_how_zeros_are_kept(void **state)
{
    struct fixture *f = *state;
    char sparse[SNAPSHOT_KEY_SIZE], dense[SNAPSHOT_KEY_SIZE];
    static const char zeros[1 << 20];

    assert_int_equal(ftruncate(f->memory_fd, 3 << 20), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, "x", 1, (1 << 20) + 5), 0);
    assert_int_equal(snapshots_digest_memory(f->memory_fd, sparse), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, zeros, sizeof(zeros), 0), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, zeros, sizeof(zeros), 2 << 20), 0);
    assert_int_equal(snapshots_digest_memory(f->memory_fd, dense), 0);
    assert_string_equal(sparse, dense);
}

static void digest_sees_every_change(void **state)
{
    struct fixture *f = *state;
    char before[SNAPSHOT_KEY_SIZE], after[SNAPSHOT_KEY_SIZE];

    assert_int_equal(ftruncate(f->memory_fd, 1 << 20), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, "x", 1, 4096), 0);
    assert_int_equal(snapshots_digest_memory(f->memory_fd, before), 0);
    /* The same page at another place. */
    assert_int_equal(fd_pwrite_full(f->memory_fd, "\0", 1, 4096), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, "x", 1, 8192), 0);
    assert_int_equal(snapshots_digest_memory(f->memory_fd, after), 0);
    assert_string_not_equal(before, after);
    /* The same pages in a longer file. */
    assert_int_equal(fd_pwrite_full(f->memory_fd, "x", 1, 4096), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, "\0", 1, 8192), 0);
    assert_int_equal(ftruncate(f->memory_fd, 2 << 20), 0);
    assert_int_equal(snapshots_digest_memory(f->memory_fd, after), 0);
    assert_string_not_equal(before, after);
    assert_int_equal(ftruncate(f->memory_fd, (2 << 20) + 1), 0);
    assert_int_equal(snapshots_digest_memory(f->memory_fd, after), -EINVAL);
}

/* Of another kernel, image or VMM than there are now, whatever its key says. */
static void a_manifest_is_of_what_is_there(void **state)
{
    static const struct {
        size_t at;
        const char *name;
    } texts[] = {
        {offsetof(struct snapshot_inputs, kernel), "kernel_sha256"},
        {offsetof(struct snapshot_inputs, image), "image_sha256"},
        {offsetof(struct snapshot_inputs, vmm), "vmm_sha256"},
        {offsetof(struct snapshot_inputs, fingerprint), "cpu_fingerprint"},
        {offsetof(struct snapshot_inputs, name.scope), "scope"},
        {offsetof(struct snapshot_inputs, name.image), "image"},
        {offsetof(struct snapshot_inputs, name.profile), "profile"},
        {offsetof(struct snapshot_inputs, name.packages), "packages"},
    };
    const struct snapshot_contents contents = {0};
    struct fixture *f = *state;
    struct snapshot_contents back;
    struct snapshot_inputs other = inputs;
    struct err err = {0};

    assert_int_equal(snapshot_manifest_write(f->dir_fd, "key", &inputs, &contents, NULL), 0);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char *text = (char *)&other + texts[i].at, wanted[64];

        text[0]++;
        assert_int_equal(snapshot_manifest_check(f->dir_fd, "key", &other, &back, &err),
                         -EINVAL);
        (void)snprintf(wanted, sizeof(wanted), "%s is not what it is now", texts[i].name);
        assert_string_equal(err.message, wanted);
        text[0]--;
        err = (struct err){0};
    }
    other.memory_mib++;
    assert_int_equal(snapshot_manifest_check(f->dir_fd, "key", &other, &back, &err), -EINVAL);
    assert_non_null(strstr(err.message, "memory_mib"));
    err = (struct err){0};
    assert_int_equal(snapshot_manifest_check(f->dir_fd, "other", &inputs, &back, &err),
                     -EINVAL);
    assert_string_equal(err.message, "key is not what it is now");
}

static void manifest_round_trip_and_refusals(void **state)
{
    struct fixture *f = *state;
    struct snapshot_contents contents = {.boot_ms = 12}, back;
    struct snapshot_inputs other = inputs;
    struct err err = {0};
    struct stat st = {0};
    struct vm_files fds = {{f->state_fd, f->memory_fd, open_file(f, "working-set")}};
    uint64_t begin_s = clock_realtime_ns() / 1000000000u;
    char key[SNAPSHOT_KEY_SIZE];
    int fd;

    assert_int_equal(fd_write_full(fds.fds[VM_WORKING_SET], "pages", 5), 0);
    assert_int_equal(snapshot_inputs_key(&inputs, key), 0);
    assert_int_equal(fd_write_full(f->state_fd, "state", 5), 0);
    assert_int_equal(ftruncate(f->memory_fd, 1 << 20), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, "x", 1, 4096), 0);
    assert_int_equal(snapshot_contents_seal(&fds, NULL, &contents, NULL), 0);
    assert_int_equal(snapshot_manifest_write(f->dir_fd, key, &inputs, &contents, NULL), 0);
    assert_int_equal(snapshot_manifest_check(f->dir_fd, key, &inputs, &back, NULL), 0);
    assert_int_equal(back.files[VM_STATE].bytes, 5);
    assert_int_equal(back.boot_ms, 12);
    assert_true(back.made_s >= begin_s && back.made_s <= clock_realtime_ns() / 1000000000u);
    assert_int_equal(snapshot_contents_check(&fds, NULL, &back, NULL), 0);

    other.fingerprint[0] = 'C';
    assert_int_equal(snapshot_manifest_check(f->dir_fd, key, &other, &back, &err), -EINVAL);
    assert_non_null(strstr(err.message, "cpu_fingerprint"));

    assert_int_equal(fd_pwrite_full(f->state_fd, "S", 1, 0), 0);
    err = (struct err){0};
    assert_int_equal(snapshot_contents_check(&fds, NULL, &back, &err), -EINVAL);
    assert_non_null(strstr(err.message, "state is damaged"));
    assert_int_equal(fd_pwrite_full(f->state_fd, "s", 1, 0), 0);
    assert_int_equal(fd_pwrite_full(f->memory_fd, "y", 1, 0), 0);
    err = (struct err){0};
    assert_int_equal(snapshot_contents_check(&fds, NULL, &back, &err), -EINVAL);
    assert_non_null(strstr(err.message, "memory is damaged"));

    assert_int_equal(fd_pwrite_full(f->memory_fd, "\0", 1, 0), 0);
    assert_int_equal(fd_pwrite_full(fds.fds[VM_WORKING_SET], "P", 1, 0), 0);
    err = (struct err){0};
    assert_int_equal(snapshot_contents_check(&fds, NULL, &back, &err), -EINVAL);
    assert_non_null(strstr(err.message, "working-set is damaged"));
    close(fds.fds[VM_WORKING_SET]);

    /* Every truncation of the manifest is refused. */
    fd = openat(f->dir_fd, "manifest.json", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    for (off_t size = st.st_size - 3; size >= 0; size--) {
        assert_int_equal(ftruncate(fd, size), 0);
        assert_int_equal(snapshot_manifest_check(f->dir_fd, key, &inputs, &back, NULL),
                         -EINVAL);
    }
    close(fd);
}

/* The three files of a snapshot, of which another one has others of the same sizes. */
#define PAGE  4096u
#define PAGES 3u

static const char *const file_names[VM_FILES] = {
    [VM_STATE] = "state", [VM_MEMORY] = "memory", [VM_WORKING_SET] = "working-set"};

static void fill(const struct vm_files *files, int i, uint8_t seed)
{
    uint8_t content[PAGES * PAGE];

    for (size_t k = 0; k < sizeof(content); k++)
        content[k] = (uint8_t)((uint8_t)i * 31u + seed + (uint8_t)(k % 251));
    assert_int_equal(ftruncate(files->fds[i], 0), 0);
    assert_int_equal(fd_pwrite_full(files->fds[i], content, sizeof(content), 0), 0);
}

static void flip(int fd, off_t at)
{
    uint8_t byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void flip_first(const struct vm_files *files, int i)
{
    flip(files->fds[i], 0);
}

static void flip_middle(const struct vm_files *files, int i)
{
    flip(files->fds[i], PAGE + 77);
}

static void flip_last(const struct vm_files *files, int i)
{
    flip(files->fds[i], PAGES * PAGE - 1);
}

static void cut_a_page(const struct vm_files *files, int i)
{
    assert_int_equal(ftruncate(files->fds[i], (PAGES - 1) * PAGE), 0);
}

static void cut_all(const struct vm_files *files, int i)
{
    assert_int_equal(ftruncate(files->fds[i], 0), 0);
}

static void grow(const struct vm_files *files, int i)
{
    assert_int_equal(ftruncate(files->fds[i], (PAGES + 1) * PAGE), 0);
}

static void take_anothers(const struct vm_files *files, int i)
{
    fill(files, i, 99);
}

/* The content of the next of its own files. */
static void take_the_next(const struct vm_files *files, int i)
{
    uint8_t content[PAGES * PAGE];
    int next = files->fds[(i + 1) % VM_FILES];

    assert_int_equal(fd_pread_full(next, content, sizeof(content), 0), sizeof(content));
    assert_int_equal(fd_pwrite_full(files->fds[i], content, sizeof(content), 0), 0);
}

static void every_file_is_as_it_was_or_refused(void **state)
{
    static void (*const ways[])(const struct vm_files *files, int i) = {
        flip_first, flip_middle, flip_last,     cut_a_page,
        cut_all,    grow,        take_anothers, take_the_next,
    };
    struct fixture *f = *state;
    struct vm_files files = {{f->state_fd, f->memory_fd, open_file(f, "working-set")}};
    struct snapshot_contents contents = {0};

    for (int i = 0; i < VM_FILES; i++)
        fill(&files, i, 0);
    assert_int_equal(snapshot_contents_seal(&files, NULL, &contents, NULL), 0);
    for (int i = 0; i < VM_FILES; i++) {
        for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
            struct err err = {0};

            ways[way](&files, i);
            assert_int_equal(snapshot_contents_check(&files, NULL, &contents, &err), -EINVAL);
            assert_int_equal(strncmp(err.message, file_names[i], strlen(file_names[i])), 0);
            fill(&files, i, 0);
            assert_int_equal(snapshot_contents_check(&files, NULL, &contents, NULL), 0);
        }
    }
    close(files.fds[VM_WORKING_SET]);
}

static void assert_same_files(const struct snapshot_contents *a,
                              const struct snapshot_contents *b)
{
    for (int i = 0; i < VM_FILES; i++) {
        assert_int_equal(a->files[i].bytes, b->files[i].bytes);
        assert_string_equal(a->files[i].digest, b->files[i].digest);
    }
}

/* Whatever bit of a manifest is wrong: it is refused, or tells of the same files. */
static void a_manifest_never_names_other_files(void **state)
{
    struct fixture *f = *state;
    struct vm_files files = {{f->state_fd, f->memory_fd, open_file(f, "working-set")}};
    struct snapshot_contents contents = {0}, back;
    unsigned n_refused = 0;
    char key[SNAPSHOT_KEY_SIZE];
    struct stat st = {0};
    int fd;

    for (int i = 0; i < VM_FILES; i++)
        fill(&files, i, 0);
    assert_int_equal(snapshot_contents_seal(&files, NULL, &contents, NULL), 0);
    assert_int_equal(snapshot_inputs_key(&inputs, key), 0);
    assert_int_equal(snapshot_manifest_write(f->dir_fd, key, &inputs, &contents, NULL), 0);
    fd = openat(f->dir_fd, "manifest.json", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    for (off_t at = 0; at < st.st_size; at++) {
        flip(fd, at);
        if (snapshot_manifest_check(f->dir_fd, key, &inputs, &back, NULL) < 0 ||
            snapshot_contents_check(&files, NULL, &back, NULL) < 0)
            n_refused++;
        else
            assert_same_files(&back, &contents);
        flip(fd, at);
    }
    /* But for the times and the blanks. */
    assert_true(n_refused > st.st_size * 3 / 4);
    close(fd);
    close(files.fds[VM_WORKING_SET]);
}

/* A guest that holds what somebody brought may have been taken over before it stopped. */
static void what_a_guest_said_forges_no_field(void **state)
{
    static const char said[] = "up\r\nx key=1 reason=\"made\" \033[2K\n";
    struct fixture *f = *state;
    int boot_fd = open_file(f, "boot.log"), log_fd = open_file(f, "log"), own = dup(2);
    char text[512] = "";

    assert_int_equal(fd_write_full(boot_fd, said, sizeof(said) - 1), 0);
    assert_true(own >= 0 && dup2(log_fd, 2) >= 0);
    snapshot_log_console(f->dir_fd);
    assert_true(dup2(own, 2) >= 0);
    assert_true(pread(log_fd, text, sizeof(text) - 1, 0) > 0);
    assert_non_null(strstr(text, "snapshot console=\"up\"\n"));
    assert_non_null(strstr(text, "console=\"x key=1 reason=\\\"made\\\" \\x1b[2K\"\n"));
    close(boot_fd);
    close(log_fd);
    close(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_changes_the_key),
        cmocka_unit_test_setup_teardown(digest_ignores_how_zeros_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(digest_sees_every_change, setup, teardown),
        cmocka_unit_test_setup_teardown(a_manifest_is_of_what_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(manifest_round_trip_and_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(every_file_is_as_it_was_or_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_manifest_never_names_other_files, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_guest_said_forges_no_field, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
