/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "vmm/arch/arch.h"
#include "vmm/verify.h"
#include "vmm/vmgenid.h"
#include "vmm/working_set.h"

#define TAG_MACHINE STATE_TAG('M', 'A', 'C', 'H')

/* The most that is written to the memory file in one call. */
#define RUN_MAX (1u << 20)

const struct state_schema *snapshot_schema(void)
{
    static const struct state_kind machine = {TAG_MACHINE, 2, "machine"};
    static const struct state_kind arch[] = {ARCH_STATE_KINDS};
    static struct state_kind kinds[1 + LAYOUT_DEVICES_MAX + sizeof(arch) / sizeof(arch[0])];
    static struct state_schema schema = {.kinds = kinds};
    size_t n = 0;

    if (schema.n_kinds > 0)
        return &schema;
    kinds[n++] = machine;
    for (size_t i = 0; i < machine_n_devices; i++)
        kinds[n++] = (struct state_kind){machine_devices[i]->tag, 1, machine_devices[i]->name};
    memcpy(kinds + n, arch, sizeof(arch));
    schema.n_kinds = n + sizeof(arch) / sizeof(arch[0]);
    return &schema;
}

static int save_machine(const struct machine *m, struct state_writer *w, struct err *err)
{
    uint8_t bytes[12];
    struct bytes_writer b = bytes_writer_init(bytes, sizeof(bytes));

    bytes_put_u32(&b, ARCH_STATE_MACHINE);
    bytes_put_u64(&b, m->config.memory_bytes);
    return state_add(w, TAG_MACHINE, bytes, b.len, err);
}

int snapshot_get_memory_bytes(const struct state *state, uint64_t *ret_bytes, struct err *err)
{
    struct bytes_reader r = state_section(state, TAG_MACHINE);
    uint32_t arch = bytes_get_u32(&r);
    uint64_t memory_bytes = bytes_get_u64(&r);

    if (!bytes_done(&r))
        return state_bad_section(state, TAG_MACHINE, "malformed", err);
    if (arch != ARCH_STATE_MACHINE)
        return state_bad_section(state, TAG_MACHINE, "made on another architecture", err);
    *ret_bytes = memory_bytes;
    return 0;
}

static int save_device(const struct machine_device *d, struct state_writer *w, struct err *err)
{
    uint8_t bytes[VIRTIO_MMIO_STATE_MAX];
    struct bytes_writer b = bytes_writer_init(bytes, sizeof(bytes));

    virtio_mmio_save(&d->mmio, &b);
    if (b.bad)
        return err_set(err, E2BIG, "a device's state is longer than %zu bytes", sizeof(bytes));
    return state_add(w, d->device->ops->tag, bytes, b.len, err);
}

static bool is_zero(const uint8_t *page)
{
    uint64_t first;

    memcpy(&first, page, sizeof(first));
    return first == 0 && memcmp(page, page + 1, LAYOUT_PAGE_SIZE - 1) == 0;
}

/* Writes the pages that hold something, in runs; the others stay holes of the file. */
static int save_memory(const struct machine *m, int memory_fd, struct err *err)
{
    const uint8_t *memory = m->mapping;
    uint64_t size = m->config.memory_bytes;
    uint64_t at = 0;

    if (ftruncate(memory_fd, (off_t)size) < 0)
        return err_set_errno(err, errno, "sizing the memory file");
    while (at < size) {
        uint64_t end = at;
        int r;

        while (end < size && end - at < RUN_MAX && !is_zero(memory + end))
            end += LAYOUT_PAGE_SIZE;
        if (end == at) {
            at += LAYOUT_PAGE_SIZE;
            continue;
        }
        r = fd_pwrite_full(memory_fd, memory + at, end - at, at);
        if (r < 0)
            return err_set_errno(err, -r, "writing the memory file");
        at = end;
    }
    return 0;
}

int snapshot_save_state(struct machine *m, struct state_writer *w, struct err *err)
{
    int r = state_writer_init(w, snapshot_schema(), err);

    if (r < 0)
        return r;
    r = save_machine(m, w, err);
    if (r < 0)
        return r;
    r = arch_state_save(&m->kvm, w, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < machine_n_devices && r >= 0; i++)
        r = save_device(&m->devices[i], w, err);
    return r < 0 ? r : state_writer_complete(w, err);
}

int snapshot_save(struct machine *m, int state_fd, int memory_fd, struct err *err)
{
    _cleanup_state_writer_ struct state_writer w = {0};
    int r = snapshot_save_state(m, &w, err);

    if (r < 0)
        return r;
    r = fd_pwrite_full(state_fd, w.out.data, w.out.len, 0);
    if (r < 0)
        return err_set_errno(err, -r, "writing the state file");
    return save_memory(m, memory_fd, err);
}

/* Reads the whole state file. *ret_data is malloc'ed. */
static int read_state(int fd, uint8_t **ret_data, size_t *ret_len, struct err *err)
{
    struct stat st;
    uint8_t *data;
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "state file");
    if (st.st_size < 0 || st.st_size > (off_t)STATE_SIZE_MAX)
        return err_set(err, EINVAL, "state: a file of %lld bytes", (long long)st.st_size);
    data = malloc((size_t)st.st_size + 1);
    if (!data)
        return err_set(err, ENOMEM, "no memory");
    n = fd_pread_full(fd, data, (size_t)st.st_size, 0);
    if (n != (ssize_t)st.st_size) {
        free(data);
        return err_set_errno(err, n < 0 ? (int)-n : EIO, "reading the state file");
    }
    *ret_data = data;
    *ret_len = (size_t)n;
    return 0;
}

