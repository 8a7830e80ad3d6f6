/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's file stream from any bytes, in pieces of a size that the first byte chooses,
 * which also says whether it is a session's: what is kept has clean names within the limits.
 */
#include "api/skill/artifacts.h"
#include "api/skill/file_names.h"
#include "base/fd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct artifacts_limits limits = {.files = 20,
                                            .folders = 10,
                                            .names_bytes = 2000,
                                            .list_bytes = 1000,
                                            .bytes = 65536,
                                            .file_bytes = 40000,
                                            .is_tree = size > 0 && (data[0] & 0x80)};
    _cleanup_fd_ int out_fd = memfd_create("out", MFD_CLOEXEC);
    struct artifacts *a =
        artifacts_create(out_fd, memfd_create("spool", MFD_CLOEXEC), &limits, NULL);
    char name[NAMES_PATH_MAX + 1];
    uint64_t bytes = 0, names = 0;
    int result = 0;

    if (!a || size == 0) {
        artifacts_destroy(a);
        return 0;
    }
    size_t piece = (size_t)data[0] * 16 + 1;
    for (size_t at = 1; at < size && !result; at += piece)
        result = artifacts_push(a, data + at, size - at < piece ? size - at : piece, NULL);
    if (artifacts_end(a, NULL))
        abort();
    const struct artifacts_kept *kept = artifacts_kept(a);
    for (size_t i = 0; i < kept->n; i++) {
        if (names_clean(kept->list[i].path, name, NULL) ||
            strcmp(kept->list[i].path, name) != 0)
            abort();
        bytes += kept->list[i].size;
        names += strlen(name);
    }
    if (kept->n > kept->files || kept->files > limits.files || bytes > limits.bytes ||
        names > limits.list_bytes || kept->warnings.len > 22)
        abort();
    artifacts_destroy(a);
    return 0;
}
