/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/snapshot_files.h"

#include "api/json/json_text.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)
CLEANUP_WITH(struct sha256 *, sha256_destroy)

#define PAGE_BYTES   4096u
#define MANIFEST_MAX 65536u
#define CONSOLE_TAIL 1500u
#define TIME_FORMAT  "%Y-%m-%dT%H:%M:%SZ"
#define TIME_MAX     9999999999 /* in the year 2286 */

int snapshot_input_open(const char *path, const char *what, const char *image,
                        struct known_digests *known, char digest[SHA256_HEX_SIZE], int *ret_fd,
                        struct err *err)
{
    const struct digest_way way = {"sha256", image, sha256_of_fd};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open the %s %s", what, path);
    r = known_digests_of(known, fd, &way, digest);
    if (r < 0) {
        fd_close(&fd);
        return err_set_errno(err, -r, "cannot read the %s %s", what, path);
    }
    *ret_fd = fd;
    return 0;
}

int snapshot_inputs_key(const struct snapshot_inputs *inputs, char ret_key[SHA256_HEX_SIZE])
{
    _cleanup_buf_ struct buf text = buf_init(SNAPSHOT_FINGERPRINT_SIZE + 1024);
    int r = buf_printf(&text, "skillvm snapshot %d\n%s\n%s\n%s\n%u\n%s\n%s\n%s\n%s\n%s\n",
                       SNAPSHOT_SCHEMA, inputs->kernel, inputs->image, inputs->vmm,
                       inputs->memory_mib, inputs->fingerprint, inputs->name.scope,
                       inputs->name.image, inputs->name.profile, inputs->name.packages);

    return r < 0 ? r : sha256_of(text.data, text.len, ret_key);
}

const struct vm_files snapshot_no_files = {{-1, -1, -1}};

/* The files' names, and those of what the manifest says of them. */
static const struct {
    const char *name, *bytes, *digest;
} names[VM_FILES] = {
    [VM_STATE] = {"state", "state_bytes", "state_sha256"},
    [VM_MEMORY] = {"memory", "memory_bytes", "memory_sparse_sha256"},
    [VM_WORKING_SET] = {"working-set", "working_set_bytes", "working_set_sha256"},
};

void snapshot_files_close(struct vm_files *files)
{
    for (int i = 0; i < VM_FILES; i++)
        fd_close(&files->fds[i]);
}

int snapshot_files_open(int dir, int flags, bool with_working_set, struct vm_files *ret,
                        struct err *err)
{
    struct vm_files files = snapshot_no_files;

    flags |= O_CLOEXEC | O_NOFOLLOW;
    for (int i = 0; i < VM_FILES; i++) {
        if (i == VM_WORKING_SET && !with_working_set)
            continue;
        files.fds[i] = openat(dir, names[i].name, flags, 0600);
        if (files.fds[i] < 0) {
            int code = errno;

            snapshot_files_close(&files);
            return err_set_errno(err, code, "cannot open the files of the snapshot");
        }
    }
    *ret = files;
    return 0;
}

static int write_to_disk(int fd, const struct buf *out)
{
    int r = out->error ? out->error : fd_write_full(fd, out->data, out->len);

    if (r < 0)
        return r;
    return fsync(fd) < 0 ? -errno : 0;
}

