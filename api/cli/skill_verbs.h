/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `skillvm skill`, each as of struct verb. */
#ifndef SKILLVM_API_CLI_SKILL_VERBS_H
#define SKILLVM_API_CLI_SKILL_VERBS_H

#include "api/cli/verbs.h"

int skill_push(const struct cli *cli, const struct options *options);
int skill_list(const struct cli *cli, const struct options *options);
int skill_show(const struct cli *cli, const struct options *options);
int skill_rm(const struct cli *cli, const struct options *options);
int skill_lint(const struct cli *cli, const struct options *options);
int skill_package(const struct cli *cli, const struct options *options);
int skill_init(const struct cli *cli, const struct options *options);

#endif
