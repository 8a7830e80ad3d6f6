/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/blk.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ids.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "vmm/control.h"
#include "vmm/state.h"

#define QUEUE_SIZE   128u
#define SECTOR_SHIFT 9u
#define SECTOR_SIZE  (1u << SECTOR_SHIFT)
/*
 * One call serves so many bytes and a request at most, as nothing else of the machine goes on;
 * nor does a request have more: Linux asks for 1,280 KiB at most.
 */
#define CALL_BYTES_MAX (4u << 20)
#define HEADER_SIZE    16u
/* Every request has a header and a status beside its data. */
#define SEG_MAX (QUEUE_SIZE - 2u)
/* Up to and with seg_max (VIRTIO 1.2, section 5.2.4). */
#define CONFIG_SIZE     16u
#define CONFIG_CAPACITY 0u
#define CONFIG_SEG_MAX  12u

static struct blk *to_blk(struct virtio_device *dev)
{
    return (struct blk *)(void *)dev;
}

static void blk_config(const struct virtio_device *dev, uint8_t *out)
{
    const struct blk *b = (const struct blk *)(const void *)dev;
    uint64_t capacity = htole64(b->n_sectors);
    uint32_t seg_max = htole32(SEG_MAX);

    memcpy(out + CONFIG_CAPACITY, &capacity, sizeof(capacity));
    memcpy(out + CONFIG_SEG_MAX, &seg_max, sizeof(seg_max));
}

/*
 * The file that holds the byte at *offset, which becomes one of the file, and how many bytes
 * follow in it. NULL past all of them.
 */
static const struct blk_part *find_part(const struct blk *b, uint64_t *offset,
                                        uint64_t *ret_left)
{
    for (size_t i = 0; i < b->n_parts; i++) {
        uint64_t bytes = b->parts[i].n_sectors << SECTOR_SHIFT;

        if (*offset < bytes) {
            *ret_left = bytes - *offset;
            return &b->parts[i];
        }
        *offset -= bytes;
    }
    return NULL;
}

/*
 * Reads from the files at offset into the first len bytes of the chain's writable part. The
 * status to answer.
 */
static uint8_t read_sectors(struct blk *b, uint64_t offset, uint32_t len)
{
    struct iovec iov[QUEUE_SIZE];
    uint32_t done = 0;

    while (done < len) {
        uint64_t at = offset + done;
        uint64_t left;
        const struct blk_part *part = find_part(b, &at, &left);
        uint32_t wanted = len - done;
        uint32_t piece;
        ssize_t got;
        size_t n;

        if (!part) {
            return VIRTIO_BLK_S_IOERR;
        }
        wanted = left < wanted ? (uint32_t)left : wanted;
        n = virtqueue_writable_iov(b->queue, &b->chain, done, wanted, iov, QUEUE_SIZE, &piece);
        if (n == 0) {
            return VIRTIO_BLK_S_IOERR;
        }
        got = preadv(part->fd, iov, (int)n, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return VIRTIO_BLK_S_IOERR;
        }
        done += (uint32_t)got;
        b->read_bytes += (uint64_t)got;
    }
    return VIRTIO_BLK_S_OK;
}

/* Serves the request in b->chain. The status to answer; *ret_len gets the data bytes written.
 */
static uint8_t serve_request(struct blk *b, uint32_t *ret_len)
{
    struct virtio_blk_outhdr header;
    /* The last writable byte is the status. */
    uint32_t data_len = b->chain.writable_len - 1;
    uint64_t sector;
    uint8_t status;

    *ret_len = 0;
    virtqueue_read(b->queue, &b->chain, 0, &header, sizeof(header));
    sector = le64toh(header.sector);
    switch (le32toh(header.type)) {
    case VIRTIO_BLK_T_IN:
        if (data_len % SECTOR_SIZE != 0 || data_len > CALL_BYTES_MAX || sector > b->n_sectors ||
            data_len >> SECTOR_SHIFT > b->n_sectors - sector) {
            return VIRTIO_BLK_S_IOERR;
        }
        status = read_sectors(b, sector << SECTOR_SHIFT, data_len);
        *ret_len = status == VIRTIO_BLK_S_OK ? data_len : 0;
        return status;
    case VIRTIO_BLK_T_GET_ID:
        *ret_len = data_len < BLK_ID_SIZE ? data_len : BLK_ID_SIZE;
        virtqueue_write(b->queue, &b->chain, 0, b->id, *ret_len);
        return VIRTIO_BLK_S_OK;
    case VIRTIO_BLK_T_FLUSH:
        return VIRTIO_BLK_S_OK;
    case VIRTIO_BLK_T_OUT:
        return VIRTIO_BLK_S_IOERR;
    default:
        return VIRTIO_BLK_S_UNSUPP;
    }
}

