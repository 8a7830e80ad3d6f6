/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of wheels, and whether one is for the guest: CPython on Linux, x86_64, the glibc of
 * Debian 12. Pure text.
 */
#ifndef SKILLVM_API_WHEELS_TAGS_H
#define SKILLVM_API_WHEELS_TAGS_H

#include "api/skill/pep440.h"
#include "base/err.h"

#define TAGS_NAME_MAX 128u /* of a distribution */
#define TAGS_FILE_MAX 255u /* of a wheel's file name */
#define TAGS_GLIBC    36u  /* 2.36 */
#define TAGS_WHY_SIZE 160u

struct tags_wheel {
    char name[TAGS_NAME_MAX + 1]; /* in the form of PEP 503 */
    char version_text[PEP440_TEXT_MAX];
    struct pep440 version;
    unsigned build;
    char python[TAGS_FILE_MAX + 1], abi[TAGS_FILE_MAX + 1], platform[TAGS_FILE_MAX + 1];
};

/* A name in the form of PEP 503: lower case, runs of "-", "_" and "." one "-". 0 or -EINVAL. */
int tags_normalize(const char *text, size_t len, char ret[TAGS_NAME_MAX + 1]);
/* Takes a file name apart (PEP 427). 0, or -EINVAL with what is wrong. */
int tags_parse(const char *file, struct tags_wheel *ret, struct err *err);
/*
 * How well a wheel fits CPython 3.minor: 0 is best. Negative, with the reason in why, where it
 * does not fit at all.
 */
int tags_rank(const struct tags_wheel *wheel, unsigned minor, char why[TAGS_WHY_SIZE]);

#endif
