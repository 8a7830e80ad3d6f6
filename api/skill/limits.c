/* SPDX-License-Identifier: Apache-2.0 */
/* The limits on an archive: apart from what reads one, for those who only make one. */
#include "api/skill/archive.h"

const struct archive_limits archive_limits_default = {
    .archive_bytes = 100u << 20,
    .expanded_bytes = 100u << 20,
    .entries = 20000,
    .ratio = 100,
};
