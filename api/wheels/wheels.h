/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packages that a skill brings as wheels: which of them it gets, and their content as one
 * layer for the guest's sys.path. Nothing of them is ever run here, and nothing is fetched.
 *
 * What is wanted is said by requirements.txt (in the skill's root and beside its entry) and by
 * the entry's block of PEP 723; a skill that has wheels and says neither wants all of them.
 * What a skill with wheels wants and does not get is an error. One without wheels may do
 * without: then it is a warning, and there is no layer.
 */
#ifndef SKILLVM_API_WHEELS_WHEELS_H
#define SKILLVM_API_WHEELS_WHEELS_H

#include "api/json/json_write.h"
#include "api/skill/archive.h"
#include "api/skill/image_manifest.h"
#include "api/skill/skill.h"

#define WHEELS_MAX       512u  /* in WHEELS_FOLDER */
#define WHEELS_HOUSE_MAX 4096u /* in a wheelhouse; what is beyond is not looked at */

/* 256 MiB, 20,000 entries, 100:1. */
extern const struct archive_limits wheels_limits_default;

struct wheels {
    int tar_fd; /* the skill's canonical tar */
    const struct skill_archive *archive;
    const struct skill *skill;
    const struct image_manifest *image;
    const char *wheelhouse;              /* a folder of wheels; "": none */
    const struct archive_limits *limits; /* of all chosen wheels together */
    const struct archive_spool *spool;   /* for what they hold; its fd is a new empty file */
    int (*temporary)(void *ctx);         /* a nameless file, or -errno */
    void *ctx;
    int layer_fd; /* gets the layer; -1: it is only judged */
};

/* What came of it. Owned. */
struct wheels_layer {
    char digest[SHA256_HEX_SIZE]; /* "": there is no layer */
    uint64_t bytes;               /* of it */
    unsigned python_minor;        /* of the Python 3 that they are for */
    char *packages; /* JSON: [{"name", "version", "from", "file"}]; NULL: nothing was wanted */
};

/*
 * 0, with sentences for a person in warnings; -EINVAL or -EFBIG with what cannot be had and
 * why; -ENOMEM; -errno. The caller finishes *ret on success.
 */
int wheels_prepare(const struct wheels *wheels, struct wheels_layer *ret,
                   struct skill_strings *warnings, struct err *err);
/* The member "packages" of what is told of a skill: what packages has, or an empty list. */
void wheels_write_packages(const char *packages, struct json_writer *w);
void wheels_layer_finish(struct wheels_layer *layer);
#define _cleanup_wheels_layer_ __attribute__((cleanup(wheels_layer_finish)))

#endif
