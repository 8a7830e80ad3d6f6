/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>
#include <string.h>

#include "tests/unit/fake_driver.h"

#define QUEUES 2u
#define SIZE   16u
#define STARTED                                                                                \
    (VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK |      \
     VIRTIO_CONFIG_S_DRIVER_OK)

/* A device that echoes nothing: it returns every chain and counts its calls. */
struct probe {
    struct virtio_device device;
    struct virtqueue *queues;
    unsigned int activated;
    unsigned int resets;
    unsigned int resumed;
    unsigned int notified[QUEUES];
    unsigned int leave_behind; /* chains left to virtio_mmio_serve_more() */
    uint32_t value;            /* its state */
};

struct fixture {
    struct fake_driver d;
    struct virtio_mmio t;
    struct probe p;
};

static void probe_config(const struct virtio_device *dev, uint8_t *out)
{
    (void)dev;
    for (uint8_t i = 0; i < 12; i++) {
        out[i] = (uint8_t)(0xa0 + i);
    }
}

static void probe_activate(struct virtio_device *dev, struct virtqueue *queues)
{
    struct probe *p = (struct probe *)dev;

    p->activated++;
    p->queues = queues;
}

static void probe_notify(struct virtio_device *dev, uint16_t queue)
{
    struct probe *p = (struct probe *)dev;
    struct virtqueue *q = &p->queues[queue];
    struct virtqueue_chain chain;

    p->notified[queue]++;
    while (virtqueue_pop(q, &chain) > 0) {
        virtqueue_push(q, chain.head, 0);
        if (p->leave_behind > 0) {
            p->leave_behind--;
            q->more = true;
            break;
        }
    }
    virtqueue_publish(q);
}

static void probe_reset(struct virtio_device *dev)
{
    struct probe *p = (struct probe *)dev;

    p->resets++;
    p->queues = NULL;
}

static void probe_save(const struct virtio_device *dev, struct bytes_writer *w)
{
    bytes_put_u32(w, ((const struct probe *)dev)->value);
}

static int probe_load(struct virtio_device *dev, struct bytes_reader *r, struct err *err)
{
    ((struct probe *)dev)->value = bytes_get_u32(r);
    return r->bad ? err_set(err, EINVAL, "probe state: cut short") : 0;
}

static void probe_resume(struct virtio_device *dev, struct virtqueue *queues)
{
    struct probe *p = (struct probe *)dev;

    p->resumed++;
    p->queues = queues;
}

static const struct virtio_ops probe_ops = {
    .id = 42,
    .config_size = 12,
    .n_queues = QUEUES,
    .queue_size = SIZE,
    .features = 0x5,
    .config = probe_config,
    .activate = probe_activate,
    .notify = probe_notify,
    .reset = probe_reset,
    .save = probe_save,
    .load = probe_load,
    .resume = probe_resume,
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    fake_driver_init(&f.d);
    f.p.device.ops = &probe_ops;
    fake_driver_attach(&f.d, &f.t, &f.p.device);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    fake_driver_finish(&f->d);
    return 0;
}

static uint32_t status(struct fixture *f)
{
    return fake_read32(&f->d, VIRTIO_MMIO_STATUS);
}

static void test_identity(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_MAGIC_VALUE), 0x74726976);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_VERSION), 2);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_DEVICE_ID), 42);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_CONFIG_GENERATION), 0);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_SHM_LEN_LOW), UINT32_MAX);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_DEVICE_FEATURES), 5);
    fake_write32(&f->d, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 1);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_DEVICE_FEATURES), 1);
    fake_write32(&f->d, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 2);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_DEVICE_FEATURES), 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_SEL, 1);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_QUEUE_NUM_MAX), SIZE);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_SEL, QUEUES);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_QUEUE_NUM_MAX), 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_SEL, UINT32_MAX);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_QUEUE_NUM_MAX), 0);
    assert_int_equal(f->t.misuse_count, 0);
}

static void test_start(void **state)
{
    struct fixture *f = *state;

    fake_driver_start(&f->d, QUEUES, SIZE);
    assert_int_equal(status(f), STARTED);
    assert_true(virtio_mmio_is_active(&f->t));
    assert_int_equal(f->p.activated, 1);
    assert_int_equal(f->t.misuse_count, 0);
    assert_null(virtio_mmio_failure(&f->t));
}

