/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `skillvm skill`, each as of struct verb. */
#ifndef SKILLVM_API_CLI_SKILL_VERBS_H
#define SKILLVM_API_CLI_SKILL_VERBS_H

#include "api/cli/verbs.h"
#include "api/skill/archive.h"
#include "api/skill/needs.h"
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

/*
 * Of NAME[@VERSION] the name, the caller's to free, and the version behind it, or NULL. NULL
 * without memory.
 */
char *skill_split_name(const char *text, const char **ret_version);
/* Prints what was made, as lines or as a JSON array. Returns the exit status. */
int skill_print_paths(const struct options *options, char *const *paths, int n);

/*
 * Loads a skill of this machine as the daemon would; its canonical tar goes to tar_fd unless
 * that is -1. ret_archive may be NULL. 0 with both the caller's to finish, or -errno with err.
 */
int skill_load(const char *path, int tar_fd, struct skill_archive *ret_archive,
               struct skill *ret_skill, struct err *err);
/*
 * What a skill needs, looked for in the image that it would run in of those of this
 * installation and of its operator, and the packages that it gets of its own wheels; skill gets
 * the warnings of these. 0 with both the caller's to finish, or -errno with err.
 */
int skill_needs(const struct cli *cli, int tar_fd, const struct skill_archive *archive,
                struct skill *skill, struct needs *ret, struct wheels_layer *ret_packages,
                struct err *err);

#endif
