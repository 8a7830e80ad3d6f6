/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/blk.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ids.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "vmm/state.h"

#define QUEUE_SIZE   128u
#define SECTOR_SHIFT 9u
#define SECTOR_SIZE  (1u << SECTOR_SHIFT)
#define HEADER_SIZE  16u
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
 * Reads from the file at offset into the first len bytes of the chain's writable part. The
 * status to answer.
 */
static uint8_t read_sectors(struct blk *b, uint64_t offset, uint32_t len)
{
    struct iovec iov[QUEUE_SIZE];
    uint32_t done = 0;

    while (done < len) {
        uint32_t piece;
        size_t n = virtqueue_writable_iov(b->queue, &b->chain, done, len - done, iov,
                                          QUEUE_SIZE, &piece);
        ssize_t got;

        if (n == 0) {
            return VIRTIO_BLK_S_IOERR;
        }
        got = preadv(b->fd, iov, (int)n, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return VIRTIO_BLK_S_IOERR;
        }
        done += (uint32_t)got;
    }
    b->read_bytes += len;
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
        if (data_len % SECTOR_SIZE != 0 || sector > b->n_sectors ||
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

    (void)queue; /* there is one */
    virtqueue_want_kicks(b->queue, false);
    for (;;) {
        int got = budget == 0 ? 0 : virtqueue_pop(b->queue, &b->chain);

        if (got < 0) {
            return;
        }
        if (got > 0) {
            serve_chain(b);
            budget--;
            continue;
        }
        virtqueue_publish(b->queue);
        if (budget == 0) {
            b->queue->more = true;
            return;
        }
        virtqueue_want_kicks(b->queue, true);
        if (!virtqueue_has_work(b->queue)) {
            return;
        }
        virtqueue_want_kicks(b->queue, false);
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

/* Without another look at the file. */
static void blk_renew(struct virtio_device *dev, const struct virtio_host *host)
{
    struct blk *b = to_blk(dev);
    struct blk fresh = {.fd = host->image_fd, .n_sectors = b->n_sectors};

    fresh.device.ops = &blk_ops;
    memcpy(fresh.id, b->id, sizeof(fresh.id));
    *b = fresh;
}

const struct virtio_ops blk_ops = {
    .name = "blk",
    .tag = STATE_TAG('B', 'L', 'K', ' '),
    .size = sizeof(struct blk),
    .id = VIRTIO_ID_BLOCK,
    .config_size = CONFIG_SIZE,
    .n_queues = 1,
    .queue_size = QUEUE_SIZE,
    .features = UINT64_C(1) << VIRTIO_BLK_F_RO | UINT64_C(1) << VIRTIO_BLK_F_SEG_MAX,
    .init = blk_init_device,
    .renew = blk_renew,
    .config = blk_config,
    .activate = blk_activate,
    .notify = blk_notify,
    .reset = blk_reset,
    .save = blk_save,
    .load = blk_load,
    .resume = blk_resume,
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
    b->fd = fd;
    b->n_sectors = (uint64_t)st.st_size >> SECTOR_SHIFT;
    memcpy(b->id, id, strnlen(id, BLK_ID_SIZE));
    return 0;
}
