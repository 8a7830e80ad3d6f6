/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <string.h>

#include "tests/unit/fake_driver.h"
#include "vmm/virtio/virtqueue.h"

#define SIZE 8u
#define NEXT VRING_DESC_F_NEXT
#define WR   VRING_DESC_F_WRITE

/* A queue without a transport: the driver only provides memory and layout. */
struct fixture {
    struct fake_driver d;
    struct virtqueue q;
    struct virtqueue_chain chain;
};

static int setup(void **state)
{
    static struct fixture f;

    fake_driver_init(&f.d);
    f.d.queues[0] =
        (struct fake_queue){.desc = 0x1000, .avail = 0x2000, .used = 0x3000, .size = SIZE};
    virtqueue_init(&f.q, &f.d.mem);
    f.q.size = SIZE;
    f.q.desc = 0x1000;
    f.q.avail = 0x2000;
    f.q.used = 0x3000;
    f.q.ready = true;
    *state = &f;
    return virtqueue_check_config(&f.q) == NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    fake_driver_finish(&f->d);
    return 0;
}

static void assert_fails(struct fixture *f, const char *reason)
{
    uint16_t before = f->q.next_avail;

    assert_int_equal(virtqueue_pop(&f->q, &f->chain), -EPROTO);
    assert_string_equal(f->q.failure, reason);
    assert_int_equal(f->q.next_avail, before);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), -EPROTO);
    assert_false(virtqueue_has_work(&f->q));
}

static void test_config(void **state)
{
    struct fixture *f = *state;
    static const uint16_t sizes[] = {0, 3, 127, VIRTQUEUE_SIZE_MAX * 2, 0x8000, 0xffff};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        f->q.size = sizes[i];
        assert_string_equal(virtqueue_check_config(&f->q), "queue size");
    }
    f->q.size = VIRTQUEUE_SIZE_MAX;
    assert_null(virtqueue_check_config(&f->q));
    f->q.desc = 0x1008;
    assert_non_null(virtqueue_check_config(&f->q));
    f->q.desc = FAKE_MEMORY_SIZE - VIRTQUEUE_SIZE_MAX * 16;
    assert_null(virtqueue_check_config(&f->q));
    f->q.desc += 16;
    assert_non_null(virtqueue_check_config(&f->q));
    f->q.desc = UINT64_MAX - 15;
    assert_non_null(virtqueue_check_config(&f->q));
    f->q.desc = 0x1000;
    f->q.avail = 0x2001;
    assert_non_null(virtqueue_check_config(&f->q));
    f->q.avail = FAKE_MEMORY_SIZE - 4;
    assert_non_null(virtqueue_check_config(&f->q));
    f->q.avail = 0x2000;
    f->q.used = 0x3002;
    assert_non_null(virtqueue_check_config(&f->q));
    f->q.used = FAKE_MEMORY_SIZE - 8 * VIRTQUEUE_SIZE_MAX;
    assert_non_null(virtqueue_check_config(&f->q));
}

