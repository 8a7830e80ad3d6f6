/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/inputs.h"

#include "api/daemon/routes/holding.h"
#include "api/daemon/routes/lookup.h"
#include "api/daemon/routes/uploads.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_text.h"
#include "api/skill/artifacts_read.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

CLEANUP_WITH(struct artifact_reader *, artifact_reader_close)

#define COPY_BYTES 65536u
/* What a file takes beside its content, and a name of one. */
#define FILE_BYTES 4096u
#define NAME_BYTES 256u
#define LINK_TRIES 4u
/* Before the names of links. Random bytes, and as many digits as these have. */
#define DRAFT_BYTES  16u
#define DRAFT_DIGITS (2 * DRAFT_BYTES)

struct opening {
    struct daemon *d;
    struct http_request *http;
    const char *body;
    struct execution *e;
    /* Not the execution's id: of one idempotency key two requests at once may have the same. */
    char draft[DRAFT_DIGITS + 1];
    uint64_t bytes, held;
    unsigned n_left; /* each is looked for from its archive's start */
};

/* Counts bytes on disk before they are there. */
static int hold(struct opening *o, uint64_t bytes, struct err *err)
{
    if (!http_request_hold(o->http, bytes))
        return err_set(err, EDQUOT, "there is no room for the files");
    o->held += bytes;
    return 0;
}

/* Adds a file by its link. */
static int add(struct opening *o, const char *path, const char *link, uint64_t bytes,
               struct err *err)
{
    o->bytes += bytes;
    if (o->bytes > LIMIT_INFILE_BYTES)
        return err_set(err, EFBIG, "\"files\" are larger than %llu MiB together",
                       LIMIT_INFILE_BYTES / LIMIT_MIB);
    return input_files_add(&o->e->job.files, strdup(path), strdup(link), bytes) < 0
               ? err_no_memory(err)
               : 0;
}