static void test_config_access(void **state)
{
    struct fixture *f = *state;
    uint8_t out[8];

    virtio_mmio_read(&f->t, 0x100, out, 1);
    assert_int_equal(out[0], 0xa0);
    virtio_mmio_read(&f->t, 0x104, out, 8);
    assert_memory_equal(out, "\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab", 8);
    virtio_mmio_read(&f->t, 0x10b, out, 1);
    assert_int_equal(out[0], 0xab);
    assert_int_equal(f->t.misuse_count, 0);

    virtio_mmio_read(&f->t, 0x10b, out, 2);
    assert_memory_equal(out, "\0\0", 2);
    virtio_mmio_read(&f->t, 0x10c, out, 1);
    assert_int_equal(out[0], 0);
    virtio_mmio_read(&f->t, UINT64_MAX, out, 8);
    assert_memory_equal(out, "\0\0\0\0\0\0\0\0", 8);
    virtio_mmio_write(&f->t, 0x100, "\1\2\3\4", 4);
    assert_int_equal(f->t.misuse_count, 4);
    virtio_mmio_read(&f->t, 0x100, out, 1);
    assert_int_equal(out[0], 0xa0);
}

static void test_odd_accesses(void **state)
{
    struct fixture *f = *state;
    uint8_t out[8];

    memset(out, 0xff, sizeof(out));
    virtio_mmio_read(&f->t, VIRTIO_MMIO_MAGIC_VALUE, out, 2);
    assert_memory_equal(out, "\0\0\xff", 3);
    virtio_mmio_read(&f->t, VIRTIO_MMIO_MAGIC_VALUE, out, 8);
    assert_memory_equal(out, "\0\0\0\0\0\0\0\0", 8);
    virtio_mmio_read(&f->t, 2, out, 4);
    assert_memory_equal(out, "\0\0\0\0", 4);
    virtio_mmio_write(&f->t, VIRTIO_MMIO_STATUS, "\1", 1);
    virtio_mmio_write(&f->t, VIRTIO_MMIO_MAGIC_VALUE, "\1\0\0\0", 4);
    virtio_mmio_write(&f->t, 0xffc, "\1\0\0\0", 4);
    assert_int_equal(status(f), 0);
    assert_int_equal(f->t.misuse_count, 6);
}

static void test_features(void **state)
{
    struct fixture *f = *state;
    static const struct {
        uint32_t low;
        uint32_t high;
        bool agreed;
    } cases[] = {{5, 1, true}, {0, 1, true}, {5, 0, false}, {2, 1, false}, {5, 3, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0);
        fake_write32(&f->d, VIRTIO_MMIO_STATUS, 1);
        fake_write32(&f->d, VIRTIO_MMIO_STATUS, 3);
        fake_write32(&f->d, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
        fake_write32(&f->d, VIRTIO_MMIO_DRIVER_FEATURES, cases[i].low);
        fake_write32(&f->d, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
        fake_write32(&f->d, VIRTIO_MMIO_DRIVER_FEATURES, cases[i].high);
        fake_write32(&f->d, VIRTIO_MMIO_STATUS, 3 | VIRTIO_CONFIG_S_FEATURES_OK);
        assert_int_equal(status(f), cases[i].agreed ? 3 | VIRTIO_CONFIG_S_FEATURES_OK : 3);
    }
    /* Without agreement there is no way on. */
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, STARTED);
    assert_int_equal(status(f), 3);
    assert_int_equal(f->p.activated, 0);
}

static void test_features_freeze(void **state)
{
    struct fixture *f = *state;

    fake_write32(&f->d, VIRTIO_MMIO_DRIVER_FEATURES, 1);
    assert_int_equal(f->t.misuse_count, 1);
    assert_true(fake_driver_negotiate(&f->d));
    fake_write32(&f->d, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
    fake_write32(&f->d, VIRTIO_MMIO_DRIVER_FEATURES, 0);
    assert_int_equal(f->t.misuse_count, 2);
    assert_int_equal(f->t.driver_features, UINT64_C(1) << VIRTIO_F_VERSION_1 | 5);
}

static void test_status_misuse(void **state)
{
    struct fixture *f = *state;

    /* FEATURES_OK and DRIVER_OK out of nothing. */
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_DRIVER_OK);
    assert_int_equal(status(f), 0);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_FEATURES_OK);
    assert_int_equal(status(f), 0);
    /* Unknown bits, bits of the device, bits taken away. */
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 1 | 0x10);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0x100);
    assert_int_equal(status(f), 0);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 1 | VIRTIO_CONFIG_S_NEEDS_RESET);
    assert_int_equal(status(f), 1);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 3);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 2);
    assert_int_equal(status(f), 3);
    /* A driver that gave up gets no further. */
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 3 | VIRTIO_CONFIG_S_FAILED);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0xff);
    assert_int_equal(status(f), 3 | VIRTIO_CONFIG_S_FAILED);
    assert_int_equal(f->p.activated, 0);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0);
    assert_int_equal(status(f), 0);
}

