/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/boot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "vmm/arch/arch.h"
#include "vmm/devicetree.h"
#include "vmm/layout.h"
#include "vmm/loader.h"
#include "vmm/relocations.h"
#include "vmm/vmgenid.h"

/*
 * tsc=reliable, no_timer_check: there is no second clock and no timer pin to check against.
 * reboot=t: a triple fault is how the guest ends; panic=-1 gets there at once.
 * random.trust_…: the host is trusted, and gives the seed.
 * earlycon: what stops a kernel before it has found its serial port is told too.
 * loglevel=5: warnings and worse, for each character is an exit.
 * *hash_entries: tables for a machine of this memory would be megabytes that every guest
 * touches page by page and so copies from the snapshot.
 */
#define CMDLINE_COMMON                                                                         \
    "root=/dev/vda ro rootfstype=erofs init=/sbin/skillvm-init tsc=reliable no_timer_check "   \
    "reboot=t panic=-1 random.trust_cpu=on random.trust_bootloader=on "                        \
    "dhash_entries=4096 ihash_entries=4096 thash_entries=512 uhash_entries=256 "
#define CMDLINE_QUIET   CMDLINE_COMMON "quiet loglevel=1"
#define CMDLINE_CONSOLE CMDLINE_COMMON "earlycon=uart,mmio,%#llx console=ttyS0 loglevel=5"
#define CMDLINE_SIZE    (sizeof(CMDLINE_CONSOLE) + 16)

/* To addresses drawn for this boot; one that cannot be moved stays. */
static int move_kernel(int kernel_fd, const struct loader_kernel *kernel, struct memory *memory,
                       struct err *err)
{
    uint64_t move = 0;
    int r;

    if (kernel->relocations_bytes == 0)
        return 0;
    r = arch_kernel_draw_move(kernel->va, kernel->bytes, &move, err);
    return r < 0 ? r : relocations_apply(kernel_fd, kernel, memory, move, err);
}

static void write_cmdline(char cmdline[CMDLINE_SIZE], bool with_console)
{
    if (with_console)
        (void)snprintf(cmdline, CMDLINE_SIZE, CMDLINE_CONSOLE, LAYOUT_SERIAL_BASE);
    else
        (void)snprintf(cmdline, CMDLINE_SIZE, CMDLINE_QUIET);
}

int boot_machine(struct machine *m, const struct boot_config *config, struct err *err)
{
    char cmdline[CMDLINE_SIZE];
    struct machine_config machine_config = {
        .kvm_fd = config->kvm_fd,
        .memory_fd = -1,
        .memory_bytes = config->memory_bytes,
        .host = {.image_fd = config->image_fd, .vsock_fd = config->vsock_fd},
        .console_fd = config->console_fd,
    };
    struct devicetree_config tree = {
        .ram_bytes = config->memory_bytes,
        .cmdline = cmdline,
        .n_virtio = (uint32_t)machine_n_devices,
        .serial = config->console_fd >= 0,
    };
    uint8_t dtb[DEVICETREE_SIZE_MAX];
    size_t dtb_bytes = 0;
    struct loader_kernel kernel = {0};
    int r;

    write_cmdline(cmdline, tree.serial);
    r = machine_init(m, &machine_config, err);
    if (r < 0)
        return r;
    r = loader_load_kernel(config->kernel_fd, &m->memory,
                           LAYOUT_VMGENID_GPA(config->memory_bytes), &kernel, err);
    if (r < 0)
        return r;
    r = move_kernel(config->kernel_fd, &kernel, &m->memory, err);
    if (r < 0)
        return r;
    r = devicetree_build(&tree, dtb, sizeof(dtb), &dtb_bytes, err);
    if (r < 0)
        return r;
    r = arch_boot(&m->kvm, &m->memory, kernel.entry_gpa, tree.cmdline, dtb, dtb_bytes, err);
    return r < 0 ? r : vmgenid_renew(&m->memory, err);
}
