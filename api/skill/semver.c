/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/semver.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* More digits than any version has, and no number that wraps. */
#define DIGITS_MAX 15u
#define PRE_MAX    64u
#define SPACE      " \t\r\n"

struct version {
    uint64_t numbers[3];
    unsigned n;        /* that are given; the others are 0 */
    char pre[PRE_MAX]; /* "beta.1", or "" */
};

/* What one range of those between "||" says of a version so far. */
struct range {
    const struct version *version;
    bool holds;
    bool names_pre; /* a pre-release of the very same version */
};

static bool take(const char **at, const char *text)
{
    const size_t n = strlen(text);

    if (strncmp(*at, text, n) != 0)
        return false;
    *at += n;
    return true;
}

static void skip_space(const char **at)
{
    *at += strspn(*at, SPACE);
}

static bool take_number(const char **at, uint64_t *ret)
{
    const size_t n = strspn(*at, "0123456789");

    *ret = 0;
    for (size_t i = 0; n <= DIGITS_MAX && i < n; i++)
        *ret = *ret * 10 + (uint64_t)((*at)[i] - '0');
    *at += n;
    return n > 0 && n <= DIGITS_MAX;
}

/* Letters, digits and hyphens, with "." between: of a pre-release, or of a build. */
static size_t words_length(const char *at)
{
    size_t n = 0;

    while (isalnum((unsigned char)at[n]) || at[n] == '-' || (at[n] == '.' && n > 0))
        n++;
    return n;
}

static bool take_suffixes(const char **at, struct version *v)
{
    size_t n;

    if (v->n == 3 && take(at, "-")) {
        n = words_length(*at);
        if (n == 0 || n >= sizeof(v->pre))
            return false;
        memcpy(v->pre, *at, n);
        v->pre[n] = '\0';
        *at += n;
    }
    if (v->n < 3 || !take(at, "+"))
        return true;
    n = words_length(*at);
    *at += n;
    return n > 0;
}

/* "1.2.3", and what leaves numbers out: "1.2", "1.x", "*". */
static bool take_version(const char **at, struct version *ret)
{
    struct version v = {.n = 0};
    bool open = false;

    (void)take(at, "v");
    for (unsigned i = 0; i < 3 && (i == 0 || take(at, ".")); i++) {
        if (take(at, "x") || take(at, "X") || take(at, "*"))
            open = true;
        else if (!take_number(at, &v.numbers[i]))
            return false;
        else if (!open)
            v.n++;
        else
            v.numbers[i] = 0;
    }
    if (!take_suffixes(at, &v))
        return false;
    *ret = v;
    return true;
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_word(const char *a, size_t a_len, const char *b, size_t b_len)
{
    const bool a_number = strspn(a, "0123456789") >= a_len,
               b_number = strspn(b, "0123456789") >= b_len;
    int r;

    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number && a_len != b_len)
        return order(a_len, b_len);
    r = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return r ? r : order(a_len, b_len);
}

/* Whoever has none comes after those that have one. */
static int compare_pre(const char *a, const char *b)
{
    if (!*a || !*b)
        return order(!*a, !*b);
    while (*a && *b) {
        const size_t a_len = strcspn(a, "."), b_len = strcspn(b, ".");
        const int r = compare_word(a, a_len, b, b_len);

        if (r)
            return r;
        a += a_len + (a[a_len] == '.');
        b += b_len + (b[b_len] == '.');
    }
    return order(*a != '\0', *b != '\0');
}

static int compare_numbers(const struct version *a, const struct version *b)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < 3; i++)
        r = order(a->numbers[i], b->numbers[i]);
    return r;
}

static int compare(const struct version *a, const struct version *b)
{
    const int r = compare_numbers(a, b);

    return r ? r : compare_pre(a->pre, b->pre);
}

/* The first version that differs from this one in the number at a place, or before it. */
static struct version next(const struct version *v, unsigned place)
{
    struct version after = {.n = 3};

    for (unsigned i = 0; i <= place; i++)
        after.numbers[i] = v->numbers[i];
    after.numbers[place]++;
    return after;
}

static void hold(struct range *r, const struct version *bound, bool holds)
{
    r->holds = r->holds && holds;
    r->names_pre = r->names_pre || (bound->pre[0] && compare_numbers(bound, r->version) == 0);
}

static void at_least(struct range *r, const struct version *v)
{
    hold(r, v, compare(r->version, v) >= 0);
}

static void below(struct range *r, const struct version *v)
{
    hold(r, v, compare(r->version, v) < 0);
}

/* All that begin with the numbers that are given. */
static void up_to(struct range *r, const struct version *v)
{
    const struct version after = v->n > 0 ? next(v, v->n - 1) : *v;

    if (v->n == 3)
        hold(r, v, compare(r->version, v) <= 0);
    else if (v->n > 0)
        below(r, &after);
}

static void above(struct range *r, const struct version *v)
{
    const struct version after = v->n > 0 ? next(v, v->n - 1) : *v;

    if (v->n == 3)
        hold(r, v, compare(r->version, v) > 0);
    else if (v->n > 0)
        at_least(r, &after);
    else
        r->holds = false;
}

/* "^": up to another number at the first place that is not 0. */
static void like(struct range *r, const struct version *v)
{
    unsigned place = 0;
    struct version after;

    while (place + 1 < v->n && v->numbers[place] == 0)
        place++;
    after = next(v, place);
    at_least(r, v);
    if (v->n > 0)
        below(r, &after);
}

/* "~": up to another second number, or first one where no more is given. */
static void near(struct range *r, const struct version *v)
{
    const struct version after = next(v, v->n > 1 ? 1 : 0);

    at_least(r, v);
    if (v->n > 0)
        below(r, &after);
}

static void exactly(struct range *r, const struct version *v)
{
    at_least(r, v);
    up_to(r, v);
}

/* Nothing is below all. */
static void less(struct range *r, const struct version *v)
{
    below(r, v);
    r->holds = r->holds && v->n > 0;
}

static bool take_comparison(const char **at, struct range *r)
{
    static const struct {
        const char *text;
        void (*hold)(struct range *r, const struct version *v);
    } operators[] = {{">=", at_least}, {"<=", up_to},  {">", above},
                     {"<", less},      {"~>", near},   {"~", near},
                     {"^", like},      {"=", exactly}, {"", exactly}};
    struct version v, end;
    size_t i = 0;

    while (!take(at, operators[i].text))
        i++;
    skip_space(at);
    if (!take_version(at, &v))
        return false;
    /* "1.2 - 1.4" */
    if (operators[i].text[0] == '\0' && take(at, " - ")) {
        skip_space(at);
        if (!take_version(at, &end))
            return false;
        at_least(r, &v);
        up_to(r, &end);
    } else {
        operators[i].hold(r, &v);
    }
    return !**at || strchr(SPACE "|", **at);
}

int semver_has(const char *range, const char *version)
{
    struct version v;
    bool has = false;

    if (strlen(range) > SEMVER_TEXT_MAX || strlen(version) > SEMVER_TEXT_MAX ||
        !take_version(&version, &v) || *version || v.n < 3)
        return -EINVAL;
    do {
        struct range one = {.version = &v, .holds = true};

        for (skip_space(&range); *range && *range != '|'; skip_space(&range))
            if (!take_comparison(&range, &one))
                return -EINVAL;
        /* A pre-release is for those who name one of that version. */
        has = has || (one.holds && (!v.pre[0] || one.names_pre));
    } while (take(&range, "||"));
    return *range ? -EINVAL : has;
}
