/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUN decoder: whatever is accepted keeps the promises of guest-init/run.h.
 */
#include <stdlib.h>
#include <string.h>

#include "guest-init/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct run *run)
{
    if (!run->entry || !run->timeout_ms || !run->memory_bytes || !run->pids_max)
        abort();
    if (run->mode != PROTO_MODE_MODULE &&
        (run->entry[0] == '/' || strncmp(run->entry, "../", 3) == 0 ||
         strstr(run->entry, "/../")))
        abort();
    for (size_t i = 0; i < run->env.count; i++)
        if (!strchr(run->env.items[i], '=') || run->env.items[i][0] == '=')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct run run;

    if (run_decode(data, size, &run, &err) == 0)
        check(&run);
    else if (err.code == 0 || run.entry)
        abort();
    run_finish(&run);
    return 0;
}