static void serve_chain(struct blk *b)
{
    uint32_t len;
    uint8_t status;

    if (b->chain.readable_len < HEADER_SIZE || b->chain.writable_len < 1) {
        virtqueue_fail(b->queue, "blk request without header or status");
        return;
    }
    b->request_count++;
    status = serve_request(b, &len);
    if (status != VIRTIO_BLK_S_OK) {
        b->refused_count++;
    }
    virtqueue_write(b->queue, &b->chain, b->chain.writable_len - 1, &status, 1);
    virtqueue_push(b->queue, b->chain.head, len + 1);
}

static void blk_notify(struct virtio_device *dev, uint16_t queue)
{
    struct blk *b = to_blk(dev);
    unsigned int budget = QUEUE_SIZE;
    uint64_t enough = b->read_bytes + CALL_BYTES_MAX;

    (void)queue; /* there is one */
    virtqueue_want_kicks(b->queue, false);
    for (;;) {
        bool is_over = budget == 0 || b->read_bytes >= enough;
        int got = is_over ? 0 : virtqueue_pop(b->queue, &b->chain);

        if (got < 0) {
            return;
        }
        if (got > 0) {
            serve_chain(b);
            budget--;
            continue;
        }
        virtqueue_publish(b->queue);
        if (is_over) {
            b->queue->more = true;
            return;
        }
        virtqueue_want_kicks(b->queue, true);
        if (!virtqueue_has_work(b->queue)) {
            return;
        }
        virtqueue_want_kicks(b->queue, false);
        /* A driver may take back what was seen there, and offer it again. */
        budget--;
    }
}

static void blk_activate(struct virtio_device *dev, struct virtqueue *queues)
{
    to_blk(dev)->queue = queues;
}

static void blk_reset(struct virtio_device *dev)
{
    to_blk(dev)->queue = NULL;
}

static void blk_save(const struct virtio_device *dev, struct bytes_writer *w)
{
    const struct blk *b = (const struct blk *)(const void *)dev;

    bytes_put_u64(w, b->n_sectors);
    bytes_put(w, b->id, sizeof(b->id));
}

static int blk_load(struct virtio_device *dev, struct bytes_reader *r, struct err *err)
{
    struct blk *b = to_blk(dev);
    uint64_t n_sectors = bytes_get_u64(r);
    char id[BLK_ID_SIZE];

    bytes_get(r, id, sizeof(id));
    if (r->bad || n_sectors != b->n_sectors || memcmp(id, b->id, sizeof(id)) != 0) {
        return err_set(err, EINVAL, "blk state: of another disk, or cut short");
    }
    return 0;
}

static void blk_resume(struct virtio_device *dev, struct virtqueue *queues)
{
    to_blk(dev)->queue = queues;
    blk_notify(dev, 0);
}

static int blk_init_device(struct virtio_device *dev, const struct virtio_host *host,
                           struct err *err)
{
    return blk_init(to_blk(dev), host->image_fd, "skillvm-root", err);
}

/* As a new one, with the id, size and files that it has. */
static void start_anew(struct blk *b)
{
    struct blk fresh = {
        .device.ops = b->device.ops, .n_parts = b->n_parts, .n_sectors = b->n_sectors};

    memcpy(fresh.parts, b->parts, sizeof(fresh.parts));
    memcpy(fresh.id, b->id, sizeof(fresh.id));
    *b = fresh;
}

