/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader of kernels: the whole input is the file. What loads is moved by its relocations.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "vmm/loader.h"
#include "vmm/relocations.h"

#define RAM_BYTES (2u << 20)
#define MOVE      0x12400000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t ram[RAM_BYTES];
    struct loader_kernel kernel = {0};
    struct memory memory;
    struct err err = {0};
    int fd = memfd_create("kernel", MFD_CLOEXEC);
    int r;

    if (fd < 0 || fd_write_full(fd, data, size) < 0)
        abort();
    memory_init(&memory, ram, sizeof(ram));
    r = loader_load_kernel(fd, &memory, sizeof(ram), &kernel, &err);
    if (r == 0) {
        if (!memory_contains(&memory, kernel.gpa, kernel.bytes) ||
            !memory_contains(&memory, kernel.entry_gpa, 1))
            abort();
        r = relocations_apply(fd, &kernel, &memory, MOVE, &err);
    }
    if ((r < 0) != (err.code != 0))
        abort();
    fd_close(&fd);
    return 0;
}
