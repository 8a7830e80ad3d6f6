/* SPDX-License-Identifier: Apache-2.0 */
/* The limits on an archive: apart from what reads one, for those who only make one. */
#include "api/skill/archive.h"

const struct archive_limits archive_limits_default = {
    /* A folder that is within the other two, as the plain tar that is sent of it. */
    .archive_bytes = 288u << 20,
    .expanded_bytes = 256u << 20,
    .entries = 20000,
    .ratio = 100,
};

const struct archive_limits archive_limits_most = {
    .archive_bytes = ARCHIVE_BYTES_MOST,
    .expanded_bytes = ARCHIVE_BYTES_MOST,
    .entries = ARCHIVE_ENTRIES_MOST,
    .ratio = 100,
};
