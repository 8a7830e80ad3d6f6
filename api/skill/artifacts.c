/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/artifacts.h"

#include "api/skill/names.h"
#include "api/skill/tar.h"
#include "base/fd.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WARNINGS_MAX 20u
#define MTIME_MAX    (1ull << 33) /* what a ustar time can hold */

const struct artifacts_limits artifacts_limits_default = {
    .files = 10000,
    .bytes = 100u << 20,
    .file_bytes = 100u << 20,
};

/* Every name seen and every folder it implies, by open addressing. */
struct name_slot {
    char *name; /* NULL: free */
    bool is_folder;
};

struct artifacts {
    struct artifacts_limits limits;
    struct tar_reader *reader;
    struct archive *out;
    locale_t utf8; /* libarchive converts names by the thread's locale */
    int spool_fd;  /* the current file: written out only once it is whole */
    bool keeping;  /* the current entry is a file that is kept */
    bool executable;
    uint64_t current_size;
    uint64_t current_mtime;
    char current[NAMES_PATH_MAX + 1];
    struct err *err; /* of the call in progress */
    struct artifact *list;
    size_t n;
    size_t cap;
    uint64_t bytes;
    struct name_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n_names;
    bool truncated;
    struct skill_strings warnings;
    size_t unsaid; /* warnings over WARNINGS_MAX */
};

static struct name_slot *slot_of(struct name_slot *slots, size_t n, const char *name,
                                 size_t len)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3ull;
    hash ^= hash >> 29;
    for (size_t i = (size_t)hash & (n - 1);; i = (i + 1) & (n - 1)) {
        if (!slots[i].name || (strncmp(slots[i].name, name, len) == 0 && !slots[i].name[len]))
            return &slots[i];
    }
}

static int grow_slots(struct artifacts *a)
{
    size_t n = a->n_slots ? 2 * a->n_slots : 64;
    struct name_slot *slots = calloc(n, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_slots; i++) {
        struct name_slot *slot = &a->slots[i];
        if (slot->name)
            *slot_of(slots, n, slot->name, strlen(slot->name)) = *slot;
    }
    free(a->slots);
    a->slots = slots;
    a->n_slots = n;
    return 0;
}

/* Remembers a name. 1 when new, 0 when it was there as a folder too, -EEXIST on a clash. */
static int add_name(struct artifacts *a, const char *name, size_t len, bool is_folder)
{
    if (2 * (a->n_names + 1) > a->n_slots) {
        int result = grow_slots(a);
        if (result)
            return result;
    }
    struct name_slot *slot = slot_of(a->slots, a->n_slots, name, len);
    if (slot->name)
        return slot->is_folder && is_folder ? 0 : -EEXIST;
    slot->name = strndup(name, len);
    if (!slot->name)
        return -ENOMEM;
    slot->is_folder = is_folder;
    a->n_names++;
    return 1;
}

static int add_path(struct artifacts *a, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        int result = add_name(a, path, (size_t)(slash - path), true);
        if (result < 0)
            return result;
    }
    int result = add_name(a, path, strlen(path), false);
    return result < 0 ? result : 0;
}

static int leave_out(struct artifacts *a, const char *name, const char *reason)
{
    char shown[NAMES_SHOWN_MAX];

    if (a->warnings.len >= WARNINGS_MAX - 1) {
        a->unsaid++;
        return 0;
    }
    return skill_strings_add(&a->warnings, "\"%s\" was left out: %s", names_show(name, shown),
                             reason);
}

static int begin_file(struct artifacts *a, const struct tar_header *header)
{
    if (a->n >= a->limits.files) {
        a->truncated = true;
        return leave_out(a, header->path, "there are too many files");
    }
    if (header->size > a->limits.file_bytes || header->size > a->limits.bytes - a->bytes) {
        a->truncated = true;
        return leave_out(a, header->path, "the files are too large");
    }
    int result = add_path(a, a->current);
    if (result == -EEXIST)
        return leave_out(a, header->path, "its name is taken");
    if (result)
        return result;
    if (ftruncate(a->spool_fd, 0) < 0)
        return err_set_errno(a->err, errno, "cannot spool an artifact");
    a->keeping = true;
    a->current_size = 0;
    a->current_mtime = header->mtime_s < MTIME_MAX ? header->mtime_s : 0;
    a->executable = (header->mode & 0111) != 0;
    a->bytes += header->size;
    return 0;
}

static int on_begin(void *user, const struct tar_header *header)
{
    struct artifacts *a = user;
    struct err rule = {0};

    a->keeping = false;
    if (header->type == TAR_DIR)
        return 0;
    if (names_clean(header->path, a->current, &rule) || !a->current[0])
        return leave_out(a, header->path, "its name is refused");
    if (header->type != TAR_FILE)
        return leave_out(a, header->path, "it is no regular file");
    return begin_file(a, header);
}

static int on_data(void *user, const uint8_t *data, size_t len)
{
    struct artifacts *a = user;

    if (!a->keeping)
        return 0;
    int result = fd_pwrite_full(a->spool_fd, data, len, a->current_size);
    if (result)
        return err_set_errno(a->err, -result, "cannot spool an artifact");
    a->current_size += len;
    return 0;
}