int snapshot_manifest_write(int dir_fd, const char *key, const struct snapshot_inputs *inputs,
                            const struct snapshot_contents *contents, struct err *err)
{
    _cleanup_fd_ int fd =
        openat(dir_fd, "manifest.json", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    time_t now = (time_t)(clock_realtime_ns() / NS_PER_SECOND);
    _cleanup_buf_ struct buf out = buf_init(MANIFEST_MAX);
    struct tm tm;
    char made[32];
    int r;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot create manifest.json");
    (void)strftime(made, sizeof(made), TIME_FORMAT, gmtime_r(&now, &tm));
    (void)buf_printf(&out,
                     "{\n  \"schema\": %d,\n  \"key\": \"%s\",\n  \"kernel_sha256\": \"%s\",\n"
                     "  \"image_sha256\": \"%s\",\n  \"vmm_sha256\": \"%s\",\n"
                     "  \"memory_mib\": %u,\n  \"scope\": \"%s\",\n  \"image\": \"%s\",\n"
                     "  \"profile\": \"%s\",\n  \"packages\": \"%s\",\n"
                     "  \"cpu_fingerprint\": ",
                     SNAPSHOT_SCHEMA, key, inputs->kernel, inputs->image, inputs->vmm,
                     inputs->memory_mib, inputs->name.scope, inputs->name.image,
                     inputs->name.profile, inputs->name.packages);
    (void)json_append_cstr(&out, inputs->fingerprint);
    for (int i = 0; i < VM_FILES; i++)
        (void)buf_printf(&out, ",\n  \"%s\": %llu,\n  \"%s\": \"%s\"", names[i].bytes,
                         (unsigned long long)contents->files[i].bytes, names[i].digest,
                         contents->files[i].digest);
    (void)buf_printf(&out,
                     ",\n  \"boot_ms\": %llu,\n  \"made_at\": \"%s\",\n"
                     "  \"made_by\": \"skillvm " SKILLVM_VERSION "\"\n}\n",
                     (unsigned long long)contents->boot_ms, made);
    r = write_to_disk(fd, &out);
    return r < 0 ? err_set_errno(err, -r, "cannot write manifest.json") : 0;
}

static int read_text(int dir_fd, const char *name, struct buf *ret, struct err *err)
{
    _cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open %s", name);
    if (buf_reserve(ret, MANIFEST_MAX) < 0)
        return err_no_memory(err);
    n = fd_read_full(fd, ret->data, MANIFEST_MAX);
    if (n < 0)
        return err_set_errno(err, (int)-n, "cannot read %s", name);
    ret->len = (size_t)n;
    return 0;
}

static int expect_text(const cJSON *json, const char *key, const char *want, struct err *err)
{
    const char *have = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));

    if (!have)
        return err_set(err, EINVAL, "the manifest has no %s", key);
    if (strcmp(have, want) != 0)
        return err_set(err, EINVAL, "%s is not what it is now", key);
    return 0;
}

static int expect_number(const cJSON *json, const char *key, double want, struct err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

    if (!cJSON_IsNumber(item) || item->valuedouble != want)
        return err_set(err, EINVAL, "%s is not %g", key, want);
    return 0;
}

static int take_number(const cJSON *json, const char *key, uint64_t *ret, struct err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

    if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble > 1e15)
        return err_set(err, EINVAL, "the manifest has no %s", key);
    *ret = (uint64_t)item->valuedouble;
    return 0;
}

static int take_time(const cJSON *json, const char *key, uint64_t *ret, struct err *err)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    struct tm tm = {0};
    const char *end = text ? strptime(text, TIME_FORMAT, &tm) : NULL;
    time_t seconds = end && !*end ? timegm(&tm) : -1;

    if (seconds < 0 || seconds > TIME_MAX)
        return err_set(err, EINVAL, "the manifest has no %s", key);
    *ret = (uint64_t)seconds;
    return 0;
}

static int take_text(const cJSON *json, const char *key, char *ret, size_t size,
                     struct err *err)
{
    const char *have = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));

    if (!have || strlen(have) >= size)
        return err_set(err, EINVAL, "the manifest has no %s", key);
    memcpy(ret, have, strlen(have) + 1);
    return 0;
}

