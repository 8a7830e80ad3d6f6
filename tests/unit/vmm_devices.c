/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of a machine as its guest meets them, without KVM: each of the table in its
 * window, the serial port only where there is a console, and nobody anywhere else.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "vmm/machine.h"

#define MAGIC     0x74726976u
#define DEVICE_ID 8u
#define SCRATCH   7u

static struct machine m;
static uint8_t ram[1 << 16];

static int start(void **unused)
{
    int disk = memfd_create("disk", MFD_CLOEXEC);
    int pair[2];

    (void)unused;
    if (disk < 0 || ftruncate(disk, 4096) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    memory_init(&m.memory, ram, sizeof(ram));
    m.kvm = kvm_init();
    m.wake_fd = -1;
    m.config.host = (struct virtio_host){.image_fd = disk, .vsock_fd = pair[0]};
    m.config.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return machine_make_devices(&m, NULL);
}

static int finish(void **unused)
{
    (void)unused;
    machine_release_devices(&m);
    assert_null(m.vsock);
    return 0;
}

static uint32_t load(uint64_t gpa, uint32_t len)
{
    uint32_t v = 0x55555555;

    machine_mmio(&m, gpa, &v, len, false);
    return v;
}

static void store(uint64_t gpa, uint8_t v)
{
    machine_mmio(&m, gpa, &v, 1, true);
}

static void each_is_in_its_window(void **unused)
{
    (void)unused;
    assert_non_null(m.vsock);
    for (size_t i = 0; i < machine_n_devices; i++) {
        assert_int_equal(load(LAYOUT_DEVICE_BASE(i), 4), MAGIC);
        assert_int_equal(load(LAYOUT_DEVICE_BASE(i) + DEVICE_ID, 4), machine_devices[i]->id);
        for (size_t other = 0; other < i; other++) {
            assert_int_not_equal(machine_devices[other]->tag, machine_devices[i]->tag);
            assert_string_not_equal(machine_devices[other]->name, machine_devices[i]->name);
        }
    }
}

static void nobody_is_elsewhere(void **unused)
{
    const uint64_t places[] = {0, LAYOUT_DEVICE_BASE(0) - 4,
                               LAYOUT_DEVICE_BASE(machine_n_devices),
                               LAYOUT_SERIAL_BASE + LAYOUT_DEVICE_SIZE, UINT64_MAX - 7};

    (void)unused;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        store(places[i], 1);
        assert_int_equal(load(places[i], 4), UINT32_MAX);
    }
}

/* Whatever was stored there before, a load of each address gives as many bytes as were asked
 * for: none is left as it was, and none behind them is written. */
static void every_address_answers(void **unused)
{
    const uint64_t end = LAYOUT_SERIAL_BASE + 2 * (uint64_t)LAYOUT_DEVICE_SIZE;

    (void)unused;
    for (uint64_t gpa = LAYOUT_DEVICE_BASE(0) - LAYOUT_DEVICE_SIZE; gpa < end; gpa++) {
        for (uint32_t len = 1; len <= 8; len *= 2) {
            uint8_t found[16], again[16], value[8];

            memset(value, (int)(gpa * 7 + len), sizeof(value));
            machine_mmio(&m, gpa, value, len, true);
            memset(found, 0xa5, sizeof(found));
            memset(again, 0x5a, sizeof(again));
            machine_mmio(&m, gpa, found, len, false);
            machine_mmio(&m, gpa, again, len, false);
            for (size_t i = 0; i < sizeof(found); i++)
                assert_int_equal(found[i] == 0xa5 && again[i] == 0x5a, i >= len);
        }
    }
    machine_renew_devices(&m, m.config.host.vsock_fd);
    each_is_in_its_window(NULL);
}

/* As a restored machine is: the daemon gives it no console. */
static void a_serial_port_needs_a_console(void **unused)
{
    (void)unused;
    store(LAYOUT_SERIAL_BASE + SCRATCH, 0x5a);
    assert_int_equal(load(LAYOUT_SERIAL_BASE + SCRATCH, 1) & 0xff, 0x5a);
    machine_renew_devices(&m, m.config.host.vsock_fd);
    assert_int_equal(load(LAYOUT_SERIAL_BASE + SCRATCH, 1) & 0xff, 0);

    fd_close(&m.config.console_fd);
    for (uint64_t offset = 0; offset < LAYOUT_DEVICE_SIZE; offset += 4) {
        store(LAYOUT_SERIAL_BASE + offset, 0x5a);
        assert_int_equal(load(LAYOUT_SERIAL_BASE + offset, 4), UINT32_MAX);
    }
}

/* What a kernel says that had a console while its snapshot was made; a reset forgets it. */
static void without_a_console_last_words_are_kept(void **unused)
{
    char told[8] = "";
    int fds[2];

    (void)unused;
    fd_close(&m.config.console_fd);
    assert_int_equal(pipe(fds), 0);
    store(LAYOUT_SERIAL_BASE, 'a');
    machine_renew_devices(&m, m.config.host.vsock_fd);
    store(LAYOUT_SERIAL_BASE, 'b');
    store(LAYOUT_SERIAL_BASE + SCRATCH, 'c');
    store(LAYOUT_SERIAL_BASE, 'd');
    machine_tell_last_words(&m, fds[1]);
    assert_int_equal(read(fds[0], told, sizeof(told)), 3);
    assert_string_equal(told, "bd\n");
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_in_its_window),
        cmocka_unit_test(nobody_is_elsewhere),
        cmocka_unit_test(every_address_answers),
        cmocka_unit_test(a_serial_port_needs_a_console),
        cmocka_unit_test(without_a_console_last_words_are_kept),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
