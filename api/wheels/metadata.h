/* SPDX-License-Identifier: Apache-2.0 */
/* The METADATA of a wheel: what it is, and what it requires. Pure text. */
#ifndef SKILLVM_API_WHEELS_METADATA_H
#define SKILLVM_API_WHEELS_METADATA_H

#include "api/skill/requirement.h"
#include "api/wheels/tags.h"

#define METADATA_BYTES_MAX    (256u * 1024) /* of its header, which is all that is read */
#define METADATA_REQUIRES_MAX 512u

struct metadata {
    char name[TAGS_NAME_MAX + 1]; /* in the form of PEP 503 */
    char version_text[PEP440_TEXT_MAX];
    struct pep440 version;
    char python[PEP440_TEXT_MAX];      /* Requires-Python; "": any */
    struct requirement *requires_dist; /* owned */
    size_t n_requires;
};

/* 0; -EINVAL with what is wrong; -ENOMEM. The caller finishes *ret on success. */
int metadata_parse(const char *text, size_t len, struct metadata *ret, struct err *err);
void metadata_finish(struct metadata *metadata);
#define _cleanup_metadata_ __attribute__((cleanup(metadata_finish)))

#endif
