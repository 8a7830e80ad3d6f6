/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef err_set
#undef err_set_errno
#undef err_no_memory

__attribute__((format(printf, 3, 0))) static int set(struct err *err, int code,
                                                     const char *format, va_list args)
{
    if (err && err->code == 0) {
        err->code = code;
        (void)vsnprintf(err->message, sizeof(err->message), format, args);
    }
    return -code;
}

int err_set(struct err *err, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set(err, code, format, args);
    va_end(args);
    return -code;
}

int err_no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "out of memory");
}

int err_set_errno(struct err *err, int code, const char *format, ...)
{
    va_list args;
    size_t used;

    if (!err || err->code != 0)
        return -code;
    va_start(args, format);
    set(err, code, format, args);
    va_end(args);
    used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s", strerror(code));
    return -code;
}

void err_prefix(struct err *err, const char *format, ...)
{
    char rest[ERR_MESSAGE_MAX];
    va_list args;
    size_t used;

    if (!err || err->code == 0)
        return;
    memcpy(rest, err->message, sizeof(rest));
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s", rest);
}
