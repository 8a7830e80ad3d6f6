/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/pep440.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

/* More digits than any version has, and no number that wraps. */
#define DIGITS_MAX 18u

struct cursor {
    const char *at;
    size_t left;
};

static char peek(const struct cursor *c)
{
    return c->left > 0 ? (char)tolower((unsigned char)*c->at) : '\0';
}

static void step(struct cursor *c, size_t n)
{
    c->at += n;
    c->left -= n;
}

static bool take_char(struct cursor *c, char wanted)
{
    if (c->left == 0 || peek(c) != wanted)
        return false;
    step(c, 1);
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t len = strlen(word);

    if (c->left < len || strncasecmp(c->at, word, len) != 0)
        return false;
    step(c, len);
    return true;
}

static bool take_number(struct cursor *c, uint64_t *ret)
{
    uint64_t value = 0;
    size_t n = 0;

    while (n < c->left && isdigit((unsigned char)c->at[n])) {
        if (n == DIGITS_MAX)
            return false;
        value = value * 10 + (uint64_t)(c->at[n++] - '0');
    }
    step(c, n);
    *ret = value;
    return n > 0;
}

static void skip_separator(struct cursor *c)
{
    if (peek(c) && strchr("-_.", peek(c)))
        step(c, 1);
}

/* A separator, a word of the list, a separator, a number, which may be left out. */
static const char *take_suffix(struct cursor *c, const char *const *words, uint64_t *ret_n)
{
    struct cursor at = *c, number;

    skip_separator(&at);
    for (; *words; words++) {
        if (!take_word(&at, *words))
            continue;
        number = at;
        skip_separator(&number);
        *ret_n = 0;
        *c = take_number(&number, ret_n) ? number : at;
        return *words;
    }
    return NULL;
}

static bool take_release(struct cursor *c, struct pep440 *v)
{
    struct cursor at;

    if (!take_number(c, &v->release[0]))
        return false;
    if (take_char(c, '!')) {
        v->epoch = v->release[0];
        if (!take_number(c, &v->release[0]))
            return false;
    }
    v->n_release = 1;
    for (at = *c; take_char(&at, '.'); *c = at) {
        uint64_t number;

        if (!take_number(&at, &number))
            return true;
        if (v->n_release == PEP440_RELEASE_MAX)
            return false;
        v->release[v->n_release++] = number;
    }
    return true;
}

static void take_pre(struct cursor *c, struct pep440 *v)
{
    static const char *const words[] = {"alpha", "beta", "preview", "pre", "rc",
                                        "a",     "b",    "c",       NULL};
    const char *word = take_suffix(c, words, &v->pre_n);

    if (word)
        v->pre = word[0] == 'a' || word[0] == 'b' ? word[0] : 'c';
}

static void take_post(struct cursor *c, struct pep440 *v)
{
    static const char *const words[] = {"post", "rev", "r", NULL};
    struct cursor at = *c;

    if (take_char(&at, '-') && take_number(&at, &v->post_n)) {
        v->has_post = true;
        *c = at;
        return;
    }
    v->post_n = 0;
    v->has_post = take_suffix(c, words, &v->post_n) != NULL;
}

static void take_dev(struct cursor *c, struct pep440 *v)
{
    static const char *const words[] = {"dev", NULL};

    v->has_dev = take_suffix(c, words, &v->dev_n) != NULL;
}

static bool take_local(struct cursor *c, struct pep440 *v)
{
    size_t n = 0;
    bool part = false;

    if (!take_char(c, '+'))
        return true;
    for (; c->left > 0 && n + 1 < sizeof(v->local); step(c, 1)) {
        char byte = peek(c);

        if (strchr("-_.", byte)) {
            if (!part)
                return false;
            part = false;
            v->local[n++] = '.';
        } else if (isalnum((unsigned char)byte)) {
            part = true;
            v->local[n++] = byte;
        } else {
            return false;
        }
    }
    return part;
}

static void trim(struct cursor *c)
{
    while (c->left > 0 && isspace((unsigned char)*c->at))
        step(c, 1);
    while (c->left > 0 && isspace((unsigned char)c->at[c->left - 1]))
        c->left--;
}

