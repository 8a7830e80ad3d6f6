/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "vmm/arch/arch.h"
#include "vmm/layout.h"
#include "vmm/vcpu.h"

static int map_memory(struct machine *m, struct err *err)
{
    const struct machine_config *c = &m->config;
    int flags = MAP_PRIVATE | MAP_NORESERVE | (c->memory_fd < 0 ? MAP_ANONYMOUS : 0);
    void *host;

    if (c->memory_bytes < LAYOUT_RAM_MIN_BYTES || c->memory_bytes > LAYOUT_RAM_MAX_BYTES ||
        c->memory_bytes % LAYOUT_PAGE_SIZE != 0)
        return err_set(err, EINVAL, "guest memory of %llu bytes is not possible",
                       (unsigned long long)c->memory_bytes);
    host = mmap(NULL, c->memory_bytes, PROT_READ | PROT_WRITE, flags, c->memory_fd, 0);
    if (host == MAP_FAILED)
        return err_set_errno(err, errno, "mapping guest memory");
    m->mapping = host;
    /* Few faults while a kernel boots. Only advice: it may not be there. */
    if (c->memory_fd < 0)
        (void)madvise(host, c->memory_bytes, MADV_HUGEPAGE);
    /* A core file must not hold the guest. */
    (void)madvise(host, c->memory_bytes, MADV_DONTDUMP);
    memory_init(&m->memory, host, c->memory_bytes);
    return 0;
}

static void raise_blk(void *arg)
{
    machine_pulse(arg, LAYOUT_BLK_GSI);
}

static void raise_vsock(void *arg)
{
    machine_pulse(arg, LAYOUT_VSOCK_GSI);
}

/* Gives each device a transport fresh from its reset. */
static void init_transports(struct machine *m)
{
    virtio_mmio_init(&m->blk_mmio, &m->blk.device, &m->memory,
                     (struct virtio_irq){.raise = raise_blk, .context = m});
    virtio_mmio_init(&m->vsock_mmio, &m->vsock.device, &m->memory,
                     (struct virtio_irq){.raise = raise_vsock, .context = m});
}

static int init_devices(struct machine *m, struct err *err)
{
    const struct machine_config *c = &m->config;
    int r = blk_init(&m->blk, c->image_fd, "skillvm-root", err);

    if (r >= 0)
        r = vsock_init(&m->vsock, MACHINE_GUEST_CID, c->vsock_fd, err);
    if (r < 0)
        return r;
    serial_init(&m->serial, c->console_fd);
    init_transports(m);
    return 0;
}

void machine_renew_devices(struct machine *m, int vsock_fd)
{
    m->config.vsock_fd = vsock_fd;
    m->waited_events = -1;
    blk_renew(&m->blk);
    vsock_renew(&m->vsock, vsock_fd);
    serial_init(&m->serial, m->config.console_fd);
    init_transports(m);
}

/* The machine, from top to bottom. */
int machine_init(struct machine *m, const struct machine_config *config, struct err *err)
{
    int r;

    memset(m, 0, sizeof(*m));
    m->made = true;
    m->config = *config;
    m->kvm = kvm_init();
    m->wake_fd = -1;
    m->flush = arch_flush_init();
    m->waited_events = -1;
    (void)pthread_mutex_init(&m->lock, NULL);
    (void)sem_init(&m->gate, 0, 0);
    (void)sem_init(&m->parked, 0, 0);

    r = map_memory(m, err);
    if (r < 0)
        return r;

    /* KVM: the order is that of docs/snapshot-format.md. */
    r = kvm_open(&m->kvm, err);
    if (r >= 0)
        r = kvm_create_vm(&m->kvm, err);
    if (r >= 0)
        r = arch_vm_setup(&m->kvm, err);
    if (r >= 0)
        r = kvm_set_memory(&m->kvm, m->mapping, config->memory_bytes, config->log_dirty, err);
    if (r >= 0)
        r = kvm_create_vcpu(&m->kvm, err);
    if (r < 0)
        return r;

    r = init_devices(m, err);
    if (r < 0)
        return r;
    m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->wake_fd < 0)
        return err_set_errno(err, errno, "eventfd");
    return 0;
}

void machine_finish(struct machine *m)
{
    if (!m->made)
        return;
    vcpu_stop(m);
    kvm_finish(&m->kvm);
    vsock_finish(&m->vsock);
    if (m->mapping)
        (void)munmap(m->mapping, m->config.memory_bytes);
    m->mapping = NULL;
    fd_close(&m->wake_fd);
    arch_flush_finish(&m->flush);
    (void)sem_destroy(&m->parked);
    (void)sem_destroy(&m->gate);
    (void)pthread_mutex_destroy(&m->lock);
    m->made = false;
}

/*
 * Two calls instead of an irqfd: KVM hands an irqfd on an interrupt chip's pin to a kernel
 * worker, a thread switch that the guest would wait for.
 */