static void test_chain(void **state)
{
    struct fixture *f = *state;
    uint8_t out[16];
    struct iovec iov[4];
    uint32_t len;

    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 0);
    memcpy(fake_at(&f->d, FAKE_BUFFERS, 10), "0123456789", 10);
    fake_desc(&f->d, 0, 5, FAKE_BUFFERS, 4, NEXT, 2);
    fake_desc(&f->d, 0, 2, FAKE_BUFFERS + 4, 6, NEXT, 0);
    fake_desc(&f->d, 0, 0, FAKE_BUFFERS + 100, 3, NEXT | WR, 7);
    fake_desc(&f->d, 0, 7, FAKE_BUFFERS + 200, 5, WR, 99);
    fake_offer(&f->d, 0, 5);
    assert_true(virtqueue_has_work(&f->q));
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
    assert_int_equal(f->chain.head, 5);
    assert_int_equal(f->chain.n_readable, 2);
    assert_int_equal(f->chain.n_writable, 2);
    assert_int_equal(f->chain.readable_len, 10);
    assert_int_equal(f->chain.writable_len, 8);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 0);

    assert_int_equal(virtqueue_read(&f->q, &f->chain, 0, out, 10), 10);
    assert_memory_equal(out, "0123456789", 10);
    assert_int_equal(virtqueue_read(&f->q, &f->chain, 3, out, 16), 7);
    assert_memory_equal(out, "3456789", 7);
    assert_int_equal(virtqueue_read(&f->q, &f->chain, 10, out, 1), 0);
    assert_int_equal(virtqueue_read(&f->q, &f->chain, UINT32_MAX, out, 1), 0);
    assert_int_equal(virtqueue_write(&f->q, &f->chain, 1, "abcdefghij", 10), 7);
    assert_memory_equal(fake_at(&f->d, FAKE_BUFFERS + 100, 3), "\0ab", 3);
    assert_memory_equal(fake_at(&f->d, FAKE_BUFFERS + 200, 6), "cdefg\0", 6);

    assert_int_equal(virtqueue_readable_iov(&f->q, &f->chain, 2, 5, iov, 4, &len), 2);
    assert_int_equal(len, 5);
    assert_int_equal(iov[0].iov_len, 2);
    assert_int_equal(iov[1].iov_len, 3);
    assert_int_equal(virtqueue_writable_iov(&f->q, &f->chain, 0, 100, iov, 1, &len), 1);
    assert_int_equal(len, 3);

    virtqueue_push(&f->q, f->chain.head, 8);
    virtqueue_publish(&f->q);
    assert_int_equal(f->q.next_used, f->q.next_avail);
}

static void test_used_is_published_in_one_batch(void **state)
{
    struct fixture *f = *state;
    uint32_t head;
    uint32_t len;

    for (uint16_t i = 0; i < 3; i++) {
        fake_desc(&f->d, 0, i, FAKE_BUFFERS, 1, WR, 0);
        fake_offer(&f->d, 0, i);
    }
    for (uint16_t i = 0; i < 3; i++) {
        assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
        virtqueue_push(&f->q, f->chain.head, 1u + i);
    }
    assert_false(fake_take_used(&f->d, 0, &head, &len));
    assert_false(virtqueue_take_interrupt(&f->q));
    virtqueue_publish(&f->q);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(fake_take_used(&f->d, 0, &head, &len));
        assert_int_equal(head, i);
        assert_int_equal(len, 1 + i);
    }
    assert_false(fake_take_used(&f->d, 0, &head, &len));
    assert_true(virtqueue_take_interrupt(&f->q));
    assert_false(virtqueue_take_interrupt(&f->q));
    virtqueue_publish(&f->q);
    assert_false(virtqueue_take_interrupt(&f->q));
}

static void test_unpop(void **state)
{
    struct fixture *f = *state;

    for (uint16_t i = 0; i < 3; i++) {
        fake_desc(&f->d, 0, i, FAKE_BUFFERS, 1, WR, 0);
        fake_offer(&f->d, 0, i);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
    }
    virtqueue_unpop(&f->q, 2);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
    assert_int_equal(f->chain.head, 1);
}

static void test_suppression(void **state)
{
    struct fixture *f = *state;
    uint16_t flags;

    virtqueue_want_kicks(&f->q, false);
    memory_load_u16(&f->d.mem, 0x3000, &flags);
    assert_int_equal(flags, VRING_USED_F_NO_NOTIFY);
    virtqueue_want_kicks(&f->q, true);
    memory_load_u16(&f->d.mem, 0x3000, &flags);
    assert_int_equal(flags, 0);

    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 1, WR, 0);
    fake_offer(&f->d, 0, 0);
    memory_store_u16(&f->d.mem, 0x2000, VRING_AVAIL_F_NO_INTERRUPT);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
    virtqueue_push(&f->q, 0, 1);
    virtqueue_publish(&f->q);
    assert_false(virtqueue_take_interrupt(&f->q));
    /* The driver said no at that moment: it must not come later. */
    memory_store_u16(&f->d.mem, 0x2000, 0);
    assert_false(virtqueue_take_interrupt(&f->q));
}

