/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/mmio.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <string.h>

#define MAGIC         0x74726976u /* "virt" */
#define VENDOR        0x4d564b53u /* "SKVM" */
#define MMIO_VERSION  2u
#define STATE_VERSION 1u

_Static_assert(VIRTIO_MMIO_QUEUE_NOTIFY == VIRTIO_MMIO_NOTIFY_OFFSET, "ioeventfd offset");

/* The bits of linux/virtio_config.h, unsigned. */
#define STATUS_ACKNOWLEDGE ((uint32_t)VIRTIO_CONFIG_S_ACKNOWLEDGE)
#define STATUS_DRIVER      ((uint32_t)VIRTIO_CONFIG_S_DRIVER)
#define STATUS_DRIVER_OK   ((uint32_t)VIRTIO_CONFIG_S_DRIVER_OK)
#define STATUS_FEATURES_OK ((uint32_t)VIRTIO_CONFIG_S_FEATURES_OK)
#define STATUS_NEEDS_RESET ((uint32_t)VIRTIO_CONFIG_S_NEEDS_RESET)
#define STATUS_FAILED      ((uint32_t)VIRTIO_CONFIG_S_FAILED)
#define STATUS_KNOWN                                                                           \
    (STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_DRIVER_OK | STATUS_FEATURES_OK |              \
     STATUS_NEEDS_RESET | STATUS_FAILED)

#define INTERRUPT_VRING  ((uint32_t)VIRTIO_MMIO_INT_VRING)
#define INTERRUPT_CONFIG ((uint32_t)VIRTIO_MMIO_INT_CONFIG)

#define FEATURE_VERSION_1 (UINT64_C(1) << VIRTIO_F_VERSION_1)

static uint64_t offered_features(const struct virtio_mmio *t)
{
    return t->device->ops->features | FEATURE_VERSION_1;
}

static bool has_status(const struct virtio_mmio *t, uint32_t bits)
{
    return (t->status & bits) == bits;
}

/*
 * The interrupt is an edge. While its bit is still set the driver has not acknowledged it, and
 * it looks at its queues only after it has: a second edge would tell it nothing new.
 */
static void raise_interrupt(struct virtio_mmio *t, uint32_t bit)
{
    if ((t->interrupt_status & bit) != 0) {
        return;
    }
    t->interrupt_status |= bit;
    t->irq_count++;
    t->irq.raise(t->irq.context);
}

static void fail(struct virtio_mmio *t, const char *reason)
{
    if (t->failure != NULL) {
        return;
    }
    t->failure = reason;
    t->status |= STATUS_NEEDS_RESET;
    t->device->ops->reset(t->device);
    if (has_status(t, STATUS_DRIVER_OK)) {
        raise_interrupt(t, INTERRUPT_CONFIG);
    }
}

static void reset(struct virtio_mmio *t)
{
    t->device->ops->reset(t->device);
    for (unsigned int i = 0; i < VIRTIO_QUEUES_MAX; i++) {
        virtqueue_reset(&t->queues[i]);
    }
    t->status = 0;
    t->interrupt_status = 0;
    t->device_features_sel = 0;
    t->driver_features_sel = 0;
    t->driver_features = 0;
    t->queue_sel = 0;
    t->failure = NULL;
}

void virtio_mmio_init(struct virtio_mmio *t, struct virtio_device *device,
                      const struct memory *mem, struct virtio_irq irq)
{
    memset(t, 0, sizeof(*t));
    t->device = device;
    t->irq = irq;
    device->transport = t;
    for (unsigned int i = 0; i < VIRTIO_QUEUES_MAX; i++) {
        virtqueue_init(&t->queues[i], mem);
    }
}

bool virtio_mmio_is_active(const struct virtio_mmio *t)
{
    return has_status(t, STATUS_DRIVER_OK) && t->failure == NULL;
}

const char *virtio_mmio_failure(const struct virtio_mmio *t)
{
    return t->failure;
}

