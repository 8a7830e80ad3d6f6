/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine.h"

#include <errno.h>
#include <linux/serial_reg.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "vmm/arch/arch.h"
#include "vmm/vcpu.h"

const struct virtio_ops *const machine_devices[] = {
    &blk_ops,
    &vsock_ops,
    &blk_skill_ops,
};
const size_t machine_n_devices = sizeof(machine_devices) / sizeof(machine_devices[0]);
_Static_assert(sizeof(machine_devices) / sizeof(machine_devices[0]) <= LAYOUT_DEVICES_MAX,
               "a window and an interrupt line for each");

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

static void raise_interrupt(void *arg)
{
    struct machine_device *d = arg;

    machine_pulse(d->machine, d->gsi);
}

/* Gives the device a transport fresh from its reset. */
static void init_transport(struct machine_device *d)
{
    virtio_mmio_init(&d->mmio, d->device, &d->machine->memory,
                     (struct virtio_irq){.raise = raise_interrupt, .context = d});
}

int machine_make_devices(struct machine *m, struct err *err)
{
    for (size_t i = 0; i < machine_n_devices; i++) {
        const struct virtio_ops *ops = machine_devices[i];
        struct machine_device *d = &m->devices[i];
        int r;

        d->machine = m;
        d->gsi = LAYOUT_DEVICE_GSI((uint32_t)i);
        d->device = calloc(1, ops->size);
        if (!d->device)
            return err_set(err, ENOMEM, "no memory for the %s device", ops->name);
        r = ops->init(d->device, &m->config.host, err);
        if (r < 0)
            return r;
        init_transport(d);
        m->vsock = m->vsock ?: vsock_of(d->device);
        m->disk = m->disk ?: blk_skill_of(d->device);
    }
    serial_init(&m->serial, m->config.console_fd);
    return 0;
}

void machine_renew_devices(struct machine *m, int vsock_fd)
{
    m->config.host.vsock_fd = vsock_fd;
    m->waited_events = -1;
    for (struct machine_device *d = m->devices; d < m->devices + machine_n_devices; d++) {
        d->device->ops->renew(d->device, &m->config.host);
        init_transport(d);
    }
    serial_init(&m->serial, m->config.console_fd);
    m->last_words.n = 0;
}

void machine_release_devices(struct machine *m)
{
    for (size_t i = 0; i < machine_n_devices; i++) {
        struct virtio_device **device = &m->devices[i].device;

        if (*device && machine_devices[i]->finish)
            machine_devices[i]->finish(*device);
        free(*device);
        *device = NULL;
    }
    m->vsock = NULL;
    m->disk = NULL;
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

    r = kvm_make(&m->kvm, config->kvm_fd, m->mapping, config->memory_bytes, config->log_dirty,
                 err);
    if (r < 0)
        return r;
    r = machine_make_devices(m, err);
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
    machine_release_devices(m);
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

void machine_tell_last_words(struct machine *m, int fd)
{
    (void)pthread_mutex_lock(&m->lock);
    last_words_tell(&m->last_words, fd);
    (void)pthread_mutex_unlock(&m->lock);
}

/* Under the lock: ends a machine whose guest broke the device's rules. */
static void check_rules(struct machine_device *d)
{
    const char *failure = virtio_mmio_failure(&d->mmio);
    char text[ERR_MESSAGE_MAX];

    if (!failure)
        return;
    (void)snprintf(text, sizeof(text), "the guest broke a rule of its %s device: %s",
                   d->device->ops->name, failure);
    set_end(d->machine, MACHINE_RULES, text);
}

static void access_device(struct machine_device *d, uint64_t offset, void *data, uint32_t len,
                          bool is_write)
{
    struct machine *m = d->machine;

    if (!is_write) {
        virtio_mmio_read(&d->mmio, offset, data, len);
        return;
    }
    virtio_mmio_write(&d->mmio, offset, data, len);
    /* One access does a bounded amount of work: the main thread goes on with the rest. */
    if (virtio_mmio_serve_more(&d->mmio) || vsock_poll_events(m->vsock) != m->waited_events ||
        vsock_state(m->vsock) != m->seen_state)
        wake_main(m);
    check_rules(d);
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
    uint64_t window = (gpa - LAYOUT_DEVICE_BASE(0)) / LAYOUT_DEVICE_SIZE;
    uint64_t offset = gpa % LAYOUT_DEVICE_SIZE;

    (void)pthread_mutex_lock(&m->lock);
    if (window < machine_n_devices)
        access_device(&m->devices[window], offset, data, len, is_write);
    else if (gpa - offset == LAYOUT_SERIAL_BASE && m->config.console_fd >= 0)
        access_serial(m, offset, data, len, is_write);
    else if (is_write && gpa == LAYOUT_SERIAL_BASE + UART_TX)
        last_words_keep(&m->last_words, *(const char *)data);
    else if (!is_write)
        /* Nobody there: as on a bus, reads give ones and writes go nowhere. */
        memset(data, 0xff, len);
    (void)pthread_mutex_unlock(&m->lock);
}

int machine_vsock_wait(struct machine *m, enum vsock_state *ret_state, bool *ret_more)
{
    bool more = false;
    int events;

    (void)pthread_mutex_lock(&m->lock);
    for (struct machine_device *d = m->devices; d < m->devices + machine_n_devices; d++) {
        more = virtio_mmio_serve_more(&d->mmio) || more;
        check_rules(d);
    }
    events = m->waited_events = vsock_poll_events(m->vsock);
    *ret_state = m->seen_state = vsock_state(m->vsock);
    (void)pthread_mutex_unlock(&m->lock);
    *ret_more = more;
    return events;
}

void machine_vsock_ready(struct machine *m, short revents)
{
    (void)pthread_mutex_lock(&m->lock);
    vsock_host_ready(m->vsock, revents);
    for (struct machine_device *d = m->devices; d < m->devices + machine_n_devices; d++)
        check_rules(d);
    (void)pthread_mutex_unlock(&m->lock);
}

int machine_vsock_connect(struct machine *m)
{
    int r;

    (void)pthread_mutex_lock(&m->lock);
    r = vsock_connect(m->vsock);
    (void)pthread_mutex_unlock(&m->lock);
    return r;
}

int machine_attach_disk(struct machine *m, int fds[BLK_PARTS_MAX],
                        const uint64_t bytes[BLK_PARTS_MAX], struct err *err)
{
    int r;

    (void)pthread_mutex_lock(&m->lock);
    r = blk_attach(m->disk, fds, bytes, err);
    (void)pthread_mutex_unlock(&m->lock);
    return r;
}
