/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a skill finds in an image, as the image's build lists it in the file beside it
 * (images/build.sh): modules that Python can import, programs on the path, Python's packages,
 * Node's.
 * Without that file nothing is known, which is not the same as nothing being there.
 */
#ifndef SKILLVM_API_SKILL_IMAGE_MANIFEST_H
#define SKILLVM_API_SKILL_IMAGE_MANIFEST_H

#include "api/skill/skill.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_MANIFEST_BYTES_MAX (256u * 1024)
#define IMAGE_MANIFEST_LINES_MAX 8192u

#define IMAGE_NAME_SIZE 33u

/* How much of text is a name of an image: lower-case letters, digits and hyphens. */
size_t image_name_length(const char *text);
/* The name of an image in that of a file which is "NAME<end>". False, and "": it is none. */
bool image_name_in(const char *file, const char *end, char ret[IMAGE_NAME_SIZE]);

struct image_manifest {
    bool known;
    char name[IMAGE_NAME_SIZE];    /* of the image */
    unsigned python_minor;         /* of Python 3; 0: there is none */
    unsigned python_micro;         /* 0 also where it is not listed */
    bool is_pypy;                  /* and not CPython */
    bool python_is_alone;          /* it does not look where a skill's own packages are */
    char node[16];                 /* the version of Node, or "" */
    bool warm_python;              /* one waits in a snapshot */
    uint64_t memory_bytes;         /* that a skill has in it by default; 0: it does not say */
    struct skill_strings standard; /* first names of the standard library, sorted, as all */
    struct skill_strings modules;  /* of packages */
    struct skill_strings packages; /* "NAME VERSION", NAME in the form of PEP 503 */
    struct skill_strings programs;
    struct skill_strings node_modules; /* "NAME" or "NAME VERSION" of Node's, "@SCOPE/NAME" */
};

/* What it may say of memory. */
#define IMAGE_MEMORY_MIN (32ull << 20)
#define IMAGE_MEMORY_MAX (1024ull << 20)

/*
 * Reads the manifest of an image in the folder share. 0, also where there is none:
 * then it is not known; -EINVAL with the line for what is no manifest; -EFBIG over a limit;
 * -errno. The caller finishes *ret on success.
 */
int image_manifest_read(const char *share, const char *image, struct image_manifest *ret,
                        struct err *err);
/*
 * Adds what a recipe says that its image has: "module NAME", "program NAME" or "node NAME". 0;
 * -EINVAL for anything else; -ENOMEM.
 */
int image_manifest_bring(struct image_manifest *manifest, const char *line);
/* 0 with a copy of its own, which the caller finishes, or -ENOMEM. */
int image_manifest_copy(const struct image_manifest *manifest, struct image_manifest *ret);
void image_manifest_finish(struct image_manifest *manifest);
#define _cleanup_image_manifest_ __attribute__((cleanup(image_manifest_finish)))

/* Whether a sorted list has the text. */
bool image_manifest_has(const struct skill_strings *list, const char *text);
/* Whether it has what runs a language, "python", "bash" or "node". */
bool image_manifest_runs(const struct image_manifest *manifest, const char *lang);
/*
 * Why no wheel goes with an image, as what follows its name in a sentence; NULL: they go, or
 * nothing is known of it. They are chosen for CPython.
 */
const char *image_manifest_obstacle(const struct image_manifest *image);
/* The version of a package, its name in the form of PEP 503, or NULL. */
const char *image_manifest_package(const struct image_manifest *manifest, const char *name);
/* The version of a package of Node's, "" where it is not listed; NULL: there is no such. */
const char *image_manifest_node_module(const struct image_manifest *manifest, const char *name);

#endif
