/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces a function of a library in the memory of this process. The interpreter calls its own
 * functions directly, so no symbol of ours could come before them.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest-init/zygote/redirect.h"

static int put_code(void *at, const uint8_t code[REDIRECT_SIZE])
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)at & ~(page - 1);
    size_t len = (uintptr_t)at + REDIRECT_SIZE - start;

    /* Still executable meanwhile: mprotect itself may be on the same page. */
    if (mprotect((void *)start, len, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
        return -errno;
    memcpy(at, code, REDIRECT_SIZE);
    return mprotect((void *)start, len, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
}

int redirect(void *from, void *to, struct redirection *ret_before)
{
    /* movabs $to, %rax; jmp *%rax: the register is free at the entry of a C function. */
    uint8_t code[REDIRECT_SIZE] = {0x48, 0xb8, [10] = 0xff, 0xe0};

    memcpy(code + 2, &to, sizeof(to));
    if (ret_before) {
        ret_before->at = from;
        memcpy(ret_before->code, from, sizeof(code));
    }
    return put_code(from, code);
}

int redirect_undo(const struct redirection *before)
{
    return put_code(before->at, before->code);
}