static void test_moderation(void **state)
{
    struct fixture *f = *state;

    f->q.interrupt_after = 3;
    f->q.interrupt_after_bytes = UINT32_MAX;
    for (uint16_t i = 0; i < 4; i++) {
        fake_desc(&f->d, 0, i, FAKE_BUFFERS, 1, WR, 0);
        fake_offer(&f->d, 0, i);
        assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
        virtqueue_push(&f->q, i, 1);
        virtqueue_publish(&f->q);
        assert_int_equal(virtqueue_take_interrupt(&f->q), i == 2);
    }
    /* The fourth one goes with another queue's. */
    assert_true(f->q.interrupt_due);
    virtqueue_clear_interrupt(&f->q);
    assert_false(f->q.interrupt_due);
    assert_int_equal(f->q.taken, 0);
    assert_int_equal(f->q.taken_bytes, 0);
}

/* Few descriptors hold many bytes; what is written into counts for nothing. */
static void test_moderation_by_bytes(void **state)
{
    struct fixture *f = *state;

    f->q.interrupt_after = 100;
    f->q.interrupt_after_bytes = 2500;
    for (uint16_t i = 0; i < 7; i++) {
        fake_desc(&f->d, 0, i, FAKE_BUFFERS, 1000, i < 3 ? WR : 0, 0);
        fake_offer(&f->d, 0, i);
        assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
        virtqueue_push(&f->q, i, 1);
        virtqueue_publish(&f->q);
        assert_int_equal(virtqueue_take_interrupt(&f->q), i == 5);
    }
    /* All the guest's memory, time and again, is still many. */
    f->q.taken_bytes = UINT32_MAX - 999;
    fake_desc(&f->d, 0, 7, FAKE_BUFFERS, 1000, 0, 0);
    fake_offer(&f->d, 0, 7);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
    assert_int_equal(f->q.taken_bytes, UINT32_MAX);
}

static void test_wrap(void **state)
{
    struct fixture *f = *state;
    uint32_t head;
    uint32_t len;

    for (unsigned int i = 0; i < 70000; i++) {
        uint16_t index = (uint16_t)(i % SIZE);

        fake_desc(&f->d, 0, index, FAKE_BUFFERS, 1, WR, 0);
        fake_offer(&f->d, 0, index);
        assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
        assert_int_equal(f->chain.head, index);
        virtqueue_push(&f->q, index, i);
        virtqueue_publish(&f->q);
        assert_true(fake_take_used(&f->d, 0, &head, &len));
        assert_int_equal(head, index);
        assert_int_equal(len, i);
    }
    assert_int_equal(f->q.next_avail, 70000 % 65536);
}

static void test_avail_too_far(void **state)
{
    struct fixture *f = *state;

    fake_set_avail_idx(&f->d, 0, SIZE + 1);
    assert_fails(f, "available index too far ahead");
}

static void test_avail_backwards(void **state)
{
    struct fixture *f = *state;

    fake_set_avail_idx(&f->d, 0, 0xffff);
    assert_fails(f, "available index too far ahead");
}

static void test_head_out_of_range(void **state)
{
    struct fixture *f = *state;

    fake_offer(&f->d, 0, SIZE);
    assert_fails(f, "descriptor index out of range");
}

static void test_next_out_of_range(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 1, NEXT, 0xffff);
    fake_offer(&f->d, 0, 0);
    assert_fails(f, "descriptor index out of range");
}

static void test_loop_of_one(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 3, FAKE_BUFFERS, 1, NEXT, 3);
    fake_offer(&f->d, 0, 3);
    assert_fails(f, "descriptor chain loops");
}

static void test_loop_of_two(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 3, FAKE_BUFFERS, 1, NEXT, 4);
    fake_desc(&f->d, 0, 4, FAKE_BUFFERS, 1, NEXT, 3);
    fake_offer(&f->d, 0, 3);
    assert_fails(f, "descriptor chain loops");
}

