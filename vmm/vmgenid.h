/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VM generation ID: 16 bytes in a page of their own that are new after every restore, so
 * that the guest's kernel reseeds its random numbers before anybody draws from them. It must
 * never give two machines the same bytes.
 */
#ifndef SKILLVM_VMM_VMGENID_H
#define SKILLVM_VMM_VMGENID_H

#include "base/err.h"
#include "vmm/memory.h"

#define VMGENID_SIZE 16u

/*
 * Draws a new ID and writes it to its place in memory. The caller raises the interrupt after a
 * restore. 0 or -errno.
 */
int vmgenid_renew(const struct memory *memory, struct err *err);

#endif
