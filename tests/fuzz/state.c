/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader of state files, device sections included. The first byte chooses: 0 takes the rest
 * as a whole file; anything else takes it as the contents of sections (u16 length, bytes, in
 * the order of the schema), so that checksums do not keep the fuzzer out.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/snapshot.h"

#if defined(__x86_64__)
#include "vmm/arch/x86_64/cpuid.h"
#include "vmm/arch/x86_64/params.h"
#endif

/* Of the machine that the corpus was saved from, or its sections would not load. */
#define RAM_BYTES  (64u << 20)
#define DISK_BYTES (129200u * 512u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The devices of a machine, without KVM. */
static struct machine *make_machine(void)
{
    static struct machine m;
    int sockets[2];
    void *ram;

    if (!m.memory.host) {
        int disk = memfd_create("disk", MFD_CLOEXEC);

        ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (disk < 0 || ftruncate(disk, DISK_BYTES) < 0 || ram == MAP_FAILED ||
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
            abort();
        memory_init(&m.memory, ram, RAM_BYTES);
        m.kvm = kvm_init();
        m.config.host = (struct virtio_host){.image_fd = disk, .vsock_fd = sockets[0]};
        m.config.console_fd = -1;
    }
    if (machine_make_devices(&m, NULL) < 0)
        abort();
    return &m;
}

static void load(const uint8_t *file, size_t len)
{
    uint64_t memory_bytes;
    struct state state;
    struct err err = {0};
    struct machine *m;

    if (state_parse(file, len, snapshot_schema(), &state, &err) < 0) {
        if (err.code == 0)
            abort();
        return;
    }
    (void)snapshot_get_memory_bytes(&state, &memory_bytes, NULL);
    m = make_machine();
    if (snapshot_load_devices(m, &state, NULL) == 0) {
        for (size_t i = 0; i < machine_n_devices; i++)
            virtio_mmio_resume(&m->devices[i].mmio);
    }
    machine_release_devices(m);
#if defined(__x86_64__)
    struct bytes_reader r = state_section(&state, X86_TAG_CPUID);
    static struct x86_cpuid cpuid;

    if (x86_cpuid_decode(&r, &cpuid) == 0)
        x86_cpuid_filter(&cpuid);
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct state_schema *schema = snapshot_schema();
    struct bytes_reader r = bytes_reader_init(data, size);
    bool is_file = bytes_get_u8(&r) == 0;
    struct state_writer w;

    if (r.bad)
        return 0;
    if (is_file) {
        load(data + 1, size - 1);
        return 0;
    }
    if (state_writer_init(&w, schema, NULL) < 0)
        abort();
    for (size_t i = 0; i < schema->n_kinds; i++) {
        size_t len = bytes_get_u16(&r);
        size_t left = bytes_left(&r);
        const uint8_t *content = bytes_take(&r, len < left ? len : left);

        if (state_add(&w, schema->kinds[i].tag, content,
                      content ? (len < left ? len : left) : 0, NULL) < 0)
            abort();
    }
    if (state_writer_complete(&w, NULL) < 0)
        abort();
    load(w.out.data, w.out.len);
    state_writer_finish(&w);
    return 0;
}
