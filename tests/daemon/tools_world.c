/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tools_world.h"

#include <string.h>

struct harness h;

int start(void **state)
{
    (void)state;
    harness_init(&h, "boot", "restore");
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    return 0;
}

int stop(void **state)
{
    (void)state;
    harness_finish(&h);
    return 0;
}

void push(const struct harness_file *files)
{
    harness_expect(harness_push_files(&h, files), 201, "\"digest\"");
}

struct answer call(const char *json)
{
    return harness_request(&h, "POST", "/v1/tools/call", "Content-Type: application/json\r\n",
                           json, strlen(json));
}
