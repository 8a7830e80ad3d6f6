/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/disk.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The format is Linux's fs/erofs/erofs_fs.h. What is here is its plainest form: inodes of 32
 * bytes, whose number is their place, and contents that are not packed. The last block of a
 * folder and the target of a link lie behind their inode where they fit into its block, so that
 * to read the one is to have the other.
 */
#define BLOCK        TAR_BLOCK /* what contents are aligned to */
#define BLOCK_BITS   9u
#define MAGIC        0xe0f5e1e2u
#define SUPER_AT     1024u
#define INODE_SIZE   32u
#define INODES_AT    (SUPER_AT + BLOCK)
#define ROOT_INODE   (INODES_AT / INODE_SIZE)
#define DIRENT_SIZE  12u
#define NAME_BYTES   255u
#define TARGET_BYTES 4095u
#define TAIL_MAX     (BLOCK - INODE_SIZE)
#define PLAIN        (0u << 1) /* layouts of contents */
#define WITH_TAIL    (2u << 1)

/* As a folder names them. */
enum kind { KIND_FILE = 1, KIND_DIR = 2, KIND_LINK = 7 };

/* What gets an inode: the root, then the entries of the archive in their order. */
struct node {
    enum kind kind;
    uint16_t mode;
    uint32_t n_links;
    uint64_t size;
    uint64_t at;     /* of the content: in the tar of a file, else in the body */
    size_t tail;     /* bytes at its end that lie behind the inode, */
    size_t tail_at;  /* and where they are in tails until then */
    uint64_t number; /* of the inode */
};

/* A name in a folder; both are nodes. */
struct name {
    size_t folder;
    size_t node;
    const char *text;
};

struct disk {
    const struct skill_archive *archive;
    uint64_t tar_bytes;
    struct node *nodes;
    size_t n_nodes;
    struct name *names;
    size_t n_names;
    struct buf body;  /* folders and targets of links */
    struct buf tails; /* what of them lies behind inodes */
    uint64_t inodes_end;
};

static void disk_finish(struct disk *d)
{
    free(d->nodes);
    free(d->names);
    buf_finish(&d->body);
    buf_finish(&d->tails);
}
#define _cleanup_disk_ __attribute__((cleanup(disk_finish)))

static uint64_t blocks_of(uint64_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK;
}

/* Appends zero bytes, less than a block, up to that length. */
static void pad_to(struct buf *out, uint64_t len)
{
    static const uint8_t zeros[BLOCK];

    if (!out->error && len > out->len)
        (void)buf_append(out, zeros, (size_t)(len - out->len));
}

static void pad(struct buf *out)
{
    pad_to(out, blocks_of(out->len) * BLOCK);
}

/* The node of the folder that a path is in. 0 or -EINVAL. */
static int find_folder(const struct skill_archive *archive, const char *path, size_t *ret)
{
    const char *slash = strrchr(path, '/');
    char folder[TAR_PATH_MAX + 1];
    const struct archive_entry_info *found;

    *ret = 0;
    if (!slash)
        return 0;
    if ((size_t)(slash - path) >= sizeof(folder))
        return -EINVAL;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    found = skill_archive_find(archive, folder);
    if (!found || found->type != ARCHIVE_ENTRY_DIR)
        return -EINVAL;
    *ret = (size_t)(found - archive->entries) + 1;
    return 0;
}

/* 0, or -EINVAL for a name that no folder can have. */
static int add_name(struct disk *d, size_t folder, size_t node, const char *text)
{
    size_t len = strlen(text);

    if (len == 0 || len > NAME_BYTES)
        return -EINVAL;
    d->names[d->n_names++] = (struct name){folder, node, text};
    d->nodes[node].n_links++;
    return 0;
}

static int add_folder(struct disk *d, size_t node, size_t folder)
{
    int r = add_name(d, node, node, ".");

    return r < 0 ? r : add_name(d, node, folder, "..");
}

static struct node make_node(const struct archive_entry_info *entry)
{
    switch (entry->type) {
    case ARCHIVE_ENTRY_DIR:
        return (struct node){.kind = KIND_DIR, .mode = S_IFDIR | 0755};
    case ARCHIVE_ENTRY_LINK:
        return (struct node){.kind = KIND_LINK, .mode = S_IFLNK | 0777};
    case ARCHIVE_ENTRY_FILE:
        break;
    }
    return (struct node){.kind = KIND_FILE,
                         .mode = S_IFREG | (entry->executable ? 0755 : 0644),
                         .size = entry->size,
                         .at = entry->offset};
}

/* Whole blocks of it are read. */
static bool fits_tar(const struct disk *d, const struct node *file)
{
    return file->at % BLOCK == 0 && file->at <= d->tar_bytes && file->size <= UINT32_MAX &&
           blocks_of(file->size) <= (d->tar_bytes - file->at) / BLOCK;
}

