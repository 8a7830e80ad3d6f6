/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON schemas of tools: written from a script's parser, and looked at to see whether arguments
 * can be meant for them.
 */
#ifndef SKILLVM_API_TOOLS_SCHEMA_H
#define SKILLVM_API_TOOLS_SCHEMA_H

#include "api/json/json_text.h"
#include "api/tools/parser.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define SCHEMA_BYTES_MAX     (128u * 1024u)
#define SCHEMA_ARGUMENTS_MAX 1024u /* members of the arguments that schema_check looks at */

/* The property "files" of any tool, as JSON: what an execution is given as its input files. */
#define SCHEMA_FILES                                                                           \
    "\"files\":{\"type\":\"array\",\"description\":\"Files that the script finds in "          \
    "/sandbox/in, each by its name; the content is text, base64, or the uri of a file that "   \
    "an earlier call left\",\"items\":{\"type\":\"object\",\"properties\":{"                   \
    "\"name\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"},"                           \
    "\"base64\":{\"type\":\"string\"},\"uri\":{\"type\":\"string\"}}}}"

/* What a tool takes that says nothing about it: a command line, and text or any object. */
extern const char schema_open[];

/*
 * True when a schema (JSON that was checked) lists its properties at its top, and has none of
 * this name.
 */
bool schema_has_room(const char *schema, const char *property);
/*
 * Appends such a schema with one property more: "files", what an execution is given as its
 * input files. 0, -E2BIG or -ENOMEM.
 */
int schema_append_files(struct json_slice schema, struct buf *out);

/*
 * Appends the schema of a parser to out: one object whose properties are the arguments, those
 * of all commands side by side, each saying which command it belongs to. No "oneOf" at the top,
 * which not every API takes. 0, -E2BIG or -ENOMEM.
 */
int schema_write(const struct parser *parser, struct buf *out);

/*
 * Checks arguments (JSON text that was checked) against a schema of a skill's own, as far as
 * "type", "enum", "required" and "additionalProperties": false of the top level go; the rest is
 * the skill's to check. 0; -EINVAL naming the argument; -ENOMEM.
 */
int schema_check(const char *schema, const char *arguments, size_t len, struct err *err);

#endif
