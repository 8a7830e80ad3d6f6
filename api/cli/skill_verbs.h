/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `skillvm skill`, each as of struct verb. */
#ifndef SKILLVM_API_CLI_SKILL_VERBS_H
#define SKILLVM_API_CLI_SKILL_VERBS_H

#include "api/cli/verbs.h"
#include "api/skill/archive.h"
#include "api/skill/image_manifest.h"
#include "api/wheels/wheels.h"

int skill_push(const struct cli *cli, const struct options *options);
int skill_list(const struct cli *cli, const struct options *options);
int skill_show(const struct cli *cli, const struct options *options);
int skill_rm(const struct cli *cli, const struct options *options);
int skill_inspect(const struct cli *cli, const struct options *options);
int skill_lint(const struct cli *cli, const struct options *options);
int skill_package(const struct cli *cli, const struct options *options);
int skill_init(const struct cli *cli, const struct options *options);
int skill_test(const struct cli *cli, const struct options *options);

/* Prints what was made, as lines or as a JSON array. Returns the exit status. */
int skill_print_paths(const struct options *options, char *const *paths, int n);

/*
 * Loads a skill of this machine as the daemon would; its canonical tar goes to tar_fd unless
 * that is -1. ret_archive may be NULL. 0 with both the caller's to finish, or -errno with err.
 */
int skill_load(const char *path, int tar_fd, struct skill_archive *ret_archive,
               struct skill *ret_skill, struct err *err);
/* What a skill finds in its image as this installation has it. 0 with *ret the caller's to
 * finish, or -errno.
 */
int skill_image(const struct skill *skill, struct image_manifest *ret, struct err *err);
/*
 * The packages that a skill in the canonical tar in tar_fd gets of its own wheels, with the
 * warnings of that, and what they bring. 0 with both the caller's to finish, or -errno.
 */
int skill_packages(int tar_fd, const struct skill_archive *archive, struct skill *skill,
                   const struct image_manifest *image, struct wheels_layer *ret_layer,
                   struct image_manifest *ret_brought, struct err *err);

#endif
