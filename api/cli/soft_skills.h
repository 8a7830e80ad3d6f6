/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which skills were registered when a software host was stopped. They lie in its disk, which
 * only the host reads; so that a name that is none needs no boot, they are written beside it,
 * with what the file system says of that disk. A host that ran since has changed it, and then
 * they count for nothing.
 */
#ifndef SKILLVM_API_CLI_SOFT_SKILLS_H
#define SKILLVM_API_CLI_SOFT_SKILLS_H

#include <stdbool.h>

#include "api/cli/cli.h"
#include "base/buf.h"
#include "base/nearest.h"

/* The most of a list that is kept. */
#define SOFT_SKILLS_MAX (1u << 20)

/* Asks the daemon for the list of the caller's own skills, as JSON, for three seconds at most.
   0 with it appended to ret, or -errno. */
int soft_skills_ask(const struct cli *cli, struct buf *ret);
/* Keeps that list (empty: there is none) for the disk as it is now. A failure keeps nothing. */
void soft_skills_keep(const struct cli *cli, const struct buf *skills);
/*
 * Whether the disk of a software host that does not run is known to hold no skill of this name.
 * hint is then the end of a message: what is near, or what to do.
 */
bool soft_skills_lack(const struct cli *cli, const char *name, char hint[NEAREST_HINT_SIZE]);

#endif
