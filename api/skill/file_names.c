/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/file_names.h"

#include "base/utf8.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wctype.h>

/* C0 and C1 controls, DEL, and the marks that reorder or hide text on a terminal. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

struct names_shown names_shown(const char *name)
{
    struct names_shown shown;
    char *out = shown.text;
    const size_t room = NAMES_SHOWN_MAX - 4;
    size_t len = strlen(name);
    size_t used = 0;

    for (size_t at = 0; at < len;) {
        uint32_t code;
        size_t n = utf8_decode(name + at, len - at, &code);
        bool plain = n > 0 && !is_control(code);
        size_t bytes = n > 0 ? n : 1;
        size_t needed = plain ? bytes : 4 * bytes;

        if (used + needed > room) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        for (size_t i = 0; i < bytes; i++) {
            if (plain)
                out[used++] = name[at + i];
            else
                used += (size_t)snprintf(out + used, 5, "\\x%02x", (unsigned char)name[at + i]);
        }
        at += bytes;
    }
    out[used] = '\0';
    return shown;
}

int names_refuse(struct err *err, int code, const char *name, const char *format, ...)
{
    char text[ERR_MESSAGE_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return err_set(err, code, "entry \"%s\": %s", names_shown(name).text, text);
}

static int check_bytes(const char *raw, size_t len, struct err *err)
{
    for (size_t at = 0; at < len;) {
        uint32_t code;
        size_t n = utf8_decode(raw + at, len - at, &code);
        if (n == 0)
            return names_refuse(err, EINVAL, raw, "its name is not UTF-8");
        if (is_control(code))
            return names_refuse(err, EINVAL, raw, "its name holds a control character");
        if (code == '\\')
            return names_refuse(err, EINVAL, raw, "its name holds a backslash");
        at += n;
    }
    return 0;
}

int names_clean(const char *raw, char ret_name[NAMES_PATH_MAX + 1], struct err *err)
{
    size_t len = strlen(raw);
    size_t used = 0;
    unsigned depth = 0;

    if (len == 0)
        return err_set(err, EINVAL, "an entry has an empty name");
    if (len > NAMES_PATH_MAX)
        return names_refuse(err, EINVAL, raw, "its name is over %u bytes", NAMES_PATH_MAX);
    if (raw[0] == '/')
        return names_refuse(err, EINVAL, raw, "absolute paths are refused");
    int result = check_bytes(raw, len, err);
    if (result < 0)
        return result;

    for (size_t at = 0; at < len;) {
        size_t n = strcspn(raw + at, "/");
        const char *part = raw + at;

        at += n + 1;
        if (n == 0 || (n == 1 && part[0] == '.'))
            continue;
        if (n == 2 && part[0] == '.' && part[1] == '.')
            return names_refuse(err, EINVAL, raw, "\"..\" in a path is refused");
        if (n > NAMES_COMPONENT_MAX)
            return names_refuse(err, EINVAL, raw, "a part of its name is over %u bytes",
                                NAMES_COMPONENT_MAX);
        if (++depth > NAMES_DEPTH_MAX)
            return names_refuse(err, EINVAL, raw, "folders are nested over %u levels deep",
                                NAMES_DEPTH_MAX);
        if (used > 0)
            ret_name[used++] = '/';
        memcpy(ret_name + used, part, n);
        used += n;
    }
    ret_name[used] = '\0';
    return 0;
}

static locale_t utf8_locale;

static void make_locale(void)
{
    utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

locale_t names_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_locale);
    return utf8_locale;
}

static uint32_t fold(uint32_t code)
{
    if (code < 0x80)
        return code >= 'A' && code <= 'Z' ? code + 32 : code;
    return utf8_locale ? (uint32_t)towlower_l((wint_t)code, utf8_locale) : code;
}

int names_case_compare(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);

    (void)names_locale();
    while (a_len && b_len) {
        uint32_t x, y;
        size_t a_n = utf8_decode(a, a_len, &x);
        size_t b_n = utf8_decode(b, b_len, &y);
        if (a_n == 0 || b_n == 0)
            return strcmp(a, b);
        x = fold(x);
        y = fold(y);
        if (x != y)
            return x < y ? -1 : 1;
        a += a_n;
        a_len -= a_n;
        b += b_n;
        b_len -= b_n;
    }
    return a_len ? 1 : b_len ? -1 : 0;
}

bool names_resolve(const char *folder, size_t len, const char *path,
                   char ret_path[NAMES_PATH_MAX + 1])
{
    memcpy(ret_path, folder, len);
    while (*path) {
        size_t n = strcspn(path, "/");

        if (n == 2 && path[0] == '.' && path[1] == '.') {
            if (len == 0)
                return false;
            for (len--; len > 0 && ret_path[len - 1] != '/';)
                len--;
        } else if (n > 0 && !(n == 1 && path[0] == '.')) {
            if (len + n + 2 > NAMES_PATH_MAX + 1)
                return false;
            memcpy(ret_path + len, path, n);
            ret_path[len + n] = '/';
            len += n + 1;
        }
        path += n + (path[n] == '/');
    }
    ret_path[len > 0 ? len - 1 : 0] = '\0';
    return true;
}
