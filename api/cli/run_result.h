/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result JSON of an execution (design.md section 5), as far as the command line needs it.
 */
#ifndef SKILLVM_API_CLI_RUN_RESULT_H
#define SKILLVM_API_CLI_RUN_RESULT_H

#include "api/skill/skill.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum run_result_status {
    RUN_RESULT_SUCCESS,
    RUN_RESULT_FAILED,
    RUN_RESULT_TIMEOUT,
    RUN_RESULT_CANCELLED
};

struct run_result {
    enum run_result_status status;
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
int run_result_parse(const char *json, size_t len, struct run_result *ret, struct err *err);
void run_result_finish(struct run_result *result);

/*
 * What `skillvm run` exits with: 0 on success; 124 on timeout; 130 when cancelled; the skill's
 * own code on failure, 128 + the signal when one ended it, 125 when a failure has neither: then
 * it is skillvm's.
 */
int run_result_exit_status(const struct run_result *result);

#endif
