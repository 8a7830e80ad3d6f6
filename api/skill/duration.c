/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/duration.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define DURATION_MAX_MS (1000ull * 3600 * 1000)
#define SIZE_PARSE_MAX  (1ull << 50)
#define CPU_MAX_MILLIS  (1024u * 1000)

/*
 * Reads "12", "12.5" or ".5" as nano units (value * 10^9) and moves *text behind it. False
 * where there is no digit or the whole part is over 2^50. Digits after the ninth decimal are
 * dropped.
 */
static bool take_number(const char **text, unsigned __int128 *ret_nano)
{
    const char *at = *text;
    unsigned __int128 nano = 0;
    bool any = false;

    for (; *at >= '0' && *at <= '9'; at++, any = true) {
        nano = nano * 10 + (unsigned)(*at - '0');
        if (nano > SIZE_PARSE_MAX)
            return false;
    }
    nano *= 1000000000u;
    if (*at == '.') {
        uint64_t unit = 1000000000u;
        for (at++; *at >= '0' && *at <= '9'; at++, any = true) {
            unit /= 10;
            nano += (unsigned)(*at - '0') * unit;
        }
    }
    if (!any)
        return false;
    *text = at;
    *ret_nano = nano;
    return true;
}

int duration_parse(const char *text, uint64_t *ret_ms)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        /* "ms" before "m": the first name that matches is taken. */
        {"ns", 1},        {"us", 1000},         {"\xc2\xb5s", 1000},   {"\xce\xbcs", 1000},
        {"ms", 1000000u}, {"s", 1000000000ull}, {"m", 60000000000ull}, {"h", 3600000000000ull},
    };
    const size_t n_units = sizeof(units) / sizeof(units[0]);
    unsigned __int128 total_ns = 0; /* in 10^-9 ns while adding up */
    const char *at = text;

    if (*at == '+')
        at++;
    if (!*at)
        return -EINVAL;
    for (bool first = true; *at; first = false) {
        unsigned __int128 nano;
        size_t i;

        if (!take_number(&at, &nano))
            return -EINVAL;
        if (!*at && first) {
            total_ns = nano * 1000000000u;
            break;
        }
        for (i = 0; i < n_units && strncmp(at, units[i].name, strlen(units[i].name)) != 0; i++)
            continue;
        if (i == n_units)
            return -EINVAL;
        at += strlen(units[i].name);
        total_ns += nano * units[i].ns;
        if (total_ns > (unsigned __int128)DURATION_MAX_MS * 1000000u * 1000000000u)
            return -EINVAL;
    }

    const unsigned __int128 per_ms = (unsigned __int128)1000000u * 1000000000u;
    unsigned __int128 ms = (total_ns + per_ms - 1) / per_ms;
    if (ms > DURATION_MAX_MS)
        return -EINVAL;
    *ret_ms = (uint64_t)ms;
    return 0;
}

int size_parse(const char *text, uint64_t *ret_bytes)
{
    static const char letters[] = "kmgt";
    unsigned __int128 bytes;
    const char *at = text, *letter;
    unsigned base = 1024;

    if (!take_number(&at, &bytes))
        return -EINVAL;
    while (*at == ' ')
        at++;
    letter = *at ? strchr(letters, tolower((unsigned char)*at)) : NULL;
    at += letter != NULL;
    /* "kB" is decimal, "k", "Ki" and "KiB" are binary. */
    if (strcasecmp(at, "b") == 0)
        base = 1000;
    else if (*at && !(letter && (strcasecmp(at, "i") == 0 || strcasecmp(at, "ib") == 0)))
        return -EINVAL;
    for (const char *l = letters; letter && l <= letter; l++)
        bytes *= base;
    bytes /= 1000000000u;
    if (bytes > SIZE_PARSE_MAX)
        return -EINVAL;
    *ret_bytes = (uint64_t)bytes;
    return 0;
}

int cpu_parse(const char *text, uint32_t *ret_millis)
{
    unsigned __int128 nano;
    const char *at = text;

    if (!take_number(&at, &nano))
        return -EINVAL;
    unsigned __int128 millis = nano / 1000000u;
    if (strcmp(at, "m") == 0)
        millis = nano / 1000000000u;
    else if (*at)
        return -EINVAL;
    if (millis == 0 || millis > CPU_MAX_MILLIS)
        return -EINVAL;
    *ret_millis = (uint32_t)millis;
    return 0;
}