/* Without another look at the file. */
static void blk_renew(struct virtio_device *dev, const struct virtio_host *host)
{
    to_blk(dev)->parts[0].fd = host->image_fd;
    start_anew(to_blk(dev));
}

static int skill_init_device(struct virtio_device *dev, const struct virtio_host *host,
                             struct err *err)
{
    (void)host;
    (void)err;
    blk_init_skill(to_blk(dev));
    return 0;
}

static void skill_finish(struct virtio_device *dev)
{
    struct blk *b = to_blk(dev);

    while (b->n_parts > 0)
        fd_close(&b->parts[--b->n_parts].fd);
}

static void skill_renew(struct virtio_device *dev, const struct virtio_host *host)
{
    (void)host;
    skill_finish(dev);
    start_anew(to_blk(dev));
}

#define BOTH                                                                                   \
    .size = sizeof(struct blk), .id = VIRTIO_ID_BLOCK, .config_size = CONFIG_SIZE,             \
    .n_queues = 1, .queue_size = QUEUE_SIZE,                                                   \
    .features = UINT64_C(1) << VIRTIO_BLK_F_RO | UINT64_C(1) << VIRTIO_BLK_F_SEG_MAX,          \
    .config = blk_config, .activate = blk_activate, .notify = blk_notify, .reset = blk_reset,  \
    .save = blk_save, .load = blk_load, .resume = blk_resume

const struct virtio_ops blk_ops = {
    BOTH,
    .name = "blk",
    .tag = STATE_TAG('B', 'L', 'K', ' '),
    .init = blk_init_device,
    .renew = blk_renew,
};

const struct virtio_ops blk_skill_ops = {
    BOTH,
    .name = "skill disk",
    .tag = STATE_TAG('D', 'I', 'S', 'K'),
    .init = skill_init_device,
    .renew = skill_renew,
    .finish = skill_finish,
};

int blk_init(struct blk *b, int fd, const char *id, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        return err_set_errno(err, errno, "disk image");
    }
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size % SECTOR_SIZE != 0) {
        return err_set(err, EINVAL, "disk image: not a file of a positive multiple of %u bytes",
                       SECTOR_SIZE);
    }
    memset(b, 0, sizeof(*b));
    b->device.ops = &blk_ops;
    b->n_sectors = (uint64_t)st.st_size >> SECTOR_SHIFT;
    b->parts[b->n_parts++] = (struct blk_part){fd, b->n_sectors};
    memcpy(b->id, id, strnlen(id, BLK_ID_SIZE));
    return 0;
}

void blk_init_skill(struct blk *b)
{
    static const char id[BLK_ID_SIZE] = "skillvm-skill";

    memset(b, 0, sizeof(*b));
    b->device.ops = &blk_skill_ops;
    /* The same for every skill, as it is a part of the snapshot. */
    b->n_sectors = VMM_DISK_BYTES_MAX >> SECTOR_SHIFT;
    memcpy(b->id, id, sizeof(id));
}

struct blk *blk_skill_of(struct virtio_device *dev)
{
    return dev->ops == &blk_skill_ops ? to_blk(dev) : NULL;
}

int blk_attach(struct blk *b, int fds[BLK_PARTS_MAX], const uint64_t bytes[BLK_PARTS_MAX],
               struct err *err)
{
    uint64_t left = b->n_sectors;

    if (b->n_parts > 0) {
        return err_set(err, EBUSY, "the machine has a skill's disk already");
    }
    for (size_t i = 0; i < BLK_PARTS_MAX; i++) {
        uint64_t n_sectors = bytes[i] >> SECTOR_SHIFT;

        if (bytes[i] == 0 || bytes[i] % SECTOR_SIZE != 0 || n_sectors > left) {
            return err_set(err, EINVAL, "a skill's disk with a file of %llu bytes",
                           (unsigned long long)bytes[i]);
        }
        left -= n_sectors;
    }
    for (; b->n_parts < BLK_PARTS_MAX; b->n_parts++) {
        b->parts[b->n_parts] =
            (struct blk_part){fd_steal(&fds[b->n_parts]), bytes[b->n_parts] >> SECTOR_SHIFT};
    }
    return 0;
}
