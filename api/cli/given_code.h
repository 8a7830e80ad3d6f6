/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that `skillvm run` is given in place of a skill: on the command line, on standard input,
 * or as a script. It goes to the daemon as text; nothing is run here.
 */
#ifndef SKILLVM_API_CLI_GIVEN_CODE_H
#define SKILLVM_API_CLI_GIVEN_CODE_H

#include "base/err.h"

struct cJSON;

/* Adds code ("-": standard input) to a request, and lang where it is not NULL. 0 or -errno. */
int run_code_add(const char *code, const char *lang, struct cJSON *request, struct err *err);
/*
 * Adds the script at path, whose language is lang, or by its name or its first line. 1 where it
 * is one, 0 where path is something else or nothing, -errno.
 */
int run_code_add_file(const char *path, const char *lang, struct cJSON *request,
                      struct err *err);

#endif
