/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/boot.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "vmm/arch/arch.h"
#include "vmm/devicetree.h"
#include "vmm/layout.h"
#include "vmm/loader.h"
#include "vmm/vmgenid.h"

/*
 * tsc=reliable, no_timer_check: there is no second clock and no timer pin to check against.
 * reboot=t: a triple fault is how the guest ends; panic=-1 gets there at once.
 * random.trust_cpu, random.trust_bootloader: the host is trusted, and gives the seed.
 * mitigations=off: they protect a kernel from its user space, and here both belong to the same
 * execution: the guest's kernel holds nothing of anybody else, and the host protects itself.
 */
#define CMDLINE_COMMON                                                                         \
    "root=/dev/vda ro rootfstype=erofs init=/sbin/skillvm-init tsc=reliable no_timer_check "   \
    "reboot=t panic=-1 random.trust_cpu=on random.trust_bootloader=on mitigations=off "
#define CMDLINE_QUIET   CMDLINE_COMMON "quiet loglevel=1"
#define CMDLINE_CONSOLE CMDLINE_COMMON "console=ttyS0 loglevel=7"

static int make_memory(uint64_t bytes, struct err *err)
{
    int fd = memfd_create("guest-memory", MFD_CLOEXEC);

    if (fd < 0)
        return err_set_errno(err, errno, "memfd_create");
    if (ftruncate(fd, (off_t)bytes) < 0) {
        int r =
            err_set_errno(err, errno, "guest memory of %llu bytes", (unsigned long long)bytes);

        fd_close(&fd);
        return r;
    }
    return fd;
}

int boot_machine(struct machine *m, const struct boot_config *config, int *ret_memory_fd,
                 struct err *err)
{
    _cleanup_fd_ int memory_fd = make_memory(config->memory_bytes, err);
    struct machine_config machine_config = {
        .memory_fd = memory_fd,
        .memory_is_shared = true,
        .memory_bytes = config->memory_bytes,
        .image_fd = config->image_fd,
        .vsock_fd = config->vsock_fd,
        .console_fd = config->console_fd,
        .has_serial = config->console_fd >= 0,
    };
    struct devicetree_config tree = {
        .ram_bytes = config->memory_bytes,
        .cmdline = config->console_fd >= 0 ? CMDLINE_CONSOLE : CMDLINE_QUIET,
        .serial = config->console_fd >= 0,
    };
    uint8_t dtb[DEVICETREE_SIZE_MAX];
    size_t dtb_bytes = 0;
    gpa_t entry_gpa = 0;
    int r;

    if (memory_fd < 0)
        return memory_fd;
    r = machine_init(m, &machine_config, err);
    if (r >= 0)
        r = loader_load_kernel(config->kernel_fd, &m->memory,
                               LAYOUT_VMGENID_GPA(config->memory_bytes), &entry_gpa, err);
    if (r >= 0)
        r = devicetree_build(&tree, dtb, sizeof(dtb), &dtb_bytes, err);
    if (r >= 0)
        r = arch_boot(&m->kvm, &m->memory, entry_gpa, tree.cmdline, dtb, dtb_bytes, err);
    if (r >= 0)
        r = vmgenid_renew(&m->memory, err);
    if (r < 0)
        return r;
    *ret_memory_fd = fd_steal(&memory_fd);
    return 0;
}