int pep440_parse(const char *text, size_t len, struct pep440 *ret)
{
    struct cursor c = {text, len};
    struct pep440 v = {0};

    trim(&c);
    if (c.left >= PEP440_TEXT_MAX)
        return -EINVAL;
    (void)take_char(&c, 'v');
    if (!take_release(&c, &v))
        return -EINVAL;
    take_pre(&c, &v);
    take_post(&c, &v);
    take_dev(&c, &v);
    if (!take_local(&c, &v) || c.left > 0)
        return -EINVAL;
    *ret = v;
    return 0;
}

bool pep440_is_pre(const struct pep440 *version)
{
    return version->pre || version->has_dev;
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static uint64_t number_at(const struct pep440 *v, size_t i)
{
    return i < v->n_release ? v->release[i] : 0;
}

static int compare_release(const struct pep440 *a, const struct pep440 *b, size_t n)
{
    int r = order(a->epoch, b->epoch);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = order(number_at(a, i), number_at(b, i));
    return r;
}

/* A development release of a final one comes before all its pre-releases. */
static int pre_rank(const struct pep440 *v)
{
    if (v->pre)
        return v->pre;
    return v->has_dev && !v->has_post ? 0 : 'z';
}

static int compare_part(const char *a, size_t a_len, const char *b, size_t b_len)
{
    bool a_number = strspn(a, "0123456789") >= a_len,
         b_number = strspn(b, "0123456789") >= b_len;
    int r;

    if (a_number != b_number)
        return a_number ? 1 : -1;
    while (a_number && a_len > 1 && *a == '0') {
        a++;
        a_len--;
    }
    while (b_number && b_len > 1 && *b == '0') {
        b++;
        b_len--;
    }
    if (a_number && a_len != b_len)
        return a_len < b_len ? -1 : 1;
    r = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return r ? r : order(a_len, b_len);
}

static int compare_local(const char *a, const char *b)
{
    while (*a && *b) {
        size_t a_len = strcspn(a, "."), b_len = strcspn(b, ".");
        int r = compare_part(a, a_len, b, b_len);

        if (r)
            return r;
        a += a_len + (a[a_len] == '.');
        b += b_len + (b[b_len] == '.');
    }
    return *a ? 1 : *b ? -1 : 0;
}

/* All but what is local. */
static int compare_public(const struct pep440 *a, const struct pep440 *b)
{
    const int orders[] = {
        compare_release(a, b, PEP440_RELEASE_MAX),
        order((uint64_t)pre_rank(a), (uint64_t)pre_rank(b)),
        order(a->pre_n, b->pre_n),
        order(a->has_post ? a->post_n + 1 : 0, b->has_post ? b->post_n + 1 : 0),
        order(a->has_dev ? a->dev_n : UINT64_MAX, b->has_dev ? b->dev_n : UINT64_MAX),
    };

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (orders[i])
            return orders[i];
    }
    return 0;
}

int pep440_compare(const struct pep440 *a, const struct pep440 *b)
{
    int r = compare_public(a, b);

    return r ? r : compare_local(a->local, b->local);
}

static bool take_operator(struct cursor *c, enum pep440_operator *ret)
{
    static const struct {
        const char *text;
        enum pep440_operator op;
    } operators[] = {{"===", PEP440_IDENTICAL}, {"==", PEP440_EQUAL},
                     {"!=", PEP440_NOT_EQUAL},  {">=", PEP440_AT_LEAST},
                     {"<=", PEP440_AT_MOST},    {"~=", PEP440_COMPATIBLE},
                     {"<", PEP440_LESS},        {">", PEP440_MORE}};

    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (take_word(c, operators[i].text)) {
            *ret = operators[i].op;
            return true;
        }
    }
    return false;
}

/* What an operator cannot be asked of. */
static bool is_sound(const struct pep440_clause *clause)
{
    const struct pep440 *v = &clause->version;
    bool equality = clause->op == PEP440_EQUAL || clause->op == PEP440_NOT_EQUAL;

    if (clause->wildcard)
        return equality && !v->has_dev && !v->local[0];
    if (v->local[0] && !equality)
        return false;
    return clause->op != PEP440_COMPATIBLE || v->n_release > 1;
}

