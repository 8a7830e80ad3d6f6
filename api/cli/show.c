/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/show.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *show_age(const char *time_text, time_t now, char out[SHOW_SIZE])
{
    struct tm tm = {0};
    long long s;

    (void)strcpy(out, "-");
    if (!time_text || !strptime(time_text, "%Y-%m-%dT%H:%M:%S", &tm))
        return out;
    s = (long long)(now - timegm(&tm));
    if (s < 0)
        s = 0;
    if (s < 100)
        (void)snprintf(out, SHOW_SIZE, "%llds", s);
    else if (s < 100 * 60)
        (void)snprintf(out, SHOW_SIZE, "%lldm", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(out, SHOW_SIZE, "%lldh", s / 3600);
    else
        (void)snprintf(out, SHOW_SIZE, "%lldd", s / 86400);
    return out;
}

const char *show_bytes(double bytes, char out[SHOW_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;

    for (; bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        bytes /= 1024;
    (void)snprintf(out, SHOW_SIZE, bytes >= 10 || unit == 0 ? "%.0f %s" : "%.1f %s", bytes,
                   units[unit]);
    return out;
}

const char *show_ms(double ms, char out[SHOW_SIZE])
{
    unsigned long long s = (unsigned long long)(ms / 1000);

    if (ms < 1000)
        (void)snprintf(out, SHOW_SIZE, "%.0f ms", ms);
    else if (s < 100)
        (void)snprintf(out, SHOW_SIZE, "%.1f s", ms / 1000);
    else if (s < 3600)
        (void)snprintf(out, SHOW_SIZE, "%llu m %llu s", s / 60, s % 60);
    else
        (void)snprintf(out, SHOW_SIZE, "%llu h %llu m", s / 3600, s / 60 % 60);
    return out;
}

void show_text(FILE *to, const char *text)
{
    size_t left = strlen(text);

    while (left) {
        uint32_t code = 0;
        size_t n = utf8_decode(text, left, &code);
        bool is_control =
            code < 0x20 ? code != '\n' && code != '\t' : code >= 0x7f && code < 0xa0;

        if (n == 0 || is_control)
            (void)fputc('?', to);
        else
            (void)fwrite(text, 1, n, to);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
}

void show_field(const char *label, int width, const char *text)
{
    printf("%-*s  ", width, label);
    show_text(stdout, text ? text : "-");
    (void)fputc('\n', stdout);
}

bool show_colours(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) == 1 && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

const char *show_colour_of(const char *word)
{
    static const struct {
        const char *word;
        const char *colour;
    } colours[] = {
        {"success", "\033[32m"}, {"active", "\033[32m"},   {"ok", "\033[32m"},
        {"failed", "\033[31m"},  {"disabled", "\033[31m"}, {"revoked", "\033[31m"},
        {"bad", "\033[31m"},     {"timeout", "\033[33m"},  {"cancelled", "\033[33m"},
        {"note", "\033[33m"},    {"running", "\033[36m"},  {"accepted", "\033[36m"},
    };

    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
        if (strcmp(colours[i].word, word) == 0)
            return colours[i].colour;
    }
    return "";
}