void machine_pulse(struct machine *m, uint32_t gsi)
{
    struct kvm_irq_level line = {.irq = gsi, .level = 1};

    (void)ioctl(m->kvm.vm_fd, KVM_IRQ_LINE, &line);
    line.level = 0;
    (void)ioctl(m->kvm.vm_fd, KVM_IRQ_LINE, &line);
}

static void wake_main(struct machine *m)
{
    uint64_t one = 1;

    /* Fails only when the counter is full, and then the main thread is awake already. */
    if (write(m->wake_fd, &one, sizeof(one)) < 0)
        return;
}

/* Under the lock. */
static void set_end(struct machine *m, enum machine_end end, const char *text)
{
    if (m->end != MACHINE_RUNS)
        return;
    m->end = end;
    (void)err_set(&m->end_err, EIO, "%s", text);
    wake_main(m);
}

void machine_set_end(struct machine *m, enum machine_end end, const char *format, ...)
{
    char text[ERR_MESSAGE_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)pthread_mutex_lock(&m->lock);
    set_end(m, end, text);
    (void)pthread_mutex_unlock(&m->lock);
}

enum machine_end machine_get_end(struct machine *m, struct err *ret_err)
{
    enum machine_end end;

    (void)pthread_mutex_lock(&m->lock);
    end = m->end;
    *ret_err = m->end_err;
    (void)pthread_mutex_unlock(&m->lock);
    return end;
}

/* Under the lock: ends a machine whose guest broke a device's rules. */
static void check_rules(struct machine *m, const struct virtio_mmio *mmio, const char *name)
{
    const char *failure = virtio_mmio_failure(mmio);
    char text[ERR_MESSAGE_MAX];

    if (!failure)
        return;
    (void)snprintf(text, sizeof(text), "the guest broke a rule of its %s device: %s", name,
                   failure);
    set_end(m, MACHINE_RULES, text);
}

static void access_virtio(struct machine *m, struct virtio_mmio *mmio, const char *name,
                          uint64_t offset, void *data, uint32_t len, bool is_write)
{
    if (!is_write) {
        virtio_mmio_read(mmio, offset, data, len);
        return;
    }
    virtio_mmio_write(mmio, offset, data, len);
    /* One access does a bounded amount of work: the main thread goes on with the rest. */
    if (virtio_mmio_serve_more(mmio))
        wake_main(m);
    check_rules(m, mmio, name);
}

static void access_serial(struct machine *m, uint64_t offset, void *data, uint32_t len,
                          bool is_write)
{
    if (is_write)
        serial_write(&m->serial, offset, data, len);
    else
        serial_read(&m->serial, offset, data, len);
    if (serial_take_interrupt(&m->serial))
        machine_pulse(m, LAYOUT_SERIAL_GSI);
}

void machine_mmio(struct machine *m, uint64_t gpa, void *data, uint32_t len, bool is_write)
{
    uint64_t offset = gpa % LAYOUT_DEVICE_SIZE;

    (void)pthread_mutex_lock(&m->lock);
    switch (gpa - offset) {
    case LAYOUT_BLK_BASE:
        access_virtio(m, &m->blk_mmio, "blk", offset, data, len, is_write);
        break;
    case LAYOUT_VSOCK_BASE:
        access_virtio(m, &m->vsock_mmio, "vsock", offset, data, len, is_write);
        if (vsock_poll_events(&m->vsock) != m->waited_events ||
            vsock_state(&m->vsock) != m->seen_state)
            wake_main(m);
        break;
    case LAYOUT_SERIAL_BASE:
        if (m->config.has_serial) {
            access_serial(m, offset, data, len, is_write);
            break;
        }
        __attribute__((fallthrough));
    default:
        /* Nobody there: as on a bus, reads give ones and writes go nowhere. */
        if (!is_write)
            memset(data, 0xff, len);
        break;
    }
    (void)pthread_mutex_unlock(&m->lock);
}

int machine_vsock_wait(struct machine *m, enum vsock_state *ret_state, bool *ret_more)
{
    bool more;
    int events;

    (void)pthread_mutex_lock(&m->lock);
    more = virtio_mmio_serve_more(&m->blk_mmio);
    more = virtio_mmio_serve_more(&m->vsock_mmio) || more;
    check_rules(m, &m->blk_mmio, "blk");
    check_rules(m, &m->vsock_mmio, "vsock");
    events = m->waited_events = vsock_poll_events(&m->vsock);
    *ret_state = m->seen_state = vsock_state(&m->vsock);
    (void)pthread_mutex_unlock(&m->lock);
    *ret_more = more;
    return events;
}

void machine_vsock_ready(struct machine *m, short revents)
{
    (void)pthread_mutex_lock(&m->lock);
    vsock_host_ready(&m->vsock, revents);
    check_rules(m, &m->vsock_mmio, "vsock");
    (void)pthread_mutex_unlock(&m->lock);
}

int machine_vsock_connect(struct machine *m)
{
    int r;

    (void)pthread_mutex_lock(&m->lock);
    r = vsock_connect(&m->vsock);
    (void)pthread_mutex_unlock(&m->lock);
    return r;
}
