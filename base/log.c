/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048u

static enum log_level max_level = LOG_LEVEL_INFO;
static int is_journal;

void log_set_level(enum log_level level)
{
    __atomic_store_n(&max_level, level, __ATOMIC_RELAXED);
}

int log_detect_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    int end = 0;

    is_journal = text && sscanf(text, "%llu:%llu%n", &device, &inode, &end) == 2 &&
                 text[end] == '\0' && fstat(STDERR_FILENO, &st) == 0 &&
                 st.st_dev == (dev_t)device && st.st_ino == (ino_t)inode;
    return is_journal;
}

/* How many bytes of a control character are at text: U+0080 to U+009F have two, of which a
   terminal takes one for what ESC and a letter are. 0: there is none. */
static size_t control_len(const char *text)
{
    const unsigned char c = (unsigned char)text[0], next = (unsigned char)text[1];

    if (c == 0xc2 && next >= 0x80 && next < 0xa0)
        return 2;
    return c < 0x20 || c == 0x7f;
}

/*
 * Escapes text into line, which has room for cap bytes: control characters, and the quotes and
 * backslashes of a value in quotes, for which mark stands.
 */
static size_t escape(char *line, size_t cap, const char *text, char mark)
{
    static const char hex[] = "0123456789abcdef";
    size_t len = 0, control = 0;
    bool is_quoted = false;

    for (; *text && len + 4 < cap; text++) {
        unsigned char c = (unsigned char)*text;

        if (*text == mark) {
            line[len++] = '"';
            is_quoted = !is_quoted;
            continue;
        }
        if (control == 0)
            control = control_len(text);
        if (control == 0) {
            if (is_quoted && (c == '"' || c == '\\'))
                line[len++] = '\\';
            line[len++] = (char)c;
            continue;
        }
        control--;
        line[len++] = '\\';
        line[len++] = 'x';
        line[len++] = hex[c >> 4];
        line[len++] = hex[c & 15];
    }
    return len;
}

/* A format with mark in place of its quotes, which tells them from those of a value. */
__attribute__((format_arg(3))) static const char *mark_quotes(char *ret, size_t cap,
                                                              const char *format, char mark)
{
    size_t len = 0;

    for (; format[len] && len + 1 < cap; len++)
        ret[len] = format[len] == '"' ? mark : format[len];
    ret[len] = '\0';
    return ret;
}

/* A control character that no value has. '\0': they have all of them. */
static char find_mark(const char *text)
{
    char mark = 1;

    while (mark < ' ' && strchr(text, mark))
        mark++;
    return mark < ' ' ? mark : '\0';
}

__attribute__((format(printf, 3, 0))) static void put(char *ret, size_t cap, const char *format,
                                                      va_list args)
{
    va_list copy;

    va_copy(copy, args);
    (void)vsnprintf(ret, cap, format, copy);
    va_end(copy);
}

/* Writes the text of a line with a mark for its own quotes, and returns that. */
__attribute__((format(printf, 3, 0))) static char put_marked(char *ret, size_t cap,
                                                             const char *format, va_list args)
{
    char marked[LINE_MAX_BYTES / 2];
    char mark;

    put(ret, cap, format, args);
    mark = find_mark(ret);
    if (mark) {
        put(ret, cap, mark_quotes(marked, sizeof(marked), format, mark), args);
        return mark;
    }
    /* Only a forger has all of them: nothing of his values is said. */
    (void)mark_quotes(ret, cap, format, 1);
    return 1;
}

void log_line(enum log_level level, const char *component, const char *format, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};
    char text[LINE_MAX_BYTES / 2];
    char line[LINE_MAX_BYTES];
    va_list args;
    size_t len;
    char mark;
    int n;

    if (level > __atomic_load_n(&max_level, __ATOMIC_RELAXED))
        return;
    va_start(args, format);
    mark = put_marked(text, sizeof(text), format, args);
    va_end(args);
    n = snprintf(line, sizeof(line), "%s%s %s ", is_journal ? priorities[level] : "",
                 names[level], component);
    if (n < 0 || (size_t)n >= sizeof(line))
        return;
    len = (size_t)n;
    len += escape(line + len, sizeof(line) - len - 1, text, mark);
    line[len++] = '\n';
    /* A log that cannot be written must not stop the work it speaks of. */
    if (write(STDERR_FILENO, line, len) < 0)
        return;
}

int log_limit_allow(struct log_limit *limit, uint64_t now_ns, uint64_t *ret_suppressed)
{
    const uint64_t second_ns = 1000000000u;
    uint64_t earned;

    if (limit->refilled_ns == 0) {
        limit->refilled_ns = now_ns;
        limit->tokens = limit->burst;
    }
    earned = (now_ns - limit->refilled_ns) / second_ns * limit->per_second;
    if (earned > 0) {
        uint64_t tokens = limit->tokens + earned;

        limit->tokens = tokens > limit->burst ? limit->burst : (uint32_t)tokens;
        limit->refilled_ns = now_ns;
    }
    if (limit->tokens == 0) {
        limit->suppressed++;
        return 0;
    }
    limit->tokens--;
    if (ret_suppressed)
        *ret_suppressed = limit->suppressed;
    limit->suppressed = 0;
    return 1;
}
