/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's range of versions, on the first line, and a version of one, on the second. */
#include "api/skill/semver.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2 * SEMVER_TEXT_MAX], *end;
    int has;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    end = strchr(text, '\n');
    if (!end)
        return 0;
    *end = '\0';
    has = semver_has(text, end + 1);
    if (has != 0 && has != 1 && has != -EINVAL)
        abort();
    /* What is a version is in the range of all that are no pre-releases, and of itself. */
    if (has >= 0 && (semver_has(end + 1, end + 1) != 1 ||
                     (!strchr(end + 1, '-') && semver_has("", end + 1) != 1)))
        abort();
    return 0;
}
