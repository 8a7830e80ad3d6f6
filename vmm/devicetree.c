/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/devicetree.h"

#include <errno.h>
#include <libfdt.h>
#include <stdio.h>

#include "vmm/arch/arch.h"
#include "vmm/layout.h"

/* Adds <reg> with one (address, size) pair in 2/2 cells. */
static int put_reg(void *fdt, uint64_t base, uint64_t size)
{
    fdt64_t reg[2] = {cpu_to_fdt64(base), cpu_to_fdt64(size)};

    return fdt_property(fdt, "reg", reg, sizeof(reg));
}

static int begin_device(void *fdt, const char *kind, uint64_t base, uint64_t size,
                        const char *compatible)
{
    char name[48];

    (void)snprintf(name, sizeof(name), "%s@%llx", kind, (unsigned long long)base);
    return fdt_begin_node(fdt, name) ?: fdt_property_string(fdt, "compatible", compatible)
                                     ?: put_reg(fdt, base, size);
}

static int put_interrupt(void *fdt, uint32_t gsi)
{
    fdt32_t cells[2] = {cpu_to_fdt32(gsi), cpu_to_fdt32(ARCH_DT_IRQ_EDGE)};

    return fdt_property(fdt, "interrupts", cells, sizeof(cells));
}

static int put_virtio(void *fdt, uint32_t n_devices)
{
    int r = 0;

    for (uint32_t i = 0; i < n_devices && r == 0; i++)
        r = begin_device(fdt, "virtio", LAYOUT_DEVICE_BASE(i), LAYOUT_DEVICE_SIZE, "virtio,mmio")
                ?: put_interrupt(fdt, LAYOUT_DEVICE_GSI(i)) ?: fdt_end_node(fdt);
    return r;
}

static int put_serial(void *fdt)
{
    return begin_device(fdt, "serial", LAYOUT_SERIAL_BASE, LAYOUT_DEVICE_SIZE, "ns16550a")
               ?: fdt_property_u32(fdt, "clock-frequency", 1843200)
               ?: put_interrupt(fdt, LAYOUT_SERIAL_GSI) ?: fdt_end_node(fdt);
}

static int put_vmgenid(void *fdt, uint64_t ram_bytes)
{
    return begin_device(fdt, "vmgenid", LAYOUT_VMGENID_GPA(ram_bytes), LAYOUT_PAGE_SIZE,
                        "microsoft,vmgenid")
               ?: put_interrupt(fdt, LAYOUT_VMGENID_GSI) ?: fdt_end_node(fdt);
}

static int put_cells(void *fdt)
{
    return fdt_property_u32(fdt, "#address-cells", 2)
               ?: fdt_property_u32(fdt, "#size-cells", 2);
}

static int put_memory(void *fdt, uint64_t ram_bytes)
{
    return fdt_begin_node(fdt, "memory@0")
               ?: fdt_property_string(fdt, "device_type", "memory")
               ?: put_reg(fdt, LAYOUT_RAM_BASE, ram_bytes) ?: fdt_end_node(fdt);
}

static int put_chosen(void *fdt, const char *cmdline)
{
    return fdt_begin_node(fdt, "chosen") ?: fdt_property_string(fdt, "bootargs", cmdline)
                                         ?: fdt_end_node(fdt);
}

/* The whole tree, from top to bottom. */
static int build(const struct devicetree_config *config, void *fdt, int cap)
{
    return fdt_create(fdt, cap) ?: fdt_finish_reservemap(fdt) ?: fdt_begin_node(fdt, "")
        ?: fdt_property_string(fdt, "compatible", "skillvm,machine")
        ?: fdt_property_u32(fdt, "interrupt-parent", ARCH_DT_INTERRUPT_PARENT)
        ?: put_cells(fdt)
        ?: put_chosen(fdt, config->cmdline)
        ?: put_memory(fdt, config->ram_bytes)
        ?: arch_devicetree_cpus(fdt)
        ?: fdt_begin_node(fdt, "soc")
        ?: fdt_property_string(fdt, "compatible", "simple-bus")
        ?: put_cells(fdt)
        ?: fdt_property(fdt, "ranges", NULL, 0)
        ?: arch_devicetree_interrupt_controllers(fdt)
        ?: put_virtio(fdt, config->n_virtio)
        ?: (config->serial ? put_serial(fdt) : 0)
        ?: put_vmgenid(fdt, config->ram_bytes)
        ?: fdt_end_node(fdt) ?: fdt_end_node(fdt) ?: fdt_finish(fdt);
}

int devicetree_build(const struct devicetree_config *config, void *out, size_t cap,
                     size_t *ret_len, struct err *err)
{
    int limit = cap > DEVICETREE_SIZE_MAX ? (int)DEVICETREE_SIZE_MAX : (int)cap;
    int r = build(config, out, limit);

    if (r == -FDT_ERR_NOSPACE)
        return err_set(err, E2BIG, "devicetree: does not fit in %d bytes", limit);
    if (r != 0)
        return err_set(err, EINVAL, "devicetree: %s", fdt_strerror(r));
    *ret_len = fdt_totalsize(out);
    return 0;
}
