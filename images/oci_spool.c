/* SPDX-License-Identifier: Apache-2.0 */
#include "images/oci_spool.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "images/inside.h"

#define LINKS_MAX 4u

struct oci_spooled {
    char name[OCI_NAME_MAX];
    char *target;    /* of a link: the name that it leads to, owned; NULL: it is a file */
    unsigned number; /* the name of its file */
};

CLEANUP_WITH(struct oci_stream *, oci_stream_close)

void oci_spool_finish(struct oci_spool *spool)
{
    for (size_t i = 0; i < spool->n; i++)
        free(spool->list[i].target);
    free(spool->list);
    *spool = (struct oci_spool){.dir_fd = -1};
}

/* For a message. */
static const char *kind_of(const struct oci_spool *spool)
{
    return spool->room ? "folder" : "archive";
}

struct oci_spool oci_spool_folder(int dir_fd, struct oci_room *room)
{
    return (struct oci_spool){.dir_fd = dir_fd, .room = room};
}

static int compare(const void *a, const void *b)
{
    const struct oci_spooled *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int add(struct oci_spool *spool, const char *name, struct oci_spooled **ret,
               struct err *err)
{
    struct oci_spooled *list;

    if (strlen(name) >= OCI_NAME_MAX)
        return err_set(err, E2BIG, "a name of more than %u bytes in the archive",
                       OCI_NAME_MAX - 1);
    list = reallocarray(spool->list, spool->n + 1, sizeof(*list));
    if (!list)
        return err_no_memory(err);
    spool->list = list;
    list[spool->n] = (struct oci_spooled){.number = (unsigned)spool->n};
    strcpy(list[spool->n].name, name);
    *ret = &list[spool->n++];
    return 0;
}

static int open_number(const struct oci_spool *spool, unsigned number, int flags)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "%u", number);
    return openat(spool->dir_fd, name, flags | O_CLOEXEC, 0600);
}