static void test_driver_ok_without_queues(void **state)
{
    struct fixture *f = *state;

    fake_driver_start(&f->d, QUEUES - 1, SIZE);
    assert_true(status(f) & VIRTIO_CONFIG_S_NEEDS_RESET);
    assert_non_null(virtio_mmio_failure(&f->t));
    assert_false(virtio_mmio_is_active(&f->t));
    assert_int_equal(f->p.activated, 0);
    assert_int_equal(fake_ack(&f->d), VIRTIO_MMIO_INT_CONFIG);
    /* The reset makes all good again. */
    fake_driver_start(&f->d, QUEUES, SIZE);
    assert_true(virtio_mmio_is_active(&f->t));
}

static void test_bad_queue(void **state)
{
    struct fixture *f = *state;

    fake_driver_negotiate(&f->d);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_SEL, 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NUM, SIZE + 1);
    assert_int_equal(f->t.misuse_count, 1);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NUM, 0x10000 + SIZE);
    assert_int_equal(f->t.misuse_count, 2);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_READY, 2);
    assert_int_equal(f->t.misuse_count, 3);
    fake_write32(&f->d, VIRTIO_MMIO_SHM_SEL, 0);
    assert_int_equal(f->t.misuse_count, 4);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NUM, SIZE);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_DESC_HIGH, 1);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_READY, 1);
    assert_string_equal(virtio_mmio_failure(&f->t), "descriptor table address");
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_QUEUE_READY), 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_DESC_HIGH, 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_READY, 1);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_QUEUE_READY), 0);
}

static void test_queue_freeze(void **state)
{
    struct fixture *f = *state;

    /* Too early. */
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NUM, 8);
    assert_int_equal(f->t.queues[0].size, 0);
    fake_driver_negotiate(&f->d);
    fake_driver_setup_queue(&f->d, 0, SIZE);
    /* Ready: frozen until it is not. */
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NUM, 8);
    assert_int_equal(f->t.queues[0].size, SIZE);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_READY, 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NUM, 8);
    assert_int_equal(f->t.queues[0].size, 8);
    /* After DRIVER_OK: frozen for good, ready bit and all. */
    fake_driver_start(&f->d, QUEUES, SIZE);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_SEL, 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_READY, 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_DESC_LOW, 0);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_QUEUE_READY), 1);
    assert_int_equal(f->t.queues[0].desc, f->d.queues[0].desc);
}

static void test_notify(void **state)
{
    struct fixture *f = *state;
    uint32_t head;
    uint32_t len;

    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NOTIFY, 0);
    assert_int_equal(f->t.misuse_count, 1);
    fake_driver_start(&f->d, QUEUES, SIZE);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NOTIFY, QUEUES);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NOTIFY, 0x10000);
    virtio_mmio_notify(&f->t, UINT32_MAX);
    assert_int_equal(f->t.misuse_count, 4);
    assert_int_equal(f->p.notified[0] + f->p.notified[1], 0);

    fake_desc(&f->d, 1, 0, FAKE_BUFFERS, 1, 0, 0);
    fake_offer(&f->d, 1, 0);
    fake_kick(&f->d, 1);
    assert_int_equal(f->p.notified[1], 1);
    assert_true(fake_take_used(&f->d, 1, &head, &len));
    assert_int_equal(f->d.irqs, 1);
    /* Until it is acknowledged there is no second edge. */
    fake_offer(&f->d, 1, 0);
    fake_kick(&f->d, 1);
    assert_int_equal(f->d.irqs, 1);
    assert_int_equal(fake_ack(&f->d), VIRTIO_MMIO_INT_VRING);
    fake_offer(&f->d, 1, 0);
    fake_kick(&f->d, 1);
    assert_int_equal(f->d.irqs, 2);
}