/* Adds a file of its own of so many bytes: its descriptor, to write them to. */
static int begin(struct opening *o, const char *path, uint64_t bytes, struct err *err)
{
    struct input_files *files = &o->e->job.files;
    char link[sizeof(o->draft) + 24];
    int fd, r;

    (void)snprintf(link, sizeof(link), "%s_%zu", o->draft, files->n);
    r = add(o, path, link, bytes, err);
    if (r < 0)
        return r;
    r = hold(o, bytes + FILE_BYTES, err);
    if (r < 0)
        return r;
    fd =
        openat(files->dir_fd, link, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_set_errno(err, errno, "cannot keep the file %.200s", path) : fd;
}

static int link_here(struct opening *o, const char *digest, const char *link, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(o->d->store);
    int r = store_link(store, digest, link, err);

    return r < 0 ? r : holding_use(o->e, o->e->job.files.dir_fd, link, err);
}

/*
 * Links an object, of a cluster after it was read from there: what nobody has open may go again
 * meanwhile. -ENOENT: nothing names it any more.
 */
static int link_object(struct opening *o, const char *digest, const char *link, struct err *err)
{
    for (unsigned tries = 1;; tries++) {
        struct err why = {0};
        int fd, r = link_here(o, digest, link, &why);

        if (r != -ENOENT || tries == LINK_TRIES) {
            if (r < 0)
                *err = why;
            return r < 0 ? -EIO : 0;
        }
        fd = objects_get(o->d->objects, digest, err);
        if (fd < 0)
            return fd;
        fd_close(&fd);
    }
}

/* Another node may have written the row. */
static int check_size(const struct opening *o, const char *link, uint64_t bytes,
                      struct err *err)
{
    struct stat st;

    if (fstatat(o->e->job.files.dir_fd, link, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set_errno(err, errno, "cannot read a file");
    return (uint64_t)st.st_size == bytes
               ? 0
               : err_set(err, EREMOTEIO, "a file is not of the size that its row has");
}

/* However often it takes the same file, that has one name more, which says which it is. */
static int link_uploaded(struct opening *o, const struct request_file *wanted, struct err *err)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    char link[sizeof(o->draft) + REGISTRY_FILE_ID_SIZE];
    struct err why = {0};
    int r = uploads_find(o->d, o->e->tenant, wanted->id, &row, err);

    if (r == -ENOENT)
        return err_set(err, EINVAL, "there is no file %s", wanted->id);
    if (r < 0)
        return r;
    (void)snprintf(link, sizeof(link), "%s_%s", o->draft, row.id);
    r = add(o, wanted->path ? wanted->path : row.name, link, row.bytes, err);
    if (r < 0)
        return r;
    r = link_object(o, row.digest, link, &why);
    if (r == -ENOENT)
        r = uploads_judge_missing(o->d, o->e->tenant, wanted->id, &why);
    if (r == -ENOENT)
        return err_set(err, EINVAL, "there is no file %s", wanted->id);
    if (r < 0) {
        *err = why;
        return r;
    }
    return check_size(o, link, row.bytes, err);
}

static int open_content(struct opening *o, const struct request_file *wanted, struct err *err)
{
    const struct json_slice text = {o->body + wanted->at, wanted->bytes};
    _cleanup_buf_ struct buf content = buf_init(LIMIT_REQUEST_BYTES);
    _cleanup_fd_ int fd = -1;
    int r = json_append_decoded(&content, text);

    if (r < 0)
        return r == -ENOMEM ? err_no_memory(err)
                            : err_set(err, EFBIG,
                                      "the file %.200s is too large to come with "
                                      "the request",
                                      wanted->path);
    if (wanted->from == REQUEST_FILE_BASE64 && base64_decode(&content) < 0)
        return err_set(err, EINVAL, "the content of the file %.200s is no base64",
                       wanted->path);
    fd = begin(o, wanted->path, content.len, err);
    if (fd < 0)
        return fd;
    r = fd_write_full(fd, content.data, content.len);
    return r < 0 ? err_set_errno(err, -r, "cannot keep the file %.200s", wanted->path) : 0;
}

static int copy(struct artifact_reader *reader, int fd, struct err *err)
{
    char data[COPY_BYTES];
    ssize_t n;

    while ((n = artifact_reader_read(reader, data, sizeof(data))) > 0) {
        int r = fd_write_full(fd, data, (size_t)n);

        if (r < 0)
            return err_set_errno(err, -r, "cannot keep a file");
    }
    return n < 0 ? err_set_errno(err, (int)-n, "cannot read what an execution left") : 0;
}

static int find_left(const struct opening *o, const struct request_file *wanted,
                     struct turn *turn, struct artifact_reader **ret, uint64_t *ret_bytes,
                     struct err *err)
{
    _cleanup_fd_ int fd = lookup_files(o->d, o->e->tenant, wanted->id, err);
    int r = fd < 0 ? fd : turn_take(turn, o->d, TURN_LOOK, o->e->tenant, err);

    return r < 0 ? r : artifact_reader_open(fd_steal(&fd), wanted->left, ret, ret_bytes, err);
}

static int open_left(struct opening *o, const struct request_file *wanted, struct err *err)
{
    _cleanup_(artifact_reader_close) struct artifact_reader *reader = NULL;
    _cleanup_turn_ struct turn turn = {.is_hasty = o->e->is_given};
    _cleanup_fd_ int fd = -1;
    struct err why = {0};
    uint64_t bytes = 0;
    int r;

    if (o->n_left++ == LIMIT_FILES_LEFT)
        return err_set(err, EINVAL, "up to %u \"files\" may be what executions left",
                       LIMIT_FILES_LEFT);
    r = find_left(o, wanted, &turn, &reader, &bytes, &why);
    if (r == -ENOENT)
        return err_set(err, EINVAL, "execution %s left no file %.200s", wanted->id,
                       wanted->left);
    if (r < 0)
        return err_set(err, -r, "%s", why.message);
    fd = begin(o, wanted->path, bytes, err);
    if (fd < 0)
        return fd;
    return copy(reader, fd, err);
}

static int open_file(struct opening *o, const struct request_file *wanted, struct err *err)
{
    switch (wanted->from) {
    case REQUEST_FILE_UPLOADED:
        return link_uploaded(o, wanted, err);
    case REQUEST_FILE_LEFT:
        return open_left(o, wanted, err);
    default:
        return open_content(o, wanted, err);
    }
}

static int open_all(struct opening *o, const struct request *request, struct err *err)
{
    int r;

    if (request->n_files == 0)
        return 0;
    if (ids_make_digits(DRAFT_BYTES, o->draft) < 0)
        return err_set(err, EIO, "there are no random bytes");
    r = hold(o, request->n_files * NAME_BYTES, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < request->n_files; i++) {
        r = open_file(o, &request->files[i], err);
        if (r < 0)
            return r;
    }
    return input_files_check(&o->e->job.files, err);
}

int inputs_open(struct daemon *d, struct http_request *http, const struct request *request,
                const char *body, struct execution *e, uint64_t *ret_held, struct err *err)
{
    struct opening o = {.d = d, .http = http, .body = body, .e = e};
    int r;

    e->job.files.dir_fd = store_links(d->store);
    r = open_all(&o, request, err);
    *ret_held = o.held;
    return r;
}

bool inputs_are_shared(struct daemon *d, const struct execution *e)
{
    const struct input_files *files = &e->job.files;
    const char *last = "";

    for (size_t i = 0; i < files->n; i++) {
        _cleanup_registry_file_ struct registry_file row = {0};
        const char *id = files->items[i].link + DRAFT_DIGITS + 1;

        if (!ids_valid(ID_FILE, id) || strcmp(id, last) == 0)
            continue;
        if (uploads_find(d, e->tenant, id, &row, NULL) == -ENOENT)
            return false;
        last = id;
    }
    return true;
}