static int add_entry(struct disk *d, const struct archive_entry_info *entry)
{
    const char *slash = strrchr(entry->path, '/');
    size_t node = d->n_nodes++;
    size_t folder;
    int r = find_folder(d->archive, entry->path, &folder);

    if (r < 0)
        return r;
    d->nodes[node] = make_node(entry);
    if (!fits_tar(d, &d->nodes[node]))
        return -EINVAL;
    r = add_name(d, folder, node, slash ? slash + 1 : entry->path);
    return r == 0 && entry->type == ARCHIVE_ENTRY_DIR ? add_folder(d, node, folder) : r;
}

static int add_entries(struct disk *d)
{
    size_t n = d->archive->n_entries;
    int r;

    d->nodes = calloc(n + 1, sizeof(*d->nodes));
    d->names = calloc(3 * (n + 1), sizeof(*d->names));
    if (!d->nodes || !d->names)
        return -ENOMEM;
    d->nodes[d->n_nodes++] = (struct node){.kind = KIND_DIR, .mode = S_IFDIR | 0755};
    r = add_folder(d, 0, 0);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_entry(d, &d->archive->entries[i]);
    return r;
}

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;

    if (x->folder != y->folder)
        return x->folder < y->folder ? -1 : 1;
    return strcmp(x->text, y->text);
}

/* How many of n names fit into a block, of which they take *ret_used bytes. */
static size_t count_fitting(const struct name *names, size_t n, size_t *ret_used)
{
    size_t used = 0, i = 0;

    while (i < n && used + DIRENT_SIZE + strlen(names[i].text) <= BLOCK)
        used += DIRENT_SIZE + strlen(names[i++].text);
    *ret_used = used;
    return i;
}

/* How many of n names are in the folder of the first. */
static size_t count_own(const struct name *names, size_t n)
{
    size_t own = 0;

    while (own < n && names[own].folder == names[0].folder)
        own++;
    return own;
}

static void measure_folder(struct node *folder, const struct name *names, size_t own)
{
    size_t used = 0, n_blocks = 0;

    for (size_t done = 0; done < own; n_blocks++)
        done += count_fitting(names + done, own - done, &used);
    folder->size = (n_blocks - 1) * BLOCK + used;
    folder->tail = used <= TAIL_MAX ? used : 0;
}

/* 0, or -EINVAL for what no link leads to. */
static int measure_target(struct node *link, const char *target)
{
    link->size = strlen(target);
    link->tail = link->size <= TAIL_MAX ? link->size : 0;
    return link->size == 0 || link->size > TARGET_BYTES ? -EINVAL : 0;
}

