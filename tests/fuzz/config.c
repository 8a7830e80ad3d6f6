/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from any bytes: refused with a reason, or written so that they read the same. */
#include "api/daemon/config/config_keys.h"

#include <stdlib.h>

#define TEXT_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const struct config *config)
{
    struct buf text = buf_init(TEXT_MAX);
    struct config again;
    struct err err = {0};

    if (config_defaults(&again, &err) < 0 || config_write(config, &text) < 0 ||
        config_parse(&again, (const char *)text.data, text.len, "again", &err) < 0)
        abort();
    for (const struct config_key *key = config_keys; key->name; key++) {
        if (!config_key_equal(key, config, &again))
            abort();
    }
    config_finish(&again);
    buf_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config config;
    struct err err = {0};

    if (config_defaults(&config, &err) < 0)
        abort();
    if (config_parse(&config, (const char *)data, size, "fuzz", &err) == 0)
        read_back(&config);
    else if (!err.code || !err.message[0])
        abort();
    config_finish(&config);
    return 0;
}
