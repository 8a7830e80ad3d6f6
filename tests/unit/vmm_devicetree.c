/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devicetree, byte for byte where the kernel looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <libfdt.h>

#include "vmm/devicetree.h"

static uint8_t tree[DEVICETREE_SIZE_MAX];

static void build(bool serial)
{
    struct devicetree_config config = {
        .ram_bytes = 1ull << 30, .cmdline = "root=/dev/vda", .n_virtio = 2, .serial = serial};
    struct err err = {0};
    size_t len = 0;

    assert_int_equal(devicetree_build(&config, tree, sizeof(tree), &len, &err), 0);
    assert_int_equal(fdt_check_full(tree, len), 0);
    assert_true(len < DEVICETREE_SIZE_MAX);
}

static int node(const char *path)
{
    int offset = fdt_path_offset(tree, path);

    assert_true(offset >= 0);
    return offset;
}

static void has_bytes(const char *path, const char *property, const void *bytes, int len)
{
    int found = 0;
    const void *value = fdt_getprop(tree, node(path), property, &found);

    assert_non_null(value);
    assert_int_equal(found, len);
    assert_memory_equal(value, bytes, (size_t)len);
}

static void has_string(const char *path, const char *property, const char *text)
{
    has_bytes(path, property, text, (int)strlen(text) + 1);
}

static void has_device(const char *path, const char *compatible, const char *reg,
                       const char *interrupts)
{
    has_string(path, "compatible", compatible);
    has_bytes(path, "reg", reg, 16);
    if (interrupts)
        has_bytes(path, "interrupts", interrupts, 8);
}

static void describes_the_machine(void **unused)
{
    (void)unused;
    build(true);
    has_bytes("/", "#address-cells", "\0\0\0\2", 4);
    has_bytes("/", "#size-cells", "\0\0\0\2", 4);
    has_bytes("/", "interrupt-parent", "\0\0\0\1", 4);
    has_string("/chosen", "bootargs", "root=/dev/vda");
    has_string("/memory@0", "device_type", "memory");
    has_bytes("/memory@0", "reg", "\0\0\0\0\0\0\0\0\0\0\0\0\x40\0\0\0", 16);

    has_string("/soc", "compatible", "simple-bus");
    has_bytes("/soc", "ranges", "", 0);
    has_bytes("/soc", "#address-cells", "\0\0\0\2", 4);
    has_device("/soc/virtio@d0000000", "virtio,mmio", "\0\0\0\0\xd0\0\0\0\0\0\0\0\0\0\x10\0",
               "\0\0\0\5\0\0\0\3");
    has_device("/soc/virtio@d0001000", "virtio,mmio", "\0\0\0\0\xd0\0\x10\0\0\0\0\0\0\0\x10\0",
               "\0\0\0\6\0\0\0\3");
    has_device("/soc/serial@d0010000", "ns16550a", "\0\0\0\0\xd0\1\0\0\0\0\0\0\0\0\x10\0",
               "\0\0\0\4\0\0\0\3");
    has_device("/soc/vmgenid@3ffff000", "microsoft,vmgenid",
               "\0\0\0\0\x3f\xff\xf0\0\0\0\0\0\0\0\x10\0", "\0\0\0\3\0\0\0\3");
}

#if defined(__x86_64__)
static void describes_the_interrupt_controllers(void **unused)
{
    (void)unused;
    build(false);
    has_string("/cpus/cpu@0", "device_type", "cpu");
    has_string("/cpus/cpu@0", "compatible", "intel,x86");
    has_bytes("/cpus/cpu@0", "reg", "\0\0\0\0", 4);
    has_bytes("/cpus/cpu@0", "intel,apic", "\0\0\0\2", 4);
    has_device("/soc/lapic@fee00000", "intel,ce4100-lapic",
               "\0\0\0\0\xfe\xe0\0\0\0\0\0\0\0\0\x10\0", NULL);
    has_bytes("/soc/lapic@fee00000", "intel,virtual-wire-mode", "", 0);
    has_bytes("/soc/lapic@fee00000", "phandle", "\0\0\0\2", 4);
    has_device("/soc/ioapic@fec00000", "intel,ce4100-ioapic",
               "\0\0\0\0\xfe\xc0\0\0\0\0\0\0\0\0\x10\0", NULL);
    has_bytes("/soc/ioapic@fec00000", "#interrupt-cells", "\0\0\0\2", 4);
    has_bytes("/soc/ioapic@fec00000", "interrupt-controller", "", 0);
    has_bytes("/soc/ioapic@fec00000", "phandle", "\0\0\0\1", 4);
}
#endif

static void names_only_devices_that_exist(void **unused)
{
    (void)unused;
    build(false);
    assert_int_equal(fdt_path_offset(tree, "/soc/serial@d0010000"), -FDT_ERR_NOTFOUND);
}

static void says_when_it_does_not_fit(void **unused)
{
    char cmdline[DEVICETREE_SIZE_MAX];
    struct devicetree_config config = {.ram_bytes = 1ull << 30, .cmdline = cmdline};
    struct err err = {0};
    size_t len = 77;

    (void)unused;
    memset(cmdline, 'a', sizeof(cmdline) - 1);
    cmdline[sizeof(cmdline) - 1] = '\0';
    assert_int_equal(devicetree_build(&config, tree, sizeof(tree), &len, &err), -7);
    assert_int_equal(len, 77);
    cmdline[0] = '\0';
    assert_int_equal(devicetree_build(&config, tree, 64, &len, &err), -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_the_machine),
#if defined(__x86_64__)
        cmocka_unit_test(describes_the_interrupt_controllers),
#endif
        cmocka_unit_test(names_only_devices_that_exist),
        cmocka_unit_test(says_when_it_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
