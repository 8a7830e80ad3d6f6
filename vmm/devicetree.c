/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/devicetree.h"

#include <errno.h>
#include <libfdt.h>
#include <stdio.h>
#include <string.h>

#include "vmm/arch/arch.h"
#include "vmm/layout.h"

void devicetree_begin(struct devicetree *t, const char *node)
{
    if (!t->error)
        t->error = fdt_begin_node(t->fdt, node);
}

void devicetree_end(struct devicetree *t)
{
    if (!t->error)
        t->error = fdt_end_node(t->fdt);
}

void devicetree_put(struct devicetree *t, const char *name, const void *data, size_t len)
{
    if (!t->error)
        t->error = fdt_property(t->fdt, name, data, (int)len);
}

void devicetree_put_u32(struct devicetree *t, const char *name, uint32_t value)
{
    fdt32_t cell = cpu_to_fdt32(value);

    devicetree_put(t, name, &cell, sizeof(cell));
}

void devicetree_put_string(struct devicetree *t, const char *name, const char *value)
{
    devicetree_put(t, name, value, strlen(value) + 1);
}

void devicetree_put_reg(struct devicetree *t, uint64_t base, uint64_t size)
{
    fdt64_t reg[2] = {cpu_to_fdt64(base), cpu_to_fdt64(size)};

    devicetree_put(t, "reg", reg, sizeof(reg));
}

static void begin_device(struct devicetree *t, const char *kind, uint64_t base, uint64_t size,
                         const char *compatible)
{
    char name[48];

    (void)snprintf(name, sizeof(name), "%s@%llx", kind, (unsigned long long)base);
    devicetree_begin(t, name);
    devicetree_put_string(t, "compatible", compatible);
    devicetree_put_reg(t, base, size);
}

/* Its interrupt is the last that is said of a device. */
static void end_device(struct devicetree *t, uint32_t gsi)
{
    fdt32_t cells[2] = {cpu_to_fdt32(gsi), cpu_to_fdt32(ARCH_DT_IRQ_EDGE)};

    devicetree_put(t, "interrupts", cells, sizeof(cells));
    devicetree_end(t);
}

static void put_devices(struct devicetree *t, const struct devicetree_config *config)
{
    for (uint32_t i = 0; i < config->n_virtio; i++) {
        begin_device(t, "virtio", LAYOUT_DEVICE_BASE(i), LAYOUT_DEVICE_SIZE, "virtio,mmio");
        end_device(t, LAYOUT_DEVICE_GSI(i));
    }
    if (config->serial) {
        begin_device(t, "serial", LAYOUT_SERIAL_BASE, LAYOUT_DEVICE_SIZE, "ns16550a");
        devicetree_put_u32(t, "clock-frequency", 1843200);
        end_device(t, LAYOUT_SERIAL_GSI);
    }
    begin_device(t, "vmgenid", LAYOUT_VMGENID_GPA(config->ram_bytes), LAYOUT_PAGE_SIZE,
                 "microsoft,vmgenid");
    end_device(t, LAYOUT_VMGENID_GSI);
}

static void put_cells(struct devicetree *t)
{
    devicetree_put_u32(t, "#address-cells", 2);
    devicetree_put_u32(t, "#size-cells", 2);
}

/* The whole tree, from top to bottom. */
static void put_all(struct devicetree *t, const struct devicetree_config *config)
{
    devicetree_begin(t, "");
    devicetree_put_string(t, "compatible", "skillvm,machine");
    devicetree_put_u32(t, "interrupt-parent", ARCH_DT_INTERRUPT_PARENT);
    put_cells(t);
    devicetree_begin(t, "chosen");
    devicetree_put_string(t, "bootargs", config->cmdline);
    devicetree_end(t);
    devicetree_begin(t, "memory@0");
    devicetree_put_string(t, "device_type", "memory");
    devicetree_put_reg(t, LAYOUT_RAM_BASE, config->ram_bytes);
    devicetree_end(t);
    arch_devicetree_cpus(t);
    devicetree_begin(t, "soc");
    devicetree_put_string(t, "compatible", "simple-bus");
    put_cells(t);
    devicetree_put(t, "ranges", NULL, 0);
    arch_devicetree_interrupt_controllers(t);
    put_devices(t, config);
    devicetree_end(t);
    devicetree_end(t);
}

static int build(const struct devicetree_config *config, void *fdt, int cap)
{
    struct devicetree t = {.fdt = fdt, .error = fdt_create(fdt, cap)};

    if (!t.error)
        t.error = fdt_finish_reservemap(fdt);
    put_all(&t, config);
    return t.error ? t.error : fdt_finish(fdt);
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