int pep440_parse_clause(const char *text, size_t len, struct pep440_clause *ret)
{
    struct cursor c = {text, len};
    struct pep440_clause clause = {0};

    trim(&c);
    if (!take_operator(&c, &clause.op))
        return -EINVAL;
    trim(&c);
    if (c.left == 0 || c.left >= sizeof(clause.text))
        return -EINVAL;
    memcpy(clause.text, c.at, c.left);
    if (clause.op == PEP440_IDENTICAL) {
        *ret = clause;
        return memchr(c.at, ' ', c.left) ? -EINVAL : 0;
    }
    if (c.left > 2 && memcmp(c.at + c.left - 2, ".*", 2) == 0) {
        clause.wildcard = true;
        c.left -= 2;
    }
    if (pep440_parse(c.at, c.left, &clause.version) < 0 || !is_sound(&clause))
        return -EINVAL;
    *ret = clause;
    return 0;
}

int pep440_parse_set(const char *text, size_t len, struct pep440_set *ret)
{
    struct cursor c = {text, len};

    ret->n = 0;
    for (trim(&c); c.left > 0; trim(&c)) {
        const char *comma = memchr(c.at, ',', c.left);
        size_t n = comma ? (size_t)(comma - c.at) : c.left;

        if (ret->n == PEP440_CLAUSES_MAX ||
            pep440_parse_clause(c.at, n, &ret->clauses[ret->n]) < 0)
            return -EINVAL;
        ret->n++;
        step(&c, n + (comma != NULL));
    }
    return 0;
}

static bool has_prefix(const struct pep440_clause *clause, const struct pep440 *v, size_t n)
{
    const struct pep440 *want = &clause->version;

    if (compare_release(want, v, n) != 0)
        return false;
    if (!want->pre && !want->has_post)
        return true;
    /* Of a suffix all that stands before it has to be the same. */
    if (compare_release(want, v, PEP440_RELEASE_MAX) != 0 || want->pre != v->pre ||
        want->pre_n != v->pre_n)
        return false;
    return !want->has_post || (v->has_post && v->post_n == want->post_n);
}

static bool is_equal(const struct pep440_clause *clause, const struct pep440 *v)
{
    if (clause->wildcard)
        return has_prefix(clause, v, clause->version.n_release);
    return clause->version.local[0] ? pep440_compare(&clause->version, v) == 0
                                    : compare_public(&clause->version, v) == 0;
}

static bool is_less(const struct pep440 *want, const struct pep440 *v)
{
    if (pep440_compare(v, want) >= 0)
        return false;
    return pep440_is_pre(want) || !pep440_is_pre(v) ||
           compare_release(want, v, PEP440_RELEASE_MAX) != 0;
}

static bool is_more(const struct pep440 *want, const struct pep440 *v)
{
    if (pep440_compare(v, want) <= 0)
        return false;
    if (compare_release(want, v, PEP440_RELEASE_MAX) != 0)
        return true;
    return !v->local[0] && (want->has_post || !v->has_post);
}

/* Before a suffix is looked at: ~=1.4.5a4 is >=1.4.5a4, ==1.4.*. */
static bool is_compatible(const struct pep440_clause *clause, const struct pep440 *v)
{
    return compare_public(v, &clause->version) >= 0 &&
           compare_release(&clause->version, v, clause->version.n_release - 1) == 0;
}

bool pep440_clause_has(const struct pep440_clause *clause, const struct pep440 *version,
                       const char *text)
{
    switch (clause->op) {
    case PEP440_EQUAL:
        return is_equal(clause, version);
    case PEP440_NOT_EQUAL:
        return !is_equal(clause, version);
    case PEP440_AT_LEAST:
        return compare_public(version, &clause->version) >= 0;
    case PEP440_AT_MOST:
        return compare_public(version, &clause->version) <= 0;
    case PEP440_LESS:
        return is_less(&clause->version, version);
    case PEP440_MORE:
        return is_more(&clause->version, version);
    case PEP440_COMPATIBLE:
        return is_compatible(clause, version);
    case PEP440_IDENTICAL:
        return strcasecmp(clause->text, text) == 0;
    }
    return false;
}

bool pep440_set_has(const struct pep440_set *set, const struct pep440 *version,
                    const char *text)
{
    for (size_t i = 0; i < set->n; i++) {
        if (!pep440_clause_has(&set->clauses[i], version, text))
            return false;
    }
    return true;
}

bool pep440_set_wants_pre(const struct pep440_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct pep440_clause *clause = &set->clauses[i];

        if (clause->op != PEP440_NOT_EQUAL && clause->op != PEP440_LESS &&
            clause->op != PEP440_MORE && pep440_is_pre(&clause->version))
            return true;
    }
    return false;
}
