/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result JSON of an execution (design.md section 5), as far as the command line needs it.
 */
#ifndef SKILLVM_API_CLI_RESULT_H
#define SKILLVM_API_CLI_RESULT_H

#include "api/skill/skill.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum result_status { RESULT_SUCCESS, RESULT_FAILED, RESULT_TIMEOUT, RESULT_CANCELLED };

struct result {
    enum result_status status;
    bool has_exit_code;
    int exit_code;
    int signal;         /* 0: none */
    char *execution_id; /* owned */
    char *error;        /* owned, or NULL */
    char *skill_name;   /* owned, or NULL */
    size_t n_files;
    struct skill_strings warnings;
};

/* Parses a result. 0, -EPROTO with err, or -ENOMEM. The caller finishes *ret on success. */
int result_parse(const char *json, size_t len, struct result *ret, struct err *err);
void result_finish(struct result *result);

/*
 * What `skillvm run` exits with: 0 on success; 124 on timeout; 130 when cancelled; the skill's
 * own code on failure, 128 + the signal when one ended it, 125 when a failure has neither: then
 * it is skillvm's.
 */
int result_exit_status(const struct result *result);

#endif
