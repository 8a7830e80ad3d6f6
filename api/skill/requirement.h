/* SPDX-License-Identifier: Apache-2.0 */
/* One requirement as PEP 508 writes it: name[extras] versions; marker. Pure text. */
#ifndef SKILLVM_API_SKILL_REQUIREMENT_H
#define SKILLVM_API_SKILL_REQUIREMENT_H

#include "api/skill/marker.h"
#include "api/skill/pep440.h"
#include "api/skill/skill.h"
#include "base/err.h"

#define REQUIREMENT_NAME_MAX   128u /* of a package */
#define REQUIREMENT_TEXT_MAX   4096u
#define REQUIREMENT_EXTRAS_MAX 32u

struct requirement {
    char name[REQUIREMENT_NAME_MAX + 1]; /* in the form of PEP 503 */
    struct skill_strings extras;         /* in that form, sorted */
    char *versions;                      /* owned: clauses with commas; "": any */
    char *marker;                        /* owned, NULL: none */
    char *shown;                         /* owned: "name[extra]>=1" for messages */
    struct skill_strings
        sha256; /* a file's, of which one is wanted, in lower case; none: any */
};

/*
 * Parses one. 0; -EINVAL with what is wrong, also for one that names an address in place of a
 * version: nothing is fetched; -ENOMEM. The caller finishes *ret on success.
 */
int requirement_parse(const char *text, size_t len, struct requirement *ret, struct err *err);
void requirement_finish(struct requirement *requirement);
#define _cleanup_requirement_ __attribute__((cleanup(requirement_finish)))

/* Whether a version, which is written as text, is one that it asks for. */
bool requirement_has(const struct requirement *requirement, const struct pep440 *version,
                     const char *text);
/* Whether it names a pre-release, which then count as any other version. */
bool requirement_wants_pre(const struct requirement *requirement);

/* Whether it counts, with the extras of who requires it (NULL: none). 0 or 1. */
int requirement_applies(const struct requirement *requirement,
                        const struct marker_python *python, const struct skill_strings *extras);

#endif