static int measure(struct disk *d)
{
    for (size_t i = 0, own; i < d->n_names; i += own) {
        own = count_own(d->names + i, d->n_names - i);
        measure_folder(&d->nodes[d->names[i].folder], d->names + i, own);
    }
    for (size_t i = 1; i < d->n_nodes; i++) {
        struct node *node = &d->nodes[i];
        int r = node->kind == KIND_LINK
                    ? measure_target(node, d->archive->entries[i - 1].target)
                    : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

/* Gives each inode its place, in one block with its tail. */
static void place_inodes(struct disk *d)
{
    uint64_t at = INODES_AT;

    for (size_t i = 0; i < d->n_nodes; i++) {
        size_t len = INODE_SIZE + d->nodes[i].tail;

        if (at % BLOCK + len > BLOCK)
            at = blocks_of(at) * BLOCK;
        d->nodes[i].number = at / INODE_SIZE;
        at += (len + INODE_SIZE - 1) / INODE_SIZE * INODE_SIZE;
    }
    d->inodes_end = blocks_of(at) * BLOCK;
}

/* One block of a folder: where each name begins, then the names. */
static void put_names(const struct disk *d, const struct name *names, size_t n, struct buf *out)
{
    size_t at = n * DIRENT_SIZE;

    for (size_t i = 0; i < n; i++) {
        uint8_t raw[DIRENT_SIZE];
        struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

        bytes_put_u64(&w, d->nodes[names[i].node].number);
        bytes_put_u16(&w, (uint16_t)at);
        bytes_put_u8(&w, (uint8_t)d->nodes[names[i].node].kind);
        bytes_put_u8(&w, 0);
        (void)buf_append(out, raw, sizeof(raw));
        at += strlen(names[i].text);
    }
    for (size_t i = 0; i < n; i++)
        (void)buf_append(out, names[i].text, strlen(names[i].text));
}

static void put_folder(struct disk *d, const struct name *names, size_t own)
{
    struct node *folder = &d->nodes[names[0].folder];

    folder->at = d->body.len;
    folder->tail_at = d->tails.len;
    for (size_t done = 0, fit, used; done < own; done += fit) {
        fit = count_fitting(names + done, own - done, &used);
        if (done + fit == own && folder->tail > 0) {
            put_names(d, names + done, fit, &d->tails);
            continue;
        }
        put_names(d, names + done, fit, &d->body);
        pad(&d->body);
    }
}

static void put_target(struct disk *d, struct node *link, const char *target)
{
    link->at = d->body.len;
    link->tail_at = d->tails.len;
    (void)buf_append(link->tail > 0 ? &d->tails : &d->body, target, link->size);
    pad(&d->body);
}

static int put_body(struct disk *d)
{
    for (size_t i = 0, own; i < d->n_names; i += own) {
        own = count_own(d->names + i, d->n_names - i);
        put_folder(d, d->names + i, own);
    }
    for (size_t i = 1; i < d->n_nodes; i++)
        if (d->nodes[i].kind == KIND_LINK)
            put_target(d, &d->nodes[i], d->archive->entries[i - 1].target);
    return d->body.error ? d->body.error : d->tails.error;
}

/* blocks: of all that is on the disk. */
static void put_super(const struct disk *d, uint64_t time_ns, uint64_t blocks, struct buf *head)
{
    uint8_t raw[SUPER_AT + BLOCK] = {0};
    struct bytes_writer w = bytes_writer_init(raw + SUPER_AT, BLOCK);

    bytes_put_u32(&w, MAGIC);
    bytes_put_u32(&w, 0); /* no checksum */
    bytes_put_u32(&w, 0); /* nothing that an older kernel may ignore */
    bytes_put_u8(&w, BLOCK_BITS);
    bytes_put_u8(&w, 0);
    bytes_put_u16(&w, ROOT_INODE);
    bytes_put_u64(&w, d->n_nodes);
    bytes_put_u64(&w, time_ns / NS_PER_SECOND); /* of everything in it */
    bytes_put_u32(&w, (uint32_t)(time_ns % NS_PER_SECOND));
    /* For statfs alone. The rest is 0: inodes are numbered from the beginning of the disk, and
       there is nothing that a kernel must know of. */
    bytes_put_u32(&w, (uint32_t)blocks);
    (void)buf_append(head, raw, sizeof(raw));
}

static void put_inode(const struct disk *d, const struct node *node, uint64_t content_block,
                      struct buf *head)
{
    uint8_t raw[INODE_SIZE];
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    bytes_put_u16(&w, node->tail > 0 ? WITH_TAIL : PLAIN);
    bytes_put_u16(&w, 0);
    bytes_put_u16(&w, node->mode);
    bytes_put_u16(&w, (uint16_t)(node->n_links < UINT16_MAX ? node->n_links : UINT16_MAX));
    bytes_put_u32(&w, (uint32_t)node->size);
    bytes_put_u32(&w, 0);
    bytes_put_u32(&w, (uint32_t)(content_block + node->at / BLOCK));
    bytes_put_u32(&w, (uint32_t)node->number);
    bytes_put_u32(&w, 0); /* root's */
    bytes_put_u32(&w, 0);
    pad_to(head, node->number * INODE_SIZE);
    (void)buf_append(head, raw, sizeof(raw));
    if (node->tail > 0)
        (void)buf_append(head, d->tails.data + node->tail_at, node->tail);
}

static void put_head(const struct disk *d, uint64_t time_ns, struct buf *head)
{
    uint64_t body = blocks_of(d->inodes_end);
    uint64_t tar = body + blocks_of(d->body.len);

    put_super(d, time_ns, tar + blocks_of(d->tar_bytes), head);
    for (size_t i = 0; i < d->n_nodes; i++)
        put_inode(d, &d->nodes[i], d->nodes[i].kind == KIND_FILE ? tar : body, head);
    pad_to(head, d->inodes_end);
    (void)buf_append(head, d->body.data, d->body.len);
}

int skill_disk_put_head(const struct skill_archive *archive, uint64_t tar_bytes,
                        uint64_t time_ns, struct buf *head)
{
    _cleanup_disk_ struct disk d = {.archive = archive,
                                    .tar_bytes = tar_bytes,
                                    .body = buf_init(head->max),
                                    .tails = buf_init(head->max)};
    int r = add_entries(&d);

    if (r < 0)
        return r;
    qsort(d.names, d.n_names, sizeof(*d.names), compare_names);
    r = measure(&d);
    if (r < 0)
        return r;
    place_inodes(&d);
    r = put_body(&d);
    if (r < 0)
        return r;
    put_head(&d, time_ns, head);
    return head->error;
}
