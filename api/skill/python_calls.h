/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a Python source that name a program, a host or a folder by a literal: a part of
 * imports_scan.c, for one place in the text at a time.
 */
#ifndef SKILLVM_API_SKILL_PYTHON_CALLS_H
#define SKILLVM_API_SKILL_PYTHON_CALLS_H

#include "api/skill/imports_scan.h"
#include "api/skill/python_tokens.h"

/*
 * With the name that may begin such a call at the current token: tells what it names, with
 * kind, line and literal set, and goes on to behind that; else changes nothing.
 */
void python_calls_take(struct python_tokens *t,
                       void (*tell)(void *user, struct imports_found *), void *user);

#endif