void virtio_mmio_flush(struct virtio_mmio *t)
{
    bool due = false;

    if (!virtio_mmio_is_active(t)) {
        return;
    }
    for (unsigned int i = 0; i < t->device->ops->n_queues; i++) {
        due = virtqueue_take_interrupt(&t->queues[i]) || due;
    }
    for (unsigned int i = 0; i < t->device->ops->n_queues; i++) {
        if (t->queues[i].failure != NULL) {
            fail(t, t->queues[i].failure);
            return;
        }
    }
    if (due) {
        for (unsigned int i = 0; i < t->device->ops->n_queues; i++) {
            virtqueue_clear_interrupt(&t->queues[i]);
        }
        raise_interrupt(t, INTERRUPT_VRING);
    }
}

void virtio_mmio_notify(struct virtio_mmio *t, uint32_t queue)
{
    if (!virtio_mmio_is_active(t) || queue >= t->device->ops->n_queues) {
        t->misuse_count++;
        return;
    }
    t->queues[queue].more = false;
    t->device->ops->notify(t->device, (uint16_t)queue);
    virtio_mmio_flush(t);
}

bool virtio_mmio_serve_more(struct virtio_mmio *t)
{
    for (uint32_t i = 0; i < t->device->ops->n_queues; i++) {
        if (virtio_mmio_is_active(t) && t->queues[i].more) {
            virtio_mmio_notify(t, i);
        }
    }
    for (uint32_t i = 0; i < t->device->ops->n_queues; i++) {
        if (virtio_mmio_is_active(t) && t->queues[i].more) {
            return true;
        }
    }
    return false;
}

/* The queue that QueueSel names, or NULL. */
static struct virtqueue *selected_queue(struct virtio_mmio *t)
{
    return t->queue_sel < t->device->ops->n_queues ? &t->queues[t->queue_sel] : NULL;
}

static uint32_t read_register(struct virtio_mmio *t, uint64_t offset)
{
    const struct virtqueue *q = selected_queue(t);

    switch (offset) {
    case VIRTIO_MMIO_MAGIC_VALUE:
        return MAGIC;
    case VIRTIO_MMIO_VERSION:
        return MMIO_VERSION;
    case VIRTIO_MMIO_DEVICE_ID:
        return t->device->ops->id;
    case VIRTIO_MMIO_VENDOR_ID:
        return VENDOR;
    case VIRTIO_MMIO_DEVICE_FEATURES:
        return t->device_features_sel > 1
                   ? 0
                   : (uint32_t)(offered_features(t) >> (32 * t->device_features_sel));
    case VIRTIO_MMIO_QUEUE_NUM_MAX:
        return q == NULL ? 0 : t->device->ops->queue_size;
    case VIRTIO_MMIO_QUEUE_READY:
        return q != NULL && q->ready;
    case VIRTIO_MMIO_INTERRUPT_STATUS:
        return t->interrupt_status;
    case VIRTIO_MMIO_STATUS:
        return t->status;
    case VIRTIO_MMIO_SHM_LEN_LOW:
    case VIRTIO_MMIO_SHM_LEN_HIGH:
    case VIRTIO_MMIO_SHM_BASE_LOW:
    case VIRTIO_MMIO_SHM_BASE_HIGH:
        /* No shared memory region has any id: section 4.2.2.1. */
        return UINT32_MAX;
    case VIRTIO_MMIO_CONFIG_GENERATION:
        /* No device here ever changes its configuration. */
        return 0;
    default:
        t->misuse_count++;
        return 0;
    }
}

static void read_config(struct virtio_mmio *t, uint64_t offset, uint8_t *out, uint32_t len)
{
    uint8_t config[VIRTIO_CONFIG_SIZE_MAX] = {0};
    uint64_t size = t->device->ops->config_size;

    if (offset >= size || len > size - offset) {
        t->misuse_count++;
        return;
    }
    t->device->ops->config(t->device, config);
    memcpy(out, config + offset, len);
}

void virtio_mmio_read(struct virtio_mmio *t, uint64_t offset, void *data, uint32_t len)
{
    uint32_t value;

    memset(data, 0, len);
    if (offset >= VIRTIO_MMIO_CONFIG) {
        read_config(t, offset - VIRTIO_MMIO_CONFIG, data, len);
        return;
    }
    if (len != sizeof(value)) {
        t->misuse_count++;
        return;
    }
    value = htole32(read_register(t, offset));
    memcpy(data, &value, sizeof(value));
}

