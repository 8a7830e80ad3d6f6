/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a text is one JSON value, and where it stops being one: said before anything is sent.
 * It builds nothing, so its memory does not depend on the text.
 */
#ifndef SKILLVM_API_CLI_JSON_CHECK_H
#define SKILLVM_API_CLI_JSON_CHECK_H

#include "base/err.h"

#include <stddef.h>

#define JSON_CHECK_DEPTH_MAX 512u

/* RFC 8259 to the letter, in UTF-8. 0, or -EINVAL with what was expected, line and column. */
int json_check(const char *text, size_t len, struct err *err);

#endif
