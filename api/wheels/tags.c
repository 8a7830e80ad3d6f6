/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/tags.h"

#include "base/package_name.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 6u
/* Ranks of the interpreter and ABI; the platform counts within one. */
#define GROUP      1000
#define ABI3_OLDER 100 /* + how much older, in groups */
#define PY_NATIVE  300
#define PY_ANY     500
/* Of a platform; those before it are native. */
#define ANY_PLATFORM 100

int tags_normalize(const char *text, size_t len, char ret[TAGS_NAME_MAX + 1])
{
    return package_name_clean(text, len, ret, TAGS_NAME_MAX + 1);
}

static int refuse(const char *file, const char *what, struct err *err)
{
    return err_set(err, EINVAL, "%.200s is not the name of a wheel: %s", file, what);
}

int tags_parse(const char *file, struct tags_wheel *ret, struct err *err)
{
    char text[TAGS_FILE_MAX + 1], *at = text, *parts[PARTS_MAX];
    size_t len = strlen(file), n = 0;
    bool built;

    if (len <= 4 || len > TAGS_FILE_MAX || strcmp(file + len - 4, ".whl") != 0)
        return refuse(file, "it ends in .whl and has at most 255 bytes", err);
    memcpy(text, file, len - 4);
    text[len - 4] = '\0';
    for (char *part; n < PARTS_MAX && (part = strsep(&at, "-")) != NULL; n++)
        parts[n] = part;
    built = n == 6;
    if (at || (n != 5 && !built))
        return refuse(file, "NAME-VERSION-PYTHON-ABI-PLATFORM.whl is", err);
    if (tags_normalize(parts[0], strlen(parts[0]), ret->name) < 0)
        return refuse(file, "of its parts the first is no name of a package", err);
    /* What a version may not have in a file name stands there as "_". */
    for (char *p = parts[1]; *p; p++)
        *p = *p == '_' ? '-' : *p;
    if (pep440_parse(parts[1], strlen(parts[1]), &ret->version) < 0)
        return refuse(file, "of its parts the second is no version", err);
    if (built && !isdigit((unsigned char)parts[2][0]))
        return refuse(file, "the number of its build begins with a digit", err);
    ret->build = built ? (unsigned)strtoul(parts[2], NULL, 10) : 0;
    (void)snprintf(ret->version_text, sizeof(ret->version_text), "%s", parts[1]);
    (void)snprintf(ret->python, sizeof(ret->python), "%s", parts[n - 3]);
    (void)snprintf(ret->abi, sizeof(ret->abi), "%s", parts[n - 2]);
    (void)snprintf(ret->platform, sizeof(ret->platform), "%s", parts[n - 1]);
    return 0;
}

/* The number in a tag such as cp311 or py3: 11, or 0 for the major version alone. */
static bool take_three(const char *tag, const char *prefix, unsigned *ret_minor)
{
    size_t len = strlen(prefix);
    char *end;

    if (strncmp(tag, prefix, len) != 0 || tag[len] != '3')
        return false;
    *ret_minor = 0;
    if (!tag[len + 1])
        return true;
    if (!isdigit((unsigned char)tag[len + 1]) || strlen(tag) > len + 4)
        return false;
    *ret_minor = (unsigned)strtoul(tag + len + 1, &end, 10);
    return *end == '\0';
}

/* Whether it is for some Python 3, which all others need not be looked at for. */
static bool is_three(const char *tag)
{
    return strncmp(tag, "cp3", 3) == 0 || strncmp(tag, "py3", 3) == 0;
}

/* How well a platform fits; negative: not. */
static int platform_rank(const char *tag)
{
    static const struct {
        const char *tag;
        unsigned glibc;
    } old[] = {
        {"manylinux1_x86_64", 5}, {"manylinux2010_x86_64", 12}, {"manylinux2014_x86_64", 17}};
    unsigned glibc;
    int end = 0;

    if (strcmp(tag, "any") == 0)
        return ANY_PLATFORM;
    if (strcmp(tag, "linux_x86_64") == 0)
        return 99;
    for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
        if (strcmp(tag, old[i].tag) == 0)
            return (int)(TAGS_GLIBC - old[i].glibc);
    }
    if (sscanf(tag, "manylinux_2_%3u_x86_64%n", &glibc, &end) == 1 && end > 0 && !tag[end] &&
        glibc <= TAGS_GLIBC)
        return (int)(TAGS_GLIBC - glibc);
    return -1;
}

