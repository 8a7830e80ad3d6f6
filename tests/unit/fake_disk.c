/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_disk.h"

#include "base/crc32.h"
#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

void fake_disk_take(struct fake *f)
{
    struct pollfd stream = {.fd = f->vsock_fd, .events = POLLIN};
    size_t n = 0;

    if (fd_receive(f->control_fd, &f->disk, sizeof(f->disk), f->disk_fds, 2, &n) !=
            (ssize_t)sizeof(f->disk) ||
        f->disk.type != VMM_COMMAND_DISK || n != 2)
        fake_die("DISK");
    for (size_t i = 0; i < n; i++)
        if ((fcntl(f->disk_fds[i], F_GETFL) & O_ACCMODE) != O_RDONLY)
            fake_die("a disk that can be written to");
    /* The end of the skill's stream must not come before this is said. */
    if (poll(&stream, 1, 50) != 0)
        fake_die("the stream went on without the disk");
    fake_event(f, VMM_EVENT_DISK, "");
}

void fake_disk_tell(const struct fake *f, struct buf *out)
{
    uint32_t crcs[2] = {0, 0};
    uint8_t block[4096];
    ssize_t n;

    for (size_t i = 0; i < 2; i++)
        for (uint64_t at = 0; at < f->disk.disk_bytes[i]; at += (uint64_t)n) {
            n = pread(f->disk_fds[i], block, sizeof(block), (off_t)at);
            if (n <= 0)
                fake_die("the disk");
            crcs[i] = crc32_update(crcs[i], block, (size_t)n);
        }
    buf_printf(out, "\"disk\": [%llu, %llu, %u], ", (unsigned long long)f->disk.disk_bytes[0],
               (unsigned long long)f->disk.disk_bytes[1], crcs[1]);
}

void fake_disk_forget(struct fake *f)
{
    if (f->has_disk) {
        fd_close(&f->disk_fds[0]);
        fd_close(&f->disk_fds[1]);
    }
    f->has_disk = false;
}
