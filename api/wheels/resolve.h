/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses wheels for requirements: all that they require in turn, one version of each package,
 * the same choice for the same wheels. It opens no file: what is in a wheel it asks for.
 *
 * Of a package the skill's own wheels come first, then what the image has, then the
 * wheelhouse; among those the highest version, and of one version the wheel that fits best.
 */
#ifndef SKILLVM_API_WHEELS_RESOLVE_H
#define SKILLVM_API_WHEELS_RESOLVE_H

#include "api/wheels/metadata.h"
#include "api/wheels/tags.h"
#include "api/wheels/wanted.h"

#define RESOLVE_REQUIREMENTS_MAX 2048u /* at one time, with those of chosen wheels */
/* What a choice may cost, about in bytes of requirements that are read. */
#define RESOLVE_WORK_MAX (8u << 20)

enum wheel_from {
    WHEEL_OF_SKILL,
    WHEEL_OF_IMAGE, /* no wheel, and nothing is to be done for it */
    WHEEL_OF_HOUSE,
};

struct wheel {
    enum wheel_from from;
    char name[TAGS_NAME_MAX + 1];
    char version_text[PEP440_TEXT_MAX];
    struct pep440 version;
    int rank; /* of tags_rank */
    unsigned build;
    char *file;     /* owned, as a person knows it */
    char *why;      /* owned: why it cannot be taken; NULL: it can, as far as is known */
    size_t place;   /* the caller's */
    bool is_loaded; /* metadata is there */
    uint64_t work;  /* that load did beside reading requirements, as of RESOLVE_WORK_MAX */
    struct metadata metadata;
    char sha256[65]; /* "" until somebody asks */
};

struct wheel_list {
    struct wheel *items; /* owned */
    size_t n;
};

/* Adds a copy of *wheel, whose file and why are borrowed. 0 or -ENOMEM. */
int wheel_list_add(struct wheel_list *list, const struct wheel *wheel);
void wheel_list_finish(struct wheel_list *list);
#define _cleanup_wheel_list_ __attribute__((cleanup(wheel_list_finish)))

struct resolve {
    struct wheel_list *wheels; /* borrowed; the order of it changes */
    const struct wanted_list *wanted;
    struct marker_python python;
    /*
     * Fills metadata and work. 0; -EINVAL with what is wrong with the wheel, which then is not
     * taken; any other error ends it.
     */
    int (*load)(void *ctx, struct wheel *wheel, struct err *err);
    /* Fills sha256. 0 or -errno. */
    int (*digest)(void *ctx, struct wheel *wheel, struct err *err);
    void *ctx;
};

/* Chosen wheels, by name: indices in the list. Owned. */
struct resolved {
    size_t *wheels;
    size_t n;
};

/*
 * 0; -EINVAL where there is no choice, with what is missing, who requires it, and why what is
 * there does not fit; -ENOMEM; what a callback returned. The caller frees ret->wheels.
 */
int resolve_run(const struct resolve *resolve, struct resolved *ret, struct err *err);

#endif
