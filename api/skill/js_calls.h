/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a JavaScript source that start a program, or ask a host, by a literal: a part of
 * js_scan.c, for one place in the text at a time.
 */
#ifndef SKILLVM_API_SKILL_JS_CALLS_H
#define SKILLVM_API_SKILL_JS_CALLS_H

#include "api/skill/imports_scan.h"
#include "api/skill/js_tokens.h"

/* Whether a module is one that starts programs: "child_process", "execa" and the like. */
bool js_calls_module(const char *module);
/*
 * With the name that may begin such a call at the current token, or, of_module, with what
 * stands behind require("child_process"): tells what it starts, with kind, line and literal
 * set, and goes on to behind that; else changes nothing.
 */
void js_calls_take(struct js_tokens *t, bool of_module,
                   void (*tell)(void *user, struct imports_found *), void *user);
/* The same of what asks the host of a URL: fetch("https://…"), axios.get(…), https.get(…). */
void js_calls_take_host(struct js_tokens *t, void (*tell)(void *user, struct imports_found *),
                        void *user);

#endif
