/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a run failed, where that was a write to a folder that a skill may not write to: its own,
 * in which it is started. Reads what the run printed, which is a stranger's; never a file.
 */
#ifndef SKILLVM_API_SKILL_DENIED_H
#define SKILLVM_API_SKILL_DENIED_H

#include <stddef.h>

/*
 * By the last line of a log, which need not be text, that tells of such a write, in the words
 * of Python, Node, shells and their programs. 1 with a sentence with the remedy in ret, which
 * has that size; else 0.
 */
int denied_explain(const char *log, size_t len, char *ret, size_t size);

#endif
