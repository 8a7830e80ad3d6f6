/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which packages a skill's JavaScript imports, which of them the skill has itself, and which
 * programs it starts. Its own files are followed, as Node would find them. It must never run
 * anything.
 */
#ifndef SKILLVM_API_SKILL_JS_IMPORTS_H
#define SKILLVM_API_SKILL_JS_IMPORTS_H

#include "api/skill/imports.h"

/* Whether a file's name is one of JavaScript's. */
bool js_is_source(const char *path);
/*
 * The package that Node looks for: "@a/b" of "@a/b/c.js". False for what is none: a path, one
 * of Node's own, "#name" of a package.json, an address.
 */
bool js_package_name(const char *module, char ret_name[IMPORTS_NAME_MAX + 1]);
/*
 * Tells each import of a package, and each start of a program, in the scripts and in what they
 * lead to, file by file: module is the package's name, own where a node_modules of the skill's
 * has it. As of imports_walk().
 */
int js_imports_walk(const struct imports_walk *walk);

#endif