/* How well an interpreter and its ABI fit. */
static int python_rank(const char *python, const char *abi, bool any, unsigned minor)
{
    bool none = strcmp(abi, "none") == 0, abi3 = strcmp(abi, "abi3") == 0;
    char own[16];
    unsigned wants;

    (void)snprintf(own, sizeof(own), "cp3%u", minor);
    if (take_three(python, "cp", &wants)) {
        bool same = wants == minor;

        if (any)
            return none && (same || wants == 0) ? PY_ANY : -1;
        if (same && strcmp(abi, own) == 0)
            return 0;
        if (abi3 && wants <= minor && wants >= 2)
            return same ? 1 : ABI3_OLDER + (int)(minor - wants);
        return none && (same || wants == 0) ? 2 : -1;
    }
    if (!none || !take_three(python, "py", &wants) || wants > minor)
        return -1;
    if (wants == minor)
        return (any ? PY_ANY : PY_NATIVE) + 1;
    return (any ? PY_ANY : PY_NATIVE) + 2 + (wants == 0 ? 0 : (int)(minor - wants));
}

/* The next of a list of tags with "." between them; false after the last. */
static bool next_tag(const char **at, char ret[TAGS_FILE_MAX + 1])
{
    size_t n = strcspn(*at, ".");

    if (!**at)
        return false;
    memcpy(ret, *at, n);
    ret[n] = '\0';
    *at += n + ((*at)[n] == '.');
    return true;
}

/* What a person calls the Python of a tag. */
static void name_python(const char *tag, char *ret, size_t size)
{
    static const char *const kinds[][2] = {{"cp", "CPython"}, {"py", "Python"}, {"pp", "PyPy"}};
    const char *digits = tag + strcspn(tag, "0123456789");

    (void)snprintf(ret, size, "%.32s", tag);
    for (size_t i = 0; i < 3; i++) {
        if (strncmp(tag, kinds[i][0], 2) == 0 && digits == tag + 2 && digits[0])
            (void)snprintf(ret, size, "%s %c%s%.3s", kinds[i][1], digits[0],
                           digits[1] ? "." : "", digits + 1);
    }
}

static void explain(const struct tags_wheel *w, int best_platform, unsigned minor,
                    char why[TAGS_WHY_SIZE])
{
    char tag[TAGS_FILE_MAX + 1], python[48];
    const char *at = w->python;

    if (best_platform < 0) {
        (void)snprintf(
            why, TAGS_WHY_SIZE,
            "is for the platform %.60s; the image is Linux on x86_64 with glibc 2.%u",
            w->platform, TAGS_GLIBC);
        return;
    }
    (void)next_tag(&at, tag);
    name_python(tag, python, sizeof(python));
    (void)snprintf(why, TAGS_WHY_SIZE, "is for %s (%.40s); the image has CPython 3.%u", python,
                   w->abi, minor);
}

/* The better of two ranks. */
static int better(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* The best of a wheel's interpreters, each with each of its ABIs: a name has room for many. */
static int best_python(const struct tags_wheel *wheel, bool any, unsigned minor)
{
    char python[TAGS_FILE_MAX + 1], abi[TAGS_FILE_MAX + 1];
    int best = -1;

    for (const char *y = wheel->python; next_tag(&y, python);)
        for (const char *a = wheel->abi; is_three(python) && next_tag(&a, abi);)
            best = better(best, python_rank(python, abi, any, minor));
    return best;
}

int tags_rank(const struct tags_wheel *wheel, unsigned minor, char why[TAGS_WHY_SIZE])
{
    char platform[TAGS_FILE_MAX + 1];
    int native = -1, any = -1, best = -1;

    for (const char *p = wheel->platform; next_tag(&p, platform);) {
        int rank = platform_rank(platform);

        if (rank == ANY_PLATFORM)
            any = rank;
        else
            native = better(native, rank);
    }
    /* Of the platforms the best is enough: what there is of Python is the same for all. */
    for (int i = 0; i < 2; i++) {
        int of_platform = i == 0 ? native : any;
        int of_python = of_platform < 0 ? -1 : best_python(wheel, i == 1, minor);

        best = better(best, of_python < 0 ? -1 : of_python * GROUP + of_platform);
    }
    if (best < 0)
        explain(wheel, better(native, any), minor, why);
    return best;
}
