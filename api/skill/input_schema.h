/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON schema that a skill gives for its input: "input_schema" of the front matter, or of
 * its metadata, as a YAML map or as a string that holds JSON. It is checked for its form only;
 * what it says about values is passed on as it is.
 */
#ifndef SKILLVM_API_SKILL_INPUT_SCHEMA_H
#define SKILLVM_API_SKILL_INPUT_SCHEMA_H

#include "api/skill/yamltree.h"
#include "base/err.h"

#include <stddef.h>

#define INPUT_SCHEMA_BYTES_MAX (32u * 1024u) /* as JSON without white space */
#define INPUT_SCHEMA_DEPTH_MAX 24u

/*
 * Turns a value of the front matter into the text of an object schema, one line of JSON (the
 * caller's). Scalars without quotes are null, true, false or numbers where they look it. 0;
 * -EINVAL with what is wrong with it; -ENOMEM.
 */
int input_schema_read(const struct yamltree *value, char **ret, struct err *err);
/* The same for JSON, which must say what its properties are. */
int input_schema_read_json(const char *text, size_t len, char **ret, struct err *err);

#endif