static int write_failed(struct artifacts *a)
{
    int code = archive_errno(a->out);

    return err_set_errno(a->err, code > 0 ? code : EIO, "cannot write the artifacts");
}

static int write_out(struct artifacts *a)
{
    struct archive_entry *entry = archive_entry_new();
    char chunk[16384];
    int result = 0;

    if (!entry)
        return -ENOMEM;
    archive_entry_set_pathname(entry, a->current);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, a->executable ? 0755 : 0644);
    archive_entry_set_size(entry, (la_int64_t)a->current_size);
    archive_entry_set_mtime(entry, (time_t)a->current_mtime, 0);
    if (archive_write_header(a->out, entry) < ARCHIVE_WARN)
        result = write_failed(a);
    for (uint64_t at = 0; at < a->current_size && !result;) {
        ssize_t n = fd_pread_full(a->spool_fd, chunk, sizeof(chunk), at);
        if (n <= 0)
            result = err_set_errno(a->err, n < 0 ? (int)-n : EIO, "cannot read an artifact");
        else if (archive_write_data(a->out, chunk, (size_t)n) != n)
            result = write_failed(a);
        at += n > 0 ? (uint64_t)n : 0;
    }
    archive_entry_free(entry);
    return result;
}

static int on_end(void *user)
{
    struct artifacts *a = user;

    if (!a->keeping)
        return 0;
    a->keeping = false;
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 16;
        struct artifact *list = reallocarray(a->list, cap, sizeof(*list));
        if (!list)
            return -ENOMEM;
        a->list = list;
        a->cap = cap;
    }
    int result = write_out(a);
    if (result)
        return result;
    char *path = strdup(a->current);
    if (!path)
        return -ENOMEM;
    a->list[a->n++] = (struct artifact){path, a->current_size};
    return 0;
}

static const struct tar_ops tar_ops = {on_begin, on_data, on_end};

struct artifacts *artifacts_create(int out_fd, const struct artifacts_limits *limits,
                                   struct err *err)
{
    struct artifacts *a = calloc(1, sizeof(*a));

    if (!a)
        goto no_memory;
    a->limits = *limits;
    a->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    a->spool_fd = memfd_create("artifact", MFD_CLOEXEC);
    a->reader = tar_reader_create(&tar_ops, a);
    a->out = archive_write_new();
    if (a->spool_fd < 0 || !a->reader || !a->out)
        goto no_memory;
    if (archive_write_set_format_pax_restricted(a->out) != ARCHIVE_OK ||
        archive_write_add_filter_gzip(a->out) != ARCHIVE_OK ||
        archive_write_set_options(a->out, "gzip:compression-level=1,gzip:!timestamp") !=
            ARCHIVE_OK ||
        archive_write_open_fd(a->out, out_fd) != ARCHIVE_OK)
        goto no_memory;
    return a;
no_memory:
    artifacts_destroy(a);
    err_set(err, ENOMEM, "out of memory for the artifacts");
    return NULL;
}

int artifacts_push(struct artifacts *a, const void *data, size_t len, struct err *err)
{
    locale_t before = a->utf8 ? uselocale(a->utf8) : (locale_t)0;

    a->err = err;
    int result = tar_reader_push(a->reader, data, len, err);
    a->err = NULL;
    if (a->utf8)
        uselocale(before);
    if (result == -ENOMEM)
        return err_set(err, ENOMEM, "out of memory for the artifacts");
    return result;
}

int artifacts_end(struct artifacts *a, struct err *err)
{
    int result = 0;

    if (!tar_reader_complete(a->reader)) {
        a->truncated = true;
        result = a->keeping ? leave_out(a, a->current, "it was cut short")
                            : skill_strings_add(&a->warnings, "the files were cut short");
    }
    if (!result && a->unsaid)
        result = skill_strings_add(&a->warnings, "%zu more files were left out", a->unsaid);
    if (archive_write_close(a->out) != ARCHIVE_OK && !result)
        result = err_set_errno(err, archive_errno(a->out) > 0 ? archive_errno(a->out) : EIO,
                               "cannot write the artifacts");
    return result;
}

const struct artifact *artifacts_list(const struct artifacts *a, size_t *ret_n)
{
    *ret_n = a->n;
    return a->list;
}

bool artifacts_truncated(const struct artifacts *a)
{
    return a->truncated;
}

const struct skill_strings *artifacts_warnings(const struct artifacts *a)
{
    return &a->warnings;
}

void artifacts_destroy(struct artifacts *a)
{
    if (!a)
        return;
    archive_write_free(a->out);
    tar_reader_destroy(a->reader);
    fd_close(&a->spool_fd);
    for (size_t i = 0; i < a->n; i++)
        free(a->list[i].path);
    free(a->list);
    for (size_t i = 0; i < a->n_slots; i++)
        free(a->slots[i].name);
    free(a->slots);
    skill_strings_finish(&a->warnings);
    if (a->utf8)
        freelocale(a->utf8);
    free(a);
}