static int check_memory_file(int fd, uint64_t memory_bytes, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "memory file");
    if (st.st_size < 0 || (uint64_t)st.st_size != memory_bytes)
        return err_set(err, EINVAL, "the memory file has %lld bytes, the machine needs %llu",
                       (long long)st.st_size, (unsigned long long)memory_bytes);
    return 0;
}

static int load_device(struct machine_device *d, const struct state *state, struct err *err)
{
    uint32_t tag = d->device->ops->tag;
    struct bytes_reader r = state_section(state, tag);
    int e = virtio_mmio_load(&d->mmio, &r, err);

    if (e < 0) {
        err_prefix(err, "state section %s", d->device->ops->name);
        return e;
    }
    return bytes_done(&r) ? 0 : state_bad_section(state, tag, "wrong length", err);
}

int snapshot_load_devices(struct machine *m, const struct state *state, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < machine_n_devices && r >= 0; i++)
        r = load_device(&m->devices[i], state, err);
    return r;
}

/* The last steps of a restore and of a reset. Guest memory changes from here on. */
static int resume(struct machine *m, struct err *err)
{
    int r;

    /* Devices go on: interrupts that may have been lost, and kicks that nobody served. */
    for (size_t i = 0; i < machine_n_devices; i++)
        virtio_mmio_resume(&m->devices[i].mmio);

    /* Last, because the guest must see it before it draws a random number: the generation ID,
       and the interrupt that makes the kernel look at it. */
    r = vmgenid_renew(&m->memory, err);
    if (r < 0)
        return r;
    machine_pulse(m, LAYOUT_VMGENID_GSI);
    return 0;
}

/* The order of a restore. Each step needs the ones before it. */
static int restore(struct machine *m, const struct snapshot_source *source,
                   const struct state *state, struct err *err)
{
    struct machine_config config = {
        .kvm_fd = source->kvm_fd,
        .memory_fd = source->memory_fd,
        .host = {.image_fd = source->image_fd, .vsock_fd = source->vsock_fd},
        .console_fd = source->console_fd,
        .log_dirty = source->log_dirty,
    };
    int r;

    /* 1. What machine it was, and that its memory file is whole. */
    r = snapshot_get_memory_bytes(state, &config.memory_bytes, err);
    if (r < 0)
        return r;
    r = check_memory_file(source->memory_fd, config.memory_bytes, err);
    if (r < 0)
        return r;

    /* 2. The memory file copy-on-write; VM, interrupt chips, memory slot, vCPU; fresh devices.
     */
    r = machine_init(m, &config, err);
    if (r < 0)
        return r;

    /* 3. The vCPU, the interrupt chips and the clock, in the architecture's order. */
    r = arch_state_load(&m->kvm, state, err);
    if (r < 0)
        return r;

    /* 4. The devices' registers and queues. Guest memory is not touched yet. */
    r = snapshot_load_devices(m, state, err);
    if (r < 0)
        return r;
    r = verify_restored(m, err);
    if (r < 0)
        return r;

    /* 5. What the guest will write soon becomes private: before anything else touches memory.
     */
    if (source->working_set_fd >= 0) {
        r = working_set_apply(source->working_set_fd, &m->kvm, &m->memory, err);
        if (r < 0)
            return r;
    }

    return resume(m, err);
}

int snapshot_restore(struct machine *m, const struct snapshot_source *source,
                     struct snapshot_origin *origin, struct err *err)
{
    int r = read_state(source->state_fd, &origin->data, &origin->len, err);

    if (r < 0)
        return r;
    r = state_parse(origin->data, origin->len, snapshot_schema(), &origin->state, err);
    if (r < 0)
        return r;
    r = restore(m, source, &origin->state, err);
    if (r < 0)
        return r;
    if (source->pagemap_fd < 0)
        return 0;
    /* What only a reset needs. */
    r = private_pages_init(&origin->pages, &m->memory, source->memory_fd, source->pagemap_fd,
                           err);
    return r < 0 ? r : arch_flush_open(&m->kvm, &m->flush, err);
}

/* The order of a reset: that of a restore, on a machine that is already there. */
int snapshot_reset(struct machine *m, struct snapshot_origin *origin, int vsock_fd,
                   uint64_t *ret_pages, struct err *err)
{
    int r;

    /* 1. The vCPU, the interrupt chips and the clock: also what lets KVM write to the guest's
       memory by itself (steal time, clock, end of interrupt), which must not happen after
       step 2. */
    r = arch_flush_disarm(&m->kvm, err);
    if (r < 0)
        return r;
    r = arch_state_reload(&m->kvm, &origin->state, err);
    if (r < 0)
        return r;

    /* 2. Memory: every page that is not the file's gets the file's content. */
    r = private_pages_reset(&origin->pages, ret_pages, err);
    if (r < 0)
        return r;

    /* 3. Devices as new ones, then as they were saved. The old stream ends here. */
    machine_renew_devices(m, vsock_fd);
    r = snapshot_load_devices(m, &origin->state, err);
    if (r < 0)
        return r;
    r = verify_reset(m, &origin->pages, err);
    if (r < 0)
        return r;

    /* 4. As a restore goes on; and the CPU must not use what it remembers of page tables. */
    r = resume(m, err);
    return r < 0 ? r : arch_flush_arm(&m->kvm, &m->memory, &m->flush, err);
}
