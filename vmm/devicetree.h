/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devicetree that describes the machine to its kernel: the only description there is (no
 * ACPI, PCI or MP table). The processor and interrupt controllers come from vmm/arch. It must
 * never name a device that machine.c does not make.
 */
#ifndef SKILLVM_VMM_DEVICETREE_H
#define SKILLVM_VMM_DEVICETREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Enough for the tree and small enough for the page it is put in. */
#define DEVICETREE_SIZE_MAX 4096u

struct devicetree_config {
    uint64_t ram_bytes;
    const char *cmdline; /* /chosen bootargs */
    uint32_t n_virtio;   /* devices on a virtio-mmio transport */
    bool serial;         /* the console port exists */
};

/*
 * Writes the flattened tree to out (cap bytes) and its length to *ret_len. 0, or -E2BIG when
 * it does not fit, -EINVAL when libfdt refuses.
 */
int devicetree_build(const struct devicetree_config *config, void *out, size_t cap,
                     size_t *ret_len, struct err *err);

/*
 * A tree that is being written, for vmm/arch. It remembers the first failure, after which
 * nothing more is written: the steps are plain calls, and devicetree_build checks once.
 */
struct devicetree {
    void *fdt;
    int error; /* libfdt's, or 0 */
};

void devicetree_begin(struct devicetree *t, const char *node);
void devicetree_end(struct devicetree *t);
void devicetree_put(struct devicetree *t, const char *name, const void *data, size_t len);
void devicetree_put_u32(struct devicetree *t, const char *name, uint32_t value);
void devicetree_put_string(struct devicetree *t, const char *name, const char *value);
/* <reg> with one (address, size) pair in 2/2 cells. */
void devicetree_put_reg(struct devicetree *t, uint64_t base, uint64_t size);

#endif