static void test_more(void **state)
{
    struct fixture *f = *state;
    uint32_t head;
    uint32_t len;

    fake_driver_start(&f->d, QUEUES, SIZE);
    assert_false(virtio_mmio_serve_more(&f->t));
    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 1, 0, 0);
    for (int i = 0; i < 3; i++) {
        fake_offer(&f->d, 0, 0);
    }
    f->p.leave_behind = 2;
    fake_kick(&f->d, 0);
    assert_true(fake_take_used(&f->d, 0, &head, &len));
    assert_false(fake_take_used(&f->d, 0, &head, &len));
    assert_true(virtio_mmio_serve_more(&f->t));
    assert_false(virtio_mmio_serve_more(&f->t));
    assert_true(fake_take_used(&f->d, 0, &head, &len));
    assert_true(fake_take_used(&f->d, 0, &head, &len));
    assert_false(fake_take_used(&f->d, 0, &head, &len));
}

static void test_queue_failure(void **state)
{
    struct fixture *f = *state;
    unsigned int resets;

    fake_driver_start(&f->d, QUEUES, SIZE);
    resets = f->p.resets;
    fake_set_avail_idx(&f->d, 0, 1000);
    fake_kick(&f->d, 0);
    assert_string_equal(virtio_mmio_failure(&f->t), "available index too far ahead");
    assert_int_equal(status(f), STARTED | VIRTIO_CONFIG_S_NEEDS_RESET);
    assert_int_equal(f->p.resets, resets + 1);
    assert_int_equal(f->d.irqs, 1);
    assert_int_equal(fake_ack(&f->d), VIRTIO_MMIO_INT_CONFIG);
    /* Nothing is served any more. */
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_NOTIFY, 1);
    virtio_mmio_flush(&f->t);
    virtio_mmio_resume(&f->t);
    assert_false(virtio_mmio_serve_more(&f->t));
    assert_int_equal(f->p.notified[1], 0);
    assert_int_equal(f->p.resumed, 0);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0);
    assert_int_equal(status(f), 0);
    assert_null(virtio_mmio_failure(&f->t));
}

static void test_reset(void **state)
{
    struct fixture *f = *state;

    fake_driver_start(&f->d, QUEUES, SIZE);
    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 1, 0, 0);
    fake_offer(&f->d, 0, 0);
    fake_kick(&f->d, 0);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0);
    assert_int_equal(status(f), 0);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_INTERRUPT_STATUS), 0);
    fake_write32(&f->d, VIRTIO_MMIO_QUEUE_SEL, 0);
    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_QUEUE_READY), 0);
    assert_int_equal(f->t.queues[0].next_avail, 0);
    fake_driver_start(&f->d, QUEUES, SIZE);
    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 1, 0, 0);
    fake_offer(&f->d, 0, 0);
    fake_kick(&f->d, 0);
    assert_null(virtio_mmio_failure(&f->t));
    assert_int_equal(f->d.irqs, 2);
}

static size_t save(const struct virtio_mmio *t, uint8_t *out)
{
    struct bytes_writer w = bytes_writer_init(out, VIRTIO_MMIO_STATE_MAX);

    virtio_mmio_save(t, &w);
    assert_false(w.bad);
    return w.len;
}

/* Loads data into a device of its own: the result, and on success what it saves again. */
static int load(const uint8_t *data, size_t len, uint8_t *ret_saved, struct err *err)
{
    struct fake_driver d;
    struct virtio_mmio t;
    struct probe p = {.device.ops = &probe_ops};
    struct bytes_reader r = bytes_reader_init(data, len);
    int result;

    /* Neither loading nor this device's resuming looks at memory: none is copied. */
    fake_driver_init(&d);
    fake_driver_attach(&d, &t, &p.device);
    result = virtio_mmio_load(&t, &r, err);
    if (result == 0) {
        assert_true(bytes_done(&r));
        assert_int_equal(save(&t, ret_saved), len);
        virtio_mmio_resume(&t);
        assert_int_equal(p.resumed, virtio_mmio_is_active(&t));
        assert_int_equal(d.irqs, virtio_mmio_is_active(&t) && (t.interrupt_status & 1));
    }
    fake_driver_finish(&d);
    return result;
}

