/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a skill finds in a root file system that lies in a folder, for the image's manifest
 * (api/skill/image_manifest.h reads it), and the Debian packages that it says it is made of. It
 * reads the folder and never runs anything of it: an image may come from a stranger.
 *
 * packages is the list of these, which one of dpkg's in the folder is not needed for: a line
 * each, which begins with name_version_architecture.deb. It is read from its start.
 */
#ifndef SKILLVM_IMAGES_CONTENTS_H
#define SKILLVM_IMAGES_CONTENTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

/* As the daemon reads no more of a manifest. */
#define CONTENTS_LINES_MAX 8000u

/* The interpreter that `python3` is. */
struct contents_python {
    unsigned minor;        /* of Python 3; 0: there is none */
    bool is_pypy;          /* and not CPython */
    char path[PATH_MAX];   /* of the file that the name leads to, from the root */
    char prefix[PATH_MAX]; /* the folder with its lib/python3.MINOR, or lib/pypy3.MINOR */
};

void contents_find_python(int root_fd, struct contents_python *ret);

/*
 * Prints one thing a line, in no order and some perhaps twice (the builder adds "memory SIZE"
 * of its recipe):
 *
 *   language NAME VERSION   an interpreter
 *   pypy VERSION            that of Python is PyPy
 *   package NAME VERSION    a distribution of Python's, its name in the form of PEP 503
 *   standard NAME           a module or package of the standard library, its first name
 *   module NAME             one that came with a package
 *   node NAME [VERSION]     one of Node's that came with a package, also @SCOPE/NAME
 *   program NAME            one that PATH leads to
 *   warm NAME               an interpreter that waits in the snapshot
 *
 * Names that a line has no room for, or that are not ASCII, are left out. 0; -E2BIG over
 * CONTENTS_LINES_MAX; -errno.
 */
int contents_print(int root_fd, FILE *packages, FILE *out, struct err *err);
/*
 * Prints the packages that dpkg's own list names: name_version_architecture.deb, without an
 * order; nothing where there is no list. 0 or -errno.
 */
int contents_print_debian(int root_fd, FILE *out, struct err *err);

/*
 * Whether the zygote, which was built for this version of Debian's Python, fits: `python3` is
 * the one of that package.
 */
bool contents_fits(int root_fd, FILE *packages, const char *version);

#endif
