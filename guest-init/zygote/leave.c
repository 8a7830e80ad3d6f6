/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last system call of the process. Everything that exit() and os._exit() do has happened
 * when the C library comes here; see end.h for why the process then stops itself.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guest-init/zygote/end.h"
#include "guest-init/zygote/finish.h"
#include "guest-init/zygote/redirect.h"

static struct zygote_end *end;
static pid_t self;

static void __attribute__((noreturn)) leave(int status)
{
    /* Not in a child, which also has this page; a child of vfork() has all of this memory. */
    if (getpid() == self) {
        end->status = (uint32_t)status & 0xff;
        __atomic_store_n(&end->is_over, 1, __ATOMIC_RELEASE);
        (void)kill(self, SIGSTOP);
    }
    for (;;)
        (void)syscall(SYS_exit_group, status);
}

static int receive(int control)
{
    char byte;
    struct iovec text = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } with;
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = with.room,
                             .msg_controllen = sizeof(with.room)};
    const struct cmsghdr *first;
    int fd;

    if (recvmsg(control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
        return -errno;
    first = CMSG_FIRSTHDR(&message);
    if (!first || first->cmsg_type != SCM_RIGHTS || first->cmsg_len != CMSG_LEN(sizeof(int)))
        return -EPROTO;
    memcpy(&fd, CMSG_DATA(first), sizeof(fd));
    return fd;
}

int leave_prepare(int control)
{
    int fd = receive(control);
    void *page;

    if (fd < 0)
        return fd == -EAGAIN ? 0 : fd;
    page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (page == MAP_FAILED)
        return -errno;
    end = page;
    self = getpid();
    return redirect((void *)(uintptr_t)_exit, (void *)(uintptr_t)leave, NULL);
}