/* Each of these fails with -EINVAL. */
static int check_parsed(const cJSON *json, const char *key,
                        const struct snapshot_inputs *inputs, struct snapshot_contents *ret,
                        struct err *err)
{
    if (expect_number(json, "schema", SNAPSHOT_SCHEMA, err) < 0 ||
        expect_text(json, "kernel_sha256", inputs->kernel, err) < 0 ||
        expect_text(json, "image_sha256", inputs->image, err) < 0 ||
        expect_text(json, "vmm_sha256", inputs->vmm, err) < 0 ||
        expect_number(json, "memory_mib", inputs->memory_mib, err) < 0 ||
        expect_text(json, "scope", inputs->name.scope, err) < 0 ||
        expect_text(json, "image", inputs->name.image, err) < 0 ||
        expect_text(json, "profile", inputs->name.profile, err) < 0 ||
        expect_text(json, "packages", inputs->name.packages, err) < 0 ||
        expect_text(json, "cpu_fingerprint", inputs->fingerprint, err) < 0 ||
        expect_text(json, "key", key, err) < 0 ||
        take_number(json, "boot_ms", &ret->boot_ms, err) < 0 ||
        take_time(json, "made_at", &ret->made_s, err) < 0)
        return -EINVAL;
    for (int i = 0; i < VM_FILES; i++) {
        if (take_number(json, names[i].bytes, &ret->files[i].bytes, err) < 0 ||
            take_text(json, names[i].digest, ret->files[i].digest, SHA256_HEX_SIZE, err) < 0)
            return -EINVAL;
    }
    return 0;
}

/* Reads and parses manifest.json; the caller deletes *ret. 0, -EINVAL or -errno. */
static int read_manifest(int dir_fd, cJSON **ret, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(MANIFEST_MAX);
    int r = read_text(dir_fd, "manifest.json", &text, err);

    if (r < 0)
        return r;
    *ret = cJSON_ParseWithLength((const char *)text.data, text.len);
    return *ret ? 0 : err_set(err, EINVAL, "manifest.json is no JSON");
}

int snapshot_manifest_check(int dir_fd, const char *key, const struct snapshot_inputs *inputs,
                            struct snapshot_contents *ret, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    int r = read_manifest(dir_fd, &json, err);

    return r < 0 ? r : check_parsed(json, key, inputs, ret, err);
}

/* Which name the snapshot of a manifest has. */
static int read_name(int dir_fd, struct snapshot_name *ret, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    int r = read_manifest(dir_fd, &json, err);

    if (r < 0)
        return r;
    r = take_text(json, "scope", ret->scope, sizeof(ret->scope), err);
    if (r < 0)
        return r;
    r = take_text(json, "image", ret->image, sizeof(ret->image), err);
    if (r < 0)
        return r;
    r = take_text(json, "profile", ret->profile, sizeof(ret->profile), err);
    return r < 0 ? r : take_text(json, "packages", ret->packages, sizeof(ret->packages), err);
}

static int file_bytes(int fd, uint64_t *ret)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    *ret = (uint64_t)st.st_size;
    return 0;
}

static int measure_file(enum vm_file which, int fd, struct known_digests *known,
                        uint64_t *ret_bytes, char ret_digest[SHA256_HEX_SIZE])
{
    static const struct digest_way plain = {"sha256", NULL, sha256_of_fd},
                                   sparse = {"sparse", NULL, snapshots_digest_memory};
    int r = file_bytes(fd, ret_bytes);

    return r < 0
               ? r
               : known_digests_of(known, fd, which == VM_MEMORY ? &sparse : &plain, ret_digest);
}

static int measure(const struct vm_files *files, struct known_digests *known,
                   struct snapshot_contents *ret, struct err *err)
{
    memset(ret->files, 0, sizeof(ret->files));
    for (int i = 0; i < VM_FILES; i++) {
        int fd = files->fds[i];
        int r = fd < 0 ? 0
                       : measure_file((enum vm_file)i, fd, known, &ret->files[i].bytes,
                                      ret->files[i].digest);

        if (r < 0)
            return err_set_errno(err, -r, "cannot read the snapshot");
    }
    return 0;
}

int snapshot_contents_check(const struct vm_files *files, struct known_digests *known,
                            const struct snapshot_contents *contents, struct err *err)
{
    struct snapshot_contents now;
    int r = measure(files, known, &now, err);

    if (r < 0)
        return r;
    for (int i = 0; i < VM_FILES; i++) {
        if (now.files[i].bytes != contents->files[i].bytes ||
            strcmp(now.files[i].digest, contents->files[i].digest) != 0)
            return err_set(err, EINVAL, "%s is damaged: its digest does not match",
                           names[i].name);
    }
    return 0;
}

