/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result JSON of an execution (design.md section 5), as far as the command line needs it.
 */
#ifndef SKILLVM_API_CLI_RUN_RESULT_H
#define SKILLVM_API_CLI_RUN_RESULT_H

#include "base/err.h"

#include <stddef.h>

struct cJSON;

enum run_result_status {
    RUN_RESULT_SUCCESS,
    RUN_RESULT_FAILED,
    RUN_RESULT_TIMEOUT,
    RUN_RESULT_CANCELLED
};

struct run_result {
    enum run_result_status status;
    int exit_code; /* 0: success, or none */
    int signal;    /* 0: none */
    /* Of json, each of them NULL where there is none: */
    const char *execution_id;
    const char *error;
    const char *skill_name;
    const struct cJSON *warnings; /* texts */
    size_t n_files;
    struct cJSON *json; /* owned */
};

/* Parses a result. 0, or -EPROTO with err. The caller finishes *ret on success. */
int run_result_parse(const char *json, size_t len, struct run_result *ret, struct err *err);
void run_result_finish(struct run_result *result);

/*
 * What `skillvm run` exits with: 0 on success; 124 on timeout; 130 when cancelled; the skill's
 * own code on failure, 128 + the signal when one ended it, 125 when a failure has neither: then
 * it is skillvm's.
 */
int run_result_exit_status(const struct run_result *result);

#endif