static void write_driver_features(struct virtio_mmio *t, uint32_t value)
{
    unsigned int shift = 32 * t->driver_features_sel;

    if (!has_status(t, STATUS_DRIVER) || has_status(t, STATUS_FEATURES_OK) ||
        t->driver_features_sel > 1) {
        t->misuse_count++;
        return;
    }
    t->driver_features &= ~((uint64_t)UINT32_MAX << shift);
    t->driver_features |= (uint64_t)value << shift;
}

static bool features_are_right(const struct virtio_mmio *t, uint64_t features)
{
    return (features & ~offered_features(t)) == 0 && (features & FEATURE_VERSION_1) != 0;
}

static bool queues_are_ready(const struct virtio_mmio *t)
{
    for (unsigned int i = 0; i < t->device->ops->n_queues; i++) {
        if (!t->queues[i].ready) {
            return false;
        }
    }
    return true;
}

/* The steps of section 3.1.1, in their order; bits are only ever added, until the reset. */
static void write_status(struct virtio_mmio *t, uint32_t value)
{
    const uint32_t needed_for_features = STATUS_ACKNOWLEDGE | STATUS_DRIVER;
    uint32_t added;

    if (value == 0) {
        reset(t);
        return;
    }
    /* The device's own bit: a driver may write it back or not. */
    value &= ~STATUS_NEEDS_RESET;
    added = value & ~t->status;
    if ((value & ~STATUS_KNOWN) != 0 || (t->status & ~value & ~STATUS_NEEDS_RESET) != 0 ||
        (has_status(t, STATUS_FAILED) && added != 0) ||
        (t->failure != NULL && (added & ~STATUS_FAILED) != 0)) {
        t->misuse_count++;
        return;
    }
    if ((added & STATUS_FEATURES_OK) != 0 &&
        ((value & needed_for_features) != needed_for_features ||
         !features_are_right(t, t->driver_features))) {
        /* How a device refuses features: the driver reads the bit back as zero. */
        added &= ~STATUS_FEATURES_OK;
    }
    if ((added & STATUS_DRIVER_OK) != 0 && !has_status(t, STATUS_FEATURES_OK)) {
        t->misuse_count++;
        added &= ~STATUS_DRIVER_OK;
    }
    t->status |= added;
    if ((added & STATUS_DRIVER_OK) != 0) {
        if (!queues_are_ready(t)) {
            fail(t, "DRIVER_OK before every queue is ready");
            return;
        }
        t->device->ops->activate(t->device, t->queues);
        virtio_mmio_flush(t);
    }
}

static void write_queue_ready(struct virtio_mmio *t, struct virtqueue *q, uint32_t value)
{
    const char *wrong;

    if (value == 0) {
        q->ready = false;
        return;
    }
    if (value != 1 || q->ready) {
        t->misuse_count++;
        return;
    }
    wrong = virtqueue_check_config(q);
    if (wrong != NULL) {
        fail(t, wrong);
        return;
    }
    q->ready = true;
}

static void set_half(gpa_t *address, bool high, uint32_t value)
{
    unsigned int shift = high ? 32 : 0;

    *address = (*address & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)value << shift;
}

static void write_queue_register(struct virtio_mmio *t, uint64_t offset, uint32_t value)
{
    struct virtqueue *q = selected_queue(t);

    /* Frozen at DRIVER_OK, and while the queue itself is ready. */
    if (q == NULL || t->failure != NULL || !has_status(t, STATUS_FEATURES_OK) ||
        has_status(t, STATUS_DRIVER_OK) || (q->ready && offset != VIRTIO_MMIO_QUEUE_READY)) {
        t->misuse_count++;
        return;
    }
    switch (offset) {
    case VIRTIO_MMIO_QUEUE_NUM:
        if (value > t->device->ops->queue_size) {
            t->misuse_count++;
            return;
        }
        q->size = (uint16_t)value;
        return;
    case VIRTIO_MMIO_QUEUE_READY:
        write_queue_ready(t, q, value);
        return;
    case VIRTIO_MMIO_QUEUE_DESC_LOW:
    case VIRTIO_MMIO_QUEUE_DESC_HIGH:
        set_half(&q->desc, offset == VIRTIO_MMIO_QUEUE_DESC_HIGH, value);
        return;
    case VIRTIO_MMIO_QUEUE_AVAIL_LOW:
    case VIRTIO_MMIO_QUEUE_AVAIL_HIGH:
        set_half(&q->avail, offset == VIRTIO_MMIO_QUEUE_AVAIL_HIGH, value);
        return;
    case VIRTIO_MMIO_QUEUE_USED_LOW:
    case VIRTIO_MMIO_QUEUE_USED_HIGH:
        set_half(&q->used, offset == VIRTIO_MMIO_QUEUE_USED_HIGH, value);
        return;
    default:
        t->misuse_count++;
        return;
    }
}