int snapshot_contents_seal(const struct vm_files *files, struct known_digests *known,
                           struct snapshot_contents *ret, struct err *err)
{
    for (int i = 0; i < VM_FILES; i++) {
        if (files->fds[i] >= 0 && fsync(files->fds[i]) < 0)
            return err_set_errno(err, errno, "cannot write the snapshot to disk");
    }
    return measure(files, known, ret, err);
}

static bool is_zero(const uint8_t *page)
{
    return page[0] == 0 && memcmp(page, page + 1, PAGE_BYTES - 1) == 0;
}

static void digest_number(struct sha256 *sha, uint64_t number)
{
    uint8_t le[8];
    struct bytes_writer w = bytes_writer_init(le, sizeof(le));

    bytes_put_u64(&w, number);
    sha256_update(sha, le, sizeof(le));
}

/* Adds the pages of [at, end) that are not zero. */
static int digest_range(struct sha256 *sha, int fd, uint8_t *chunk, size_t chunk_size,
                        uint64_t at, uint64_t end)
{
    while (at < end) {
        size_t want = end - at < chunk_size ? (size_t)(end - at) : chunk_size;
        ssize_t n = fd_pread_full(fd, chunk, want, at);

        if (n < 0)
            return (int)n;
        if ((size_t)n != want)
            return -EIO;
        for (size_t i = 0; i < want; i += PAGE_BYTES) {
            if (is_zero(chunk + i))
                continue;
            digest_number(sha, (at + i) / PAGE_BYTES);
            sha256_update(sha, chunk + i, PAGE_BYTES);
        }
        at += want;
    }
    return 0;
}

int snapshots_digest_memory(int fd, char ret_hex[SNAPSHOT_KEY_SIZE])
{
    enum { CHUNK = 256 * 1024 };
    _cleanup_(sha256_destroy) struct sha256 *sha = NULL;
    _cleanup_free_ uint8_t *chunk = NULL;
    uint64_t size = 0, at = 0;
    int r = file_bytes(fd, &size);

    if (r < 0)
        return r;
    if (size % PAGE_BYTES != 0)
        return -EINVAL;
    sha = sha256_create();
    chunk = malloc(CHUNK);
    if (!sha || !chunk)
        return -ENOMEM;
    while (at < size) {
        off_t data = lseek(fd, (off_t)at, SEEK_DATA);
        off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        uint64_t begin, end;

        if (data < 0 && errno == ENXIO)
            break;
        /* A file system that knows no holes: all of it is data. */
        begin = data < 0 ? at : (uint64_t)data / PAGE_BYTES * PAGE_BYTES;
        end = hole < 0 ? size : ((uint64_t)hole + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        if (begin < at)
            begin = at;
        if (end > size)
            end = size;
        r = digest_range(sha, fd, chunk, CHUNK, begin, end);
        if (r < 0)
            return r;
        at = end;
    }
    digest_number(sha, size);
    sha256_hex(sha, ret_hex);
    return 0;
}

static bool is_kept(int parent_fd, const char *key,
                    bool (*is_wanted)(void *ctx, const char *key,
                                      const struct snapshot_name *name),
                    void *ctx)
{
    _cleanup_fd_ int dir = openat(parent_fd, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct snapshot_name name;

    return dir >= 0 && read_name(dir, &name, NULL) == 0 && is_wanted(ctx, key, &name);
}

void snapshot_remove_others(int parent_fd,
                            bool (*is_wanted)(void *ctx, const char *key,
                                              const struct snapshot_name *name),
                            void *ctx)
{
    DIR *dir = fd_opendir(parent_fd);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || is_kept(parent_fd, entry->d_name, is_wanted, ctx))
            continue;
        fd_remove_folder(parent_fd, entry->d_name);
        log_info("snapshot", "removed key=%.16s reason=\"made from other inputs\"",
                 entry->d_name);
    }
    (void)closedir(dir);
}

void snapshot_log_console(int dir)
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
            log_warn("snapshot", "console=\"%s\"", line);
    }
}