static void test_longest_chain(void **state)
{
    struct fixture *f = *state;

    for (uint16_t i = 0; i < SIZE; i++) {
        fake_desc(&f->d, 0, i, FAKE_BUFFERS, 1, i + 1u < SIZE ? NEXT : 0, (uint16_t)(i + 1));
    }
    fake_offer(&f->d, 0, 0);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
    assert_int_equal(f->chain.n_readable, SIZE);
    /* One descriptor more cannot be there: the last one leads back. */
    fake_desc(&f->d, 0, SIZE - 1, FAKE_BUFFERS, 1, NEXT, 0);
    fake_offer(&f->d, 0, 0);
    assert_fails(f, "descriptor chain loops");
}

static void test_zero_length(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 0, 0, 0);
    fake_offer(&f->d, 0, 0);
    assert_fails(f, "descriptor of length zero");
}

static void test_buffer_outside(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 0, FAKE_MEMORY_SIZE - 1, 1, 0, 0);
    fake_offer(&f->d, 0, 0);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 1);
    fake_desc(&f->d, 0, 1, FAKE_MEMORY_SIZE - 1, 2, 0, 0);
    fake_offer(&f->d, 0, 1);
    assert_fails(f, "descriptor outside memory");
}

static void test_buffer_wraps_around(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 0, UINT64_MAX - 1, 4096, WR, 0);
    fake_offer(&f->d, 0, 0);
    assert_fails(f, "descriptor outside memory");
}

static void test_indirect(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 16, VRING_DESC_F_INDIRECT, 0);
    fake_offer(&f->d, 0, 0);
    assert_fails(f, "descriptor flags");
}

static void test_readable_after_writable(void **state)
{
    struct fixture *f = *state;

    fake_desc(&f->d, 0, 0, FAKE_BUFFERS, 1, NEXT | WR, 1);
    fake_desc(&f->d, 0, 1, FAKE_BUFFERS, 1, 0, 0);
    fake_offer(&f->d, 0, 0);
    assert_fails(f, "readable descriptor after a writable one");
}

static void test_sum_of_lengths(void **state)
{
    struct fixture *f = *state;
    struct memory huge = {.host = f->d.mem.host, .size = UINT64_C(4) << 30};

    /* Nothing is read through the buffers: the sum alone must be refused. */
    f->q.mem = &huge;
    fake_desc(&f->d, 0, 0, 0x1000, 0xfffff000, NEXT | WR, 1);
    fake_desc(&f->d, 0, 1, 0x1000, 0x1000, WR, 0);
    fake_offer(&f->d, 0, 0);
    assert_fails(f, "chain of 4 GiB");
}

static void test_first_reason_stays(void **state)
{
    struct fixture *f = *state;

    virtqueue_fail(&f->q, "first");
    virtqueue_fail(&f->q, "second");
    assert_string_equal(f->q.failure, "first");
    virtqueue_reset(&f->q);
    assert_null(f->q.failure);
    assert_ptr_equal(f->q.mem, &f->d.mem);
    assert_int_equal(virtqueue_pop(&f->q, &f->chain), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_config),
        TEST(test_chain),
        TEST(test_used_is_published_in_one_batch),
        TEST(test_unpop),
        TEST(test_suppression),
        TEST(test_moderation),
        TEST(test_moderation_by_bytes),
        TEST(test_wrap),
        TEST(test_avail_too_far),
        TEST(test_avail_backwards),
        TEST(test_head_out_of_range),
        TEST(test_next_out_of_range),
        TEST(test_loop_of_one),
        TEST(test_loop_of_two),
        TEST(test_longest_chain),
        TEST(test_zero_length),
        TEST(test_buffer_outside),
        TEST(test_buffer_wraps_around),
        TEST(test_indirect),
        TEST(test_readable_after_writable),
        TEST(test_sum_of_lengths),
        TEST(test_first_reason_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