static void write_register(struct virtio_mmio *t, uint64_t offset, uint32_t value)
{
    switch (offset) {
    case VIRTIO_MMIO_DEVICE_FEATURES_SEL:
        t->device_features_sel = value;
        return;
    case VIRTIO_MMIO_DRIVER_FEATURES_SEL:
        t->driver_features_sel = value;
        return;
    case VIRTIO_MMIO_DRIVER_FEATURES:
        write_driver_features(t, value);
        return;
    case VIRTIO_MMIO_QUEUE_SEL:
        t->queue_sel = value;
        return;
    case VIRTIO_MMIO_QUEUE_NOTIFY:
        virtio_mmio_notify(t, value);
        return;
    case VIRTIO_MMIO_INTERRUPT_ACK:
        t->interrupt_status &= ~value;
        return;
    case VIRTIO_MMIO_STATUS:
        write_status(t, value);
        return;
    default:
        write_queue_register(t, offset, value);
        return;
    }
}

void virtio_mmio_write(struct virtio_mmio *t, uint64_t offset, const void *data, uint32_t len)
{
    uint32_t value;

    /* No configuration field of any device here may be written. */
    if (offset >= VIRTIO_MMIO_CONFIG || len != sizeof(value)) {
        t->misuse_count++;
        return;
    }
    memcpy(&value, data, sizeof(value));
    write_register(t, offset, le32toh(value));
}

/*
 * The state: u32 version, u32 device id, u64 offered features, u32 status, u32 interrupt
 * status, u32 device features selector, u32 driver features selector, u64 driver features,
 * u32 queue selector, u16 number of queues, per queue u16 size, u8 ready, u8 kicks off,
 * u64 descriptor table, u64 available ring, u64 used ring, u16 next index; then the device's
 * own. One index stands for both: no chain is in flight between two calls.
 */
void virtio_mmio_save(const struct virtio_mmio *t, struct bytes_writer *w)
{
    const struct virtio_ops *ops = t->device->ops;

    bytes_put_u32(w, STATE_VERSION);
    bytes_put_u32(w, ops->id);
    bytes_put_u64(w, offered_features(t));
    bytes_put_u32(w, t->status);
    bytes_put_u32(w, t->interrupt_status);
    bytes_put_u32(w, t->device_features_sel);
    bytes_put_u32(w, t->driver_features_sel);
    bytes_put_u64(w, t->driver_features);
    bytes_put_u32(w, t->queue_sel);
    bytes_put_u16(w, ops->n_queues);
    for (unsigned int i = 0; i < ops->n_queues; i++) {
        const struct virtqueue *q = &t->queues[i];

        bytes_put_u16(w, q->size);
        bytes_put_u8(w, q->ready);
        bytes_put_u8(w, q->kicks_off);
        bytes_put_u64(w, q->desc);
        bytes_put_u64(w, q->avail);
        bytes_put_u64(w, q->used);
        bytes_put_u16(w, q->next_avail);
    }
    ops->save(t->device, w);
}

/* 0, or -EINVAL with err naming what no driver could have brought about. */
static int check_loaded_status(const struct virtio_mmio *t, struct err *err)
{
    const uint32_t for_features = STATUS_ACKNOWLEDGE | STATUS_DRIVER;
    bool features_ok = has_status(t, STATUS_FEATURES_OK);

    if (has_status(t, STATUS_NEEDS_RESET)) {
        return err_set(err, EINVAL, "virtio state: the device had failed when it was saved");
    }
    if ((t->status & ~STATUS_KNOWN) != 0 || (features_ok && !has_status(t, for_features)) ||
        (has_status(t, STATUS_DRIVER_OK) && !features_ok)) {
        return err_set(err, EINVAL, "virtio state: impossible device status 0x%" PRIx32,
                       t->status);
    }
    if ((t->interrupt_status & ~(INTERRUPT_VRING | INTERRUPT_CONFIG)) != 0) {
        return err_set(err, EINVAL, "virtio state: impossible interrupt status 0x%" PRIx32,
                       t->interrupt_status);
    }
    if (features_ok && !features_are_right(t, t->driver_features)) {
        return err_set(err, EINVAL, "virtio state: unknown features 0x%" PRIx64,
                       t->driver_features);
    }
    return 0;
}

