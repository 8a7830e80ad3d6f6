/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test of a skill expects of a result, the member "expect" of its file, and where a
 * result differs. Knows neither a daemon nor a file.
 */
#ifndef SKILLVM_API_CLI_EXPECTED_H
#define SKILLVM_API_CLI_EXPECTED_H

#include "base/err.h"

#define EXPECTED_SHOWN_MAX 20

struct cJSON;

/*
 * Whether it says what can be looked at: "output" (any value), "files" (an array of texts),
 * "status" (a text), "stdout" and "stderr" (a text each, which has to be in it), "exit_code"
 * (a number). 0, or -EINVAL with err.
 */
int expected_check(const struct cJSON *expect, struct err *err);
/*
 * A sentence for each place where a result differs, up to EXPECTED_SHOWN_MAX and one that says
 * how many more, in an array that the caller deletes; NULL without memory. Of objects in the
 * output what is expected has to be there, and more may be; all else has to be equal, numbers
 * as double precision has them. expect was checked, and may be NULL: a success.
 */
struct cJSON *expected_compare(const struct cJSON *expect, const struct cJSON *result);

#endif
