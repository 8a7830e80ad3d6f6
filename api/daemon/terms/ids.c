/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/terms/ids.h"

#include "api/daemon/terms/limits.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define BYTES_MAX 32u

int ids_make_digits(size_t n, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[BYTES_MAX];

    if (n > sizeof(random) || getrandom(random, n, 0) != (ssize_t)n)
        return -EIO;
    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digits[random[i] >> 4];
        ret[2 * i + 1] = digits[random[i] & 15];
    }
    ret[2 * n] = '\0';
    /* They may be a key. */
    explicit_bzero(random, sizeof(random));
    return 0;
}

int ids_make(const char *prefix, char *ret, size_t size)
{
    size_t len = strlen(prefix);

    if (len + ID_DIGITS >= size)
        return -EIO;
    memcpy(ret, prefix, len);
    return ids_make_digits(ID_DIGITS / 2, ret + len);
}

bool ids_valid(const char *prefix, const char *id)
{
    size_t len = strlen(prefix);

    return strncmp(id, prefix, len) == 0 && strlen(id) == len + ID_DIGITS &&
           strspn(id + len, "0123456789abcdef") == ID_DIGITS;
}

bool ids_session_valid(const char *id)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._:-";

    return *id && !strchr("._:-", *id) && !id[strspn(id, allowed)] &&
           strlen(id) <= LIMIT_SESSION_ID_BYTES;
}