static int load_queue(struct virtio_mmio *t, unsigned int index, struct bytes_reader *r,
                      struct err *err)
{
    struct virtqueue *q = &t->queues[index];
    uint8_t ready;
    uint8_t kicks_off;
    const char *wrong;

    q->size = bytes_get_u16(r);
    ready = bytes_get_u8(r);
    kicks_off = bytes_get_u8(r);
    q->desc = bytes_get_u64(r);
    q->avail = bytes_get_u64(r);
    q->used = bytes_get_u64(r);
    q->next_avail = bytes_get_u16(r);
    if (r->bad) {
        return err_set(err, EINVAL, "virtio state: queue %u is cut short", index);
    }
    if (ready > 1 || kicks_off > 1 || q->size > t->device->ops->queue_size ||
        (!ready && (q->next_avail != 0 || kicks_off))) {
        return err_set(err, EINVAL, "virtio state: queue %u is impossible", index);
    }
    q->ready = ready;
    q->kicks_off = kicks_off;
    q->next_used = q->next_avail;
    q->published_used = q->next_avail;
    if (!ready) {
        return 0;
    }
    wrong = virtqueue_check_config(q);
    if (wrong != NULL) {
        return err_set(err, EINVAL, "virtio state: queue %u has a wrong %s", index, wrong);
    }
    if (!has_status(t, STATUS_FEATURES_OK)) {
        return err_set(err, EINVAL, "virtio state: queue %u is ready too early", index);
    }
    return 0;
}

int virtio_mmio_load(struct virtio_mmio *t, struct bytes_reader *r, struct err *err)
{
    const struct virtio_ops *ops = t->device->ops;
    uint32_t version = bytes_get_u32(r);
    uint32_t id = bytes_get_u32(r);
    uint64_t features = bytes_get_u64(r);
    uint16_t n_queues;
    int result;

    if (version != STATE_VERSION) {
        return err_set(err, EINVAL, "virtio state: version %" PRIu32 ", not %u", version,
                       STATE_VERSION);
    }
    if (id != ops->id || features != offered_features(t)) {
        return err_set(err, EINVAL,
                       "virtio state: of device %" PRIu32 " with features 0x%" PRIx64
                       ", not %" PRIu32 " with 0x%" PRIx64,
                       id, features, ops->id, offered_features(t));
    }
    t->status = bytes_get_u32(r);
    t->interrupt_status = bytes_get_u32(r);
    t->device_features_sel = bytes_get_u32(r);
    t->driver_features_sel = bytes_get_u32(r);
    t->driver_features = bytes_get_u64(r);
    t->queue_sel = bytes_get_u32(r);
    n_queues = bytes_get_u16(r);
    if (r->bad || n_queues != ops->n_queues) {
        return err_set(err, EINVAL, "virtio state: cut short, or of %u queues", n_queues);
    }
    result = check_loaded_status(t, err);
    for (unsigned int i = 0; i < n_queues && result == 0; i++) {
        result = load_queue(t, i, r, err);
    }
    if (result < 0) {
        return result;
    }
    if (has_status(t, STATUS_DRIVER_OK) && !queues_are_ready(t)) {
        return err_set(err, EINVAL, "virtio state: active with a queue that is not ready");
    }
    return ops->load(t->device, r, err);
}

void virtio_mmio_resume(struct virtio_mmio *t)
{
    uint32_t pending = t->interrupt_status;

    if (!virtio_mmio_is_active(t)) {
        return;
    }
    /* The edge may have been on its way when the state was saved. One too many does no harm. */
    t->interrupt_status = 0;
    if ((pending & INTERRUPT_VRING) != 0) {
        raise_interrupt(t, INTERRUPT_VRING);
    }
    t->interrupt_status |= pending;
    t->device->ops->resume(t->device, t->queues);
    virtio_mmio_flush(t);
}
