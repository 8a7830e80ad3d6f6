/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon may ask of a machine, without KVM: a reset is for a machine that was started
 * for it, of a guest that runs still, however late it ended.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "vmm/control.h"
#include "vmm/control_loop.h"
#include "vmm/machine.h"
#include "vmm/snapshot.h"

struct fixture {
    struct machine m;
    uint8_t ram[1 << 16];
    int control[2], vsock[2], disk;
    struct snapshot_origin origin;
};

static bool ends_while_it_pauses;
static unsigned resets;

void __wrap_vcpu_start(struct machine *m);
int __wrap_vcpu_pause(struct machine *m, struct err *err);
int __wrap_snapshot_reset(struct machine *m, struct snapshot_origin *origin, int vsock_fd,
                          uint64_t *ret_pages, struct err *err);

void __wrap_vcpu_start(struct machine *m)
{
    (void)m;
}

int __wrap_vcpu_pause(struct machine *m, struct err *err)
{
    (void)err;
    if (ends_while_it_pauses)
        machine_set_end(m, MACHINE_SHUTDOWN, "it shut down");
    return 0;
}

int __wrap_snapshot_reset(struct machine *m, struct snapshot_origin *origin, int vsock_fd,
                          uint64_t *ret_pages, struct err *err)
{
    (void)m;
    (void)origin;
    (void)vsock_fd;
    (void)err;
    resets++;
    *ret_pages = 7;
    return 0;
}

static int start(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    ends_while_it_pauses = false;
    resets = 0;
    f.disk = memfd_create("disk", MFD_CLOEXEC);
    f.m.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f.disk < 0 || f.m.wake_fd < 0 || ftruncate(f.disk, 4096) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f.control) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, f.vsock) < 0)
        return -1;
    memory_init(&f.m.memory, f.ram, sizeof(f.ram));
    f.m.kvm = kvm_init();
    f.m.config.host = (struct virtio_host){.image_fd = f.disk, .vsock_fd = f.vsock[0]};
    f.m.config.console_fd = -1;
    *state = &f;
    return machine_make_devices(&f.m, NULL);
}

static int finish(void **state)
{
    struct fixture *f = *state;

    machine_release_devices(&f->m);
    fd_close(&f->m.wake_fd);
    fd_close(&f->disk);
    for (int i = 0; i < 2; i++) {
        fd_close(&f->control[i]);
        fd_close(&f->vsock[i]);
    }
    return 0;
}

static void ask(struct fixture *f, uint32_t type)
{
    const struct vmm_command command = {VMM_CONTROL_VERSION, type, {0}};

    assert_int_equal(fd_send(f->control[1], &command, sizeof(command), &f->vsock[1],
                             type == VMM_COMMAND_RESET ? 1 : 0),
                     0);
}

static int serve(struct fixture *f, struct snapshot_origin *origin, struct err *err)
{
    const struct control_machine machine = {
        .machine = &f->m,
        .control_fd = f->control[0],
        .vsock_fd = f->vsock[0],
        .origin = origin,
    };

    return control_run(&machine, err);
}

static void expect_event(struct fixture *f, uint32_t type, uint64_t value)
{
    struct vmm_event event;

    assert_int_equal(recv(f->control[1], &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
    assert_int_equal(event.type, type);
    assert_int_equal(event.value, value);
}

static void one_that_runs_is_reset(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    ask(f, VMM_COMMAND_RESET);
    ask(f, VMM_COMMAND_QUIT);
    assert_int_equal(serve(f, &f->origin, &err), 0);
    expect_event(f, VMM_EVENT_RESUMED, 0);
    expect_event(f, VMM_EVENT_RESET, 7);
    assert_int_equal(resets, 1);
}

static void one_for_one_run_is_not(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    ask(f, VMM_COMMAND_RESET);
    ask(f, VMM_COMMAND_QUIT);
    assert_int_equal(serve(f, NULL, &err), -ENOTSUP);
    assert_string_equal(err.message, "a machine without --reusable cannot be reset");
    assert_int_equal(resets, 0);
}

/* The loop has looked whether it runs before it reads the command. */
static void one_that_ends_meanwhile_is_not(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    ends_while_it_pauses = true;
    ask(f, VMM_COMMAND_RESET);
    ask(f, VMM_COMMAND_QUIT);
    assert_int_equal(serve(f, &f->origin, &err), -EIO);
    assert_string_equal(err.message, "no reset of a guest that ended: it shut down");
    assert_int_equal(resets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_runs_is_reset, start, finish),
        cmocka_unit_test_setup_teardown(one_for_one_run_is_not, start, finish),
        cmocka_unit_test_setup_teardown(one_that_ends_meanwhile_is_not, start, finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
