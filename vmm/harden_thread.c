/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/harden.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/seccomp_numbers.h"

struct filter {
    const struct sock_filter *code;
    size_t len;
};

#include "seccomp_filters.h"

/* A copy of a filter in which the placeholders are the numbers of this process. */
static struct sock_fprog own_filter(const struct filter *filter, const struct harden_plan *plan,
                                    struct sock_filter copy[SECCOMP_LEN_MAX])
{
    const uint32_t self = (uint32_t)getpid();

    for (size_t i = 0; i < filter->len; i++) {
        uint32_t n = filter->code[i].k - SECCOMP_FD(0);

        copy[i] = filter->code[i];
        if (BPF_CLASS(copy[i].code) != BPF_JMP)
            continue;
        if (copy[i].k == SECCOMP_SELF)
            copy[i].k = self;
        else if (n < HARDEN_FDS)
            copy[i].k = (uint32_t)plan->fds[n];
    }
    return (struct sock_fprog){.len = (unsigned short)filter->len, .filter = copy};
}

int harden_thread(const struct harden_plan *plan, enum harden_thread thread, struct err *err)
{
    struct sock_filter copy[SECCOMP_LEN_MAX];
    const struct filter *filter =
        plan->verify ? &filter_verify[thread] : &filters[plan->scope][thread];
    struct sock_fprog program = own_filter(filter, plan, copy);

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0
               ? err_set_errno(err, errno, "installing the system call filter")
               : 0;
}
