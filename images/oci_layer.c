/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer is read twice: first as a whole, with its digest and what it says is gone, which is
 * only of lower layers whatever its place in the tar; then for what it puts. Its file may have
 * changed between, so that the other reading has no more room than the first one took, and
 * must come to the same digest.
 */
#include "images/oci_layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "images/place.h"

CLEANUP_WITH(struct oci_stream *, oci_stream_close)

struct item {
    struct archive_entry *entry;
    char path[OCI_PATH_MAX];
    enum oci_mark mark;
    uint64_t size;
};

static int read_item(struct archive_entry *entry, struct item *ret, struct err *err)
{
    const char *name = archive_entry_pathname(entry);
    la_int64_t size = archive_entry_size(entry);
    int r =
        name ? oci_path(name, ret->path, err) : err_set(err, EINVAL, "a name cannot be read");

    if (r < 0)
        return r;
    ret->entry = entry;
    ret->size = size > 0 ? (uint64_t)size : 0;
    return oci_take_mark(ret->path, &ret->mark, err);
}

static int take_away(int root_fd, const struct item *item, struct err *err)
{
    _cleanup_place_ struct place place = PLACE_NONE;
    int r;

    if (item->mark == OCI_MARK_IGNORED)
        return 0;
    /* Only the mark that empties a folder names none: it lies in the root. */
    if (!*item->path)
        return place_empty_root(root_fd, err);
    r = place_find(root_fd, item->path, false, &place, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    return item->mark == OCI_MARK_GONE ? place_clear(&place, err) : place_empty(&place, err);
}

/* Of the first reading. */
static int look(struct oci_stream *stream, int root_fd, const struct item *item,
                struct err *err)
{
    if (item->mark != OCI_MARK_NONE)
        return take_away(root_fd, item, err);
    return archive_entry_hardlink(item->entry) ? 0 : oci_stream_charge(stream, item->size, err);
}

static int put_file(struct oci_stream *stream, const struct place *place,
                    const struct item *item, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = oci_stream_charge(stream, item->size, err);

    if (r < 0)
        return r;
    fd = place_file(place, archive_entry_perm(item->entry) | 0600, err);
    return fd < 0 ? fd : oci_stream_copy(stream, item->size, fd, err);
}

static int put_same(int root_fd, const struct place *place, const char *target, struct err *err)
{
    _cleanup_place_ struct place other = PLACE_NONE;
    char path[OCI_PATH_MAX];
    int r = oci_path(target, path, err);

    if (r < 0)
        return r;
    r = *path ? place_find(root_fd, path, false, &other, err) : -ENOENT;
    if (r == -ENOENT)
        return err_set(err, ENOENT, "%.150s is the same file as %.150s, which is not there",
                       place->path, path);
    return r < 0 ? r : place_same(place, &other, err);
}

/* Of the second. Who unpacks must be able to read it and to remove it again. */
static int put(struct oci_stream *stream, int root_fd, const struct item *item, struct err *err)
{
    _cleanup_place_ struct place place = PLACE_NONE;
    const char *hard = archive_entry_hardlink(item->entry);
    const char *soft = archive_entry_symlink(item->entry);
    const unsigned type = archive_entry_filetype(item->entry);
    int r;

    if (item->mark != OCI_MARK_NONE || !*item->path)
        return 0;
    if (!hard && type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
        return 0;
    r = place_find(root_fd, item->path, true, &place, err);
    if (r < 0)
        return r;
    if (hard)
        return put_same(root_fd, &place, hard, err);
    if (type == AE_IFDIR)
        return place_folder(&place, archive_entry_perm(item->entry) | 0700, err);
    if (type == AE_IFREG)
        return put_file(stream, &place, item, err);
    if (!soft || !*soft || strlen(soft) >= OCI_PATH_MAX)
        return err_set(err, EINVAL, "the link %.200s has no target, or one that is too long",
                       item->path);
    return place_link(&place, soft, err);
}

typedef int take_fn(struct oci_stream *stream, int root_fd, const struct item *item,
                    struct err *err);

/* One reading of all entries. */
static int each(struct oci_stream *stream, int root_fd, take_fn *take, struct err *err)
{
    struct archive_entry *entry;
    int r;

    while ((r = oci_stream_next(stream, &entry, err)) > 0) {
        struct item item;

        r = read_item(entry, &item, err);
        if (r < 0)
            return r;
        r = take(stream, root_fd, &item, err);
        if (r < 0)
            return r;
    }
    return r;
}

/* The whole of it, which must have its digest. */
static int read_all(int root_fd, int fd, const struct oci_layer *layer, struct oci_room *room,
                    take_fn *take, struct err *err)
{
    _cleanup_(oci_stream_close) struct oci_stream *stream = NULL;
    char digest[OCI_HEX_SIZE];
    int r = oci_stream_open(fd, "it", room, &stream, err);

    if (r < 0)
        return r;
    r = each(stream, root_fd, take, err);
    if (r < 0)
        return r;
    r = oci_stream_digest(stream, digest, err);
    if (r < 0)
        return r;
    return strcmp(digest, layer->diff_id) == 0
               ? 0
               : err_set(err, EBADMSG, "what is in it is not what the configuration says");
}

int oci_layer_apply(int root_fd, int fd, const struct oci_layer *layer, struct oci_room *room,
                    struct err *err)
{
    struct oci_room taken = *room;
    int r = read_all(root_fd, fd, layer, room, look, err);

    if (r == 0) {
        taken.bytes -= room->bytes;
        taken.content -= room->content;
        taken.entries -= room->entries;
        r = read_all(root_fd, fd, layer, &taken, put, err);
    }
    if (r < 0) {
        err_prefix(err, "the layer %.100s", layer->blob.name);
        return -err->code;
    }
    return 0;
}
