/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof of resets by comparison. skillvm-vmm-verify is skillvm-vmm with verify.c: it notes all
 * state that KVM can tell of a machine fresh from its restore, and after each reset compares
 * that and guest memory. In skillvm-vmm the same names do nothing (verify_none.c). It must
 * never change what it looks at.
 */
#ifndef SKILLVM_VMM_VERIFY_H
#define SKILLVM_VMM_VERIFY_H

#include <stdbool.h>

#include "base/err.h"
#include "vmm/machine.h"
#include "vmm/private_pages.h"

/* Whether anything is compared, which needs calls that a filter must allow. */
extern const bool verify_is_on;

/* A machine was restored, and nothing of it has gone on yet. 0 or -errno. */
int verify_restored(struct machine *m, struct err *err);
/*
 * A machine was put back, and nothing of it has gone on yet. 0; -EILSEQ with the first
 * difference in err; -errno.
 */
int verify_reset(struct machine *m, const struct private_pages *pages, struct err *err);

#endif
