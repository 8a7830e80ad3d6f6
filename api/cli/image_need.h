/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that are built when a run first needs them: by the command line, on the machine and
 * for the user of whoever asks, and never by a daemon, whose callers are strangers.
 */
#ifndef SKILLVM_API_CLI_IMAGE_NEED_H
#define SKILLVM_API_CLI_IMAGE_NEED_H

#include "api/cli/cli.h"
#include "base/err.h"

#include <stdbool.h>

/* What is known of a run. Borrowed; NULL where nothing is. */
struct image_need {
    const char *image; /* that the caller names */
    const char *path;  /* of the skill on this machine */
    const char *code;  /* without a skill */
    const char *lang;  /* that the caller says it is in */
    bool build;        /* the caller asks for it */
};

/*
 * Where the image that a run names, by its caller or in SKILL.md, is not here, or none here has
 * the Node that it takes or what its skill or code imports, and there is a recipe: builds it,
 * if the caller asks for that or looks at a terminal, and no software host runs, which would
 * not find it; else says by what command it is made. 0 also where nothing is to be done, which
 * the daemon then tells of, and with a server, whose images are its operator's; -EBUSY where
 * the caller asks and a software host runs; -errno.
 */
int image_need_meet(const struct cli *cli, const struct image_need *need, struct err *err);

#endif