static int spool_file(struct oci_spool *spool, struct oci_stream *stream, uint64_t size,
                      const char *name, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    struct oci_spooled *item;
    int r = oci_stream_charge(stream, size, err);

    if (r < 0)
        return r;
    r = add(spool, name, &item, err);
    if (r < 0)
        return r;
    fd = open_number(spool, item->number, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot unpack the archive");
    return oci_stream_copy(stream, size, fd, err);
}

/*
 * The name that a symbolic link leads to, as `docker save` writes them for a layer that the
 * archive has already: ".." takes a component off, and never more than there are.
 */
static int resolve(const char *name, const char *target, char ret[OCI_PATH_MAX],
                   struct err *err)
{
    const char *slash = strrchr(name, '/');
    char path[2 * OCI_PATH_MAX];
    size_t len = slash ? (size_t)(slash - name) : 0;

    while (strncmp(target, "../", 3) == 0) {
        if (len == 0)
            return err_set(err, EINVAL, "the link \"%.200s\" leads out of the archive", name);
        while (len > 0 && name[len - 1] != '/')
            len--;
        len -= len > 0;
        target += 3;
    }
    if (strlen(target) >= OCI_PATH_MAX)
        return err_set(err, E2BIG, "the link \"%.200s\" is too long", name);
    (void)snprintf(path, sizeof(path), "%.*s%s%s", (int)len, name, len ? "/" : "", target);
    return oci_path(path, ret, err);
}

static int spool_link(struct oci_spool *spool, const char *name, const char *target, bool hard,
                      struct err *err)
{
    char path[OCI_PATH_MAX];
    struct oci_spooled *item;
    int r = hard ? oci_path(target, path, err) : resolve(name, target, path, err);

    if (r < 0)
        return r;
    r = add(spool, name, &item, err);
    if (r < 0)
        return r;
    item->target = strdup(path);
    return item->target ? 0 : err_no_memory(err);
}

static int spool_entry(struct oci_spool *spool, struct oci_stream *stream,
                       struct archive_entry *entry, struct err *err)
{
    const char *raw = archive_entry_pathname(entry);
    const char *hard = archive_entry_hardlink(entry), *soft = archive_entry_symlink(entry);
    char name[OCI_PATH_MAX];
    la_int64_t size = archive_entry_size(entry);
    int r = raw ? oci_path(raw, name, err)
                : err_set(err, EINVAL, "a name in the archive cannot be read");

    if (r < 0)
        return r;
    if (hard || soft)
        return spool_link(spool, name, hard ? hard : soft, hard != NULL, err);
    if (archive_entry_filetype(entry) != AE_IFREG)
        return 0;
    return spool_file(spool, stream, size > 0 ? (uint64_t)size : 0, name, err);
}

static int check_names(struct oci_spool *spool, struct err *err)
{
    if (spool->n > 1)
        qsort(spool->list, spool->n, sizeof(*spool->list), compare);
    for (size_t i = 1; i < spool->n; i++)
        if (compare(&spool->list[i - 1], &spool->list[i]) == 0)
            return err_set(err, EEXIST, "the archive holds %.200s twice", spool->list[i].name);
    return 0;
}

int oci_spool_read(int fd, int dir_fd, struct oci_room *room, struct oci_spool *ret,
                   struct err *err)
{
    _cleanup_(oci_stream_close) struct oci_stream *stream = NULL;
    struct archive_entry *entry;
    int r;

    *ret = (struct oci_spool){.dir_fd = dir_fd};
    r = oci_stream_open(fd, "the archive", room, &stream, err);
    if (r < 0)
        return r;
    while ((r = oci_stream_next(stream, &entry, err)) > 0) {
        r = spool_entry(ret, stream, entry, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    r = oci_stream_digest_packed(stream, ret->digest, err);
    return r < 0 ? r : check_names(ret, err);
}

static const struct oci_spooled *find(const struct oci_spool *spool, const char *name)
{
    struct oci_spooled key;
    const struct oci_spooled *found;

    for (unsigned links = 0; links <= LINKS_MAX; links++) {
        (void)snprintf(key.name, sizeof(key.name), "%.511s", name);
        found = spool->n > 0
                    ? bsearch(&key, spool->list, spool->n, sizeof(*spool->list), compare)
                    : NULL;
        if (!found || !found->target)
            return found;
        name = found->target;
    }
    return NULL;
}

static int check_size(const struct oci_blob *blob, int fd, uint64_t *ret, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "%.200s", blob->name);
    if (blob->size != OCI_SIZE_ABSENT && (uint64_t)st.st_size != blob->size)
        return err_set(err, EBADMSG,
                       "%.200s has %lld bytes, not the %llu that it is told to have",
                       blob->name, (long long)st.st_size, (unsigned long long)blob->size);
    *ret = (uint64_t)st.st_size;
    return 0;
}

static int check_digest(const struct oci_blob *blob, const char *digest, struct err *err)
{
    if (blob->digest[0] && strcmp(digest, blob->digest) != 0)
        return err_set(err, EBADMSG, "%.200s is not what its digest says", blob->name);
    return 0;
}

static int check_file(const struct oci_blob *blob, int fd, struct err *err)
{
    char digest[OCI_HEX_SIZE] = "";
    uint64_t size;
    int r = check_size(blob, fd, &size, err);

    if (r < 0)
        return r;
    if (blob->digest[0])
        r = oci_digest_file(fd, digest);
    return r < 0 ? err_set_errno(err, -r, "%.200s", blob->name)
                 : check_digest(blob, digest, err);
}

static int not_there(const struct oci_spool *spool, const char *name, struct err *err)
{
    return err_set(err, ENOENT, "the %s has no %.200s", kind_of(spool), name);
}

static int open_spooled(const struct oci_spool *spool, const char *name, struct err *err)
{
    const struct oci_spooled *found = find(spool, name);
    int fd;

    if (!found)
        return not_there(spool, name, err);
    fd = open_number(spool, found->number, O_RDONLY);
    return fd < 0 ? err_set_errno(err, errno, "%.200s", name) : fd;
}

/* What is found there may be anything, and of any size. */
static int open_in_folder(const struct oci_spool *spool, const char *name, struct err *err)
{
    _cleanup_fd_ int fd =
        inside_open_plain(spool->dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd == -ENOENT)
        return not_there(spool, name, err);
    if (fd == -ELOOP)
        return err_set(err, ELOOP, "%.200s is a link, and none is followed in a folder", name);
    if (fd < 0)
        return err_set_errno(err, -fd, "%.200s", name);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "%.200s", name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "%.200s is no file", name);
    if ((uint64_t)st.st_size > spool->room->content)
        return err_set(err, E2BIG, "the folder holds files of more bytes than may be");
    spool->room->content -= (uint64_t)st.st_size;
    return fd_steal(&fd);
}

static int open_named(const struct oci_spool *spool, const char *name, struct err *err)
{
    return spool->room ? open_in_folder(spool, name, err) : open_spooled(spool, name, err);
}

int oci_spool_open(const struct oci_spool *spool, const struct oci_blob *blob, struct err *err)
{
    _cleanup_fd_ int fd = open_named(spool, blob->name, err);
    int r = fd < 0 ? fd : check_file(blob, fd, err);

    return r < 0 ? r : fd_steal(&fd);
}

void oci_document_finish(struct oci_document *document)
{
    free(document->text);
    *document = (struct oci_document){0};
}

int oci_spool_text(const struct oci_spool *spool, const struct oci_blob *blob,
                   struct oci_document *ret, struct err *err)
{
    _cleanup_fd_ int fd = open_named(spool, blob->name, err);
    uint64_t size;
    ssize_t n;
    int r;

    *ret = (struct oci_document){0};
    if (fd < 0)
        return fd;
    r = check_size(blob, fd, &size, err);
    if (r < 0)
        return r;
    if (size > OCI_JSON_MAX)
        return err_set(err, EFBIG, "%.200s is over %u bytes", blob->name, OCI_JSON_MAX);
    ret->text = malloc(size + 1);
    n = ret->text ? fd_pread_full(fd, ret->text, size, 0) : -ENOMEM;
    if (n < 0)
        return err_set_errno(err, (int)-n, "%.200s", blob->name);
    ret->text[n] = '\0';
    ret->len = (size_t)n;
    /* Of these bytes: whoever may write to a folder may do so now. */
    r = oci_digest(ret->text, ret->len, ret->digest);
    return r < 0 ? err_set_errno(err, -r, "%.200s", blob->name)
                 : check_digest(blob, ret->digest, err);
}
