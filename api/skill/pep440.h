/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of Python's packages and what is asked of them (PEP 440). Pure text: it never looks
 * at a file.
 */
#ifndef SKILLVM_API_SKILL_PEP440_H
#define SKILLVM_API_SKILL_PEP440_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEP440_TEXT_MAX    128u /* of one version */
#define PEP440_RELEASE_MAX 16u  /* numbers of a release */
#define PEP440_LOCAL_MAX   64u
#define PEP440_CLAUSES_MAX 32u /* of one set */

struct pep440 {
    uint64_t epoch;
    uint64_t release[PEP440_RELEASE_MAX];
    size_t n_release;
    char pre; /* 'a', 'b', 'c' for a release candidate; 0: none */
    uint64_t pre_n;
    bool has_post, has_dev;
    uint64_t post_n, dev_n;
    char local[PEP440_LOCAL_MAX]; /* in lower case, parts with "."; "": none */
};

/* Parses a version in any of its spellings. 0 or -EINVAL. */
int pep440_parse(const char *text, size_t len, struct pep440 *ret);
/* <0, 0, >0 in the order of versions. */
int pep440_compare(const struct pep440 *a, const struct pep440 *b);
bool pep440_is_pre(const struct pep440 *version);

enum pep440_operator {
    PEP440_EQUAL,
    PEP440_NOT_EQUAL,
    PEP440_AT_LEAST,
    PEP440_AT_MOST,
    PEP440_LESS,
    PEP440_MORE,
    PEP440_COMPATIBLE,
    PEP440_IDENTICAL,
};

struct pep440_clause {
    enum pep440_operator op;
    bool wildcard; /* ==1.2.* */
    struct pep440 version;
    char text[PEP440_TEXT_MAX]; /* the version as it stands */
};

struct pep440_set {
    struct pep440_clause clauses[PEP440_CLAUSES_MAX];
    size_t n;
};

/* One clause, such as ">=1.0". 0 or -EINVAL. */
int pep440_parse_clause(const char *text, size_t len, struct pep440_clause *ret);
/* Clauses with commas; nothing is any version. 0; -EINVAL, also for too many. */
int pep440_parse_set(const char *text, size_t len, struct pep440_set *ret);
/* text is how the version was written, for "===". */
bool pep440_clause_has(const struct pep440_clause *clause, const struct pep440 *version,
                       const char *text);
bool pep440_set_has(const struct pep440_set *set, const struct pep440 *version,
                    const char *text);
/* Whether a clause names a pre-release, which then count as any other version. */
bool pep440_set_wants_pre(const struct pep440_set *set);

#endif