static void test_state_round_trip(void **state)
{
    struct fixture *f = *state;
    uint8_t saved[VIRTIO_MMIO_STATE_MAX];
    uint8_t again[VIRTIO_MMIO_STATE_MAX];
    struct err err = {0};

    for (unsigned int stage = 0; stage < 5; stage++) {
        size_t len;

        if (stage == 1) {
            assert_true(fake_driver_negotiate(&f->d));
        } else if (stage == 2) {
            fake_driver_setup_queue(&f->d, 1, 8);
        } else if (stage == 3) {
            fake_driver_start(&f->d, QUEUES, SIZE);
        } else if (stage == 4) {
            fake_desc(&f->d, 1, 0, FAKE_BUFFERS, 1, 0, 0);
            fake_offer(&f->d, 1, 0);
            fake_kick(&f->d, 1);
            f->p.value = 77;
        }
        len = save(&f->t, saved);
        assert_int_equal(load(saved, len, again, &err), 0);
        assert_memory_equal(saved, again, len);
    }
    assert_int_equal(err.code, 0);
}

/* Every prefix is refused; every changed byte is refused or read as what it says. */
static void test_state_damage(void **state)
{
    struct fixture *f = *state;
    uint8_t saved[VIRTIO_MMIO_STATE_MAX];
    uint8_t again[VIRTIO_MMIO_STATE_MAX];
    size_t len;

    fake_driver_start(&f->d, QUEUES, SIZE);
    len = save(&f->t, saved);
    for (size_t i = 0; i < len; i++) {
        struct err err = {0};

        assert_int_equal(load(saved, i, again, &err), -EINVAL);
        assert_int_equal(err.code, EINVAL);
    }
    for (size_t i = 0; i < len; i++) {
        for (unsigned int bit = 0; bit < 8; bit++) {
            struct err err = {0};

            saved[i] ^= (uint8_t)(1u << bit);
            if (load(saved, len, again, &err) == 0) {
                assert_memory_equal(saved, again, len);
            } else {
                assert_int_equal(err.code, EINVAL);
            }
            saved[i] ^= (uint8_t)(1u << bit);
        }
    }
}

/* A ready queue before the features were agreed: no driver gets there. */
static void test_state_of_early_queue(void **state)
{
    struct fixture *f = *state;
    uint8_t saved[VIRTIO_MMIO_STATE_MAX];
    struct err err = {0};
    size_t len;

    fake_driver_negotiate(&f->d);
    fake_driver_setup_queue(&f->d, 0, SIZE);
    f->t.status &= ~(uint32_t)VIRTIO_CONFIG_S_FEATURES_OK;
    len = save(&f->t, saved);
    assert_int_equal(load(saved, len, saved, &err), -EINVAL);
    assert_non_null(strstr(err.message, "too early"));
}

static void test_state_of_failed_device(void **state)
{
    struct fixture *f = *state;
    uint8_t saved[VIRTIO_MMIO_STATE_MAX];
    struct err err = {0};
    size_t len;

    fake_driver_start(&f->d, QUEUES, SIZE);
    fake_set_avail_idx(&f->d, 0, 1000);
    fake_kick(&f->d, 0);
    len = save(&f->t, saved);
    assert_int_equal(load(saved, len, saved, &err), -EINVAL);
    assert_non_null(strstr(err.message, "failed"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_identity),
        TEST(test_start),
        TEST(test_config_access),
        TEST(test_odd_accesses),
        TEST(test_features),
        TEST(test_features_freeze),
        TEST(test_status_misuse),
        TEST(test_driver_ok_without_queues),
        TEST(test_bad_queue),
        TEST(test_queue_freeze),
        TEST(test_notify),
        TEST(test_more),
        TEST(test_queue_failure),
        TEST(test_reset),
        TEST(test_state_round_trip),
        TEST(test_state_damage),
        TEST(test_state_of_early_queue),
        TEST(test_state_of_failed_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
