/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptor chains: the input is a queue's size, its first index and then the guest's memory,
 * rings and all. Whatever is popped must lie in that memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "vmm/virtio/virtqueue.h"

#define MEMORY_SIZE 8192u
#define DESC        0u
#define AVAIL       2048u
#define USED        2560u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void check_chain(const struct virtqueue *q, const struct virtqueue_chain *chain)
{
    uint64_t readable = 0;
    uint64_t writable = 0;

    check(chain->n_readable + chain->n_writable >= 1);
    check(chain->n_readable + chain->n_writable <= q->size);
    check(chain->head < q->size);
    for (unsigned int i = 0; i < (unsigned int)chain->n_readable + chain->n_writable; i++) {
        check(chain->buffers[i].len > 0);
        check(memory_contains(q->mem, chain->buffers[i].addr, chain->buffers[i].len));
        *(i < chain->n_readable ? &readable : &writable) += chain->buffers[i].len;
    }
    check(readable == chain->readable_len && writable == chain->writable_len);
}

/* Reads all of it, writes some of it: the sanitizers watch. */
static void use_chain(struct virtqueue *q, const struct virtqueue_chain *chain, uint32_t offset)
{
    static uint8_t bytes[MEMORY_SIZE * 2];
    struct iovec iov[VIRTQUEUE_SIZE_MAX];
    uint32_t len;
    size_t n =
        virtqueue_readable_iov(q, chain, offset, UINT32_MAX, iov, VIRTQUEUE_SIZE_MAX, &len);
    size_t done = virtqueue_read(q, chain, offset, bytes, sizeof(bytes));

    check(n <= chain->n_readable);
    check(len == (offset < chain->readable_len ? chain->readable_len - offset : 0));
    check(done == (len < sizeof(bytes) ? len : sizeof(bytes)));
    n = virtqueue_writable_iov(q, chain, offset, UINT32_MAX, iov, VIRTQUEUE_SIZE_MAX, &len);
    check(n <= chain->n_writable);
    check(len == (offset < chain->writable_len ? chain->writable_len - offset : 0));
    done = virtqueue_write(q, chain, offset, bytes, 16);
    check(done == (len < 16 ? len : 16));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes_reader r = bytes_reader_init(data, size);
    uint16_t queue_size = (uint16_t)(1u << (bytes_get_u8(&r) % 8));
    uint16_t first = bytes_get_u16(&r);
    uint32_t offset = bytes_get_u8(&r);
    uint8_t *host = calloc(1, MEMORY_SIZE);
    size_t left = bytes_left(&r);
    struct memory mem;
    struct virtqueue q;
    struct virtqueue_chain chain;
    int got = 0;

    if (host == NULL) {
        return 0;
    }
    if (left > 0) {
        left = left < MEMORY_SIZE ? left : MEMORY_SIZE;
        memcpy(host, bytes_take(&r, left), left);
    }
    memory_init(&mem, host, MEMORY_SIZE);
    virtqueue_init(&q, &mem);
    q.size = queue_size;
    q.desc = DESC;
    q.avail = AVAIL;
    q.used = USED;
    q.next_avail = q.next_used = q.published_used = first;
    check(virtqueue_check_config(&q) == NULL);
    q.ready = true;
    virtqueue_want_kicks(&q, false);
    for (unsigned int i = 0;
         i < 2 * VIRTQUEUE_SIZE_MAX && (got = virtqueue_pop(&q, &chain)) > 0; i++) {
        check_chain(&q, &chain);
        use_chain(&q, &chain, offset);
        if (i % 3 == 2) {
            virtqueue_unpop(&q, 1);
            if (virtqueue_pop(&q, &chain) <= 0) {
                continue;
            }
        }
        virtqueue_push(&q, chain.head, i);
        if (i % 2 == 1) {
            virtqueue_publish(&q);
            (void)virtqueue_take_interrupt(&q);
        }
    }
    check((got < 0) == (q.failure != NULL));
    virtqueue_publish(&q);
    virtqueue_want_kicks(&q, true);
    check(q.failure == NULL || !virtqueue_has_work(&q));
    free(host);
    return 0;
}
