/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces functions of the running program by others. Only while nothing else runs in it.
 */
#ifndef SKILLVM_GUEST_ZYGOTE_REDIRECT_H
#define SKILLVM_GUEST_ZYGOTE_REDIRECT_H

#include <stdint.h>

#define REDIRECT_SIZE 12

struct redirection {
    void *at;
    uint8_t code[REDIRECT_SIZE]; /* what was there before */
};

/*
 * Makes every call of the function at `from` run the one at `to` instead, which takes the same
 * arguments. What redirect_undo needs is in *ret_before, which may be NULL. 0 or -errno.
 */
int redirect(void *from, void *to, struct redirection *ret_before);
int redirect_undo(const struct redirection *before);

#endif
