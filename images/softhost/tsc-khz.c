/* SPDX-License-Identifier: Apache-2.0 */
/* Prints by what clock an emulated host goes, for run.sh: see api/host/qemu.c. */
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    return printf("%" PRIu32 "\n", clock_tsc_khz()) < 0;
}
