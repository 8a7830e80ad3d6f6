/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one JavaScript source of a stranger's takes from elsewhere, found in its text: what it
 * imports by `import` and `export … from`, and by import(), require() and require.resolve() of
 * a literal; the hosts of URLs that it asks by a literal; and, where it imports child_process
 * or the like, the programs that it starts by one. A file that gives the name require to
 * something of its own, as bundles do, requires nothing. Comments, strings and regular
 * expressions name nothing. It must never run, compile or look up anything. Its time is linear,
 * its memory constant.
 */
#ifndef SKILLVM_API_SKILL_JS_SCAN_H
#define SKILLVM_API_SKILL_JS_SCAN_H

#include "api/skill/imports_scan.h"

/*
 * Calls found with IMPORTS_NODE for each import, with IMPORTS_PROGRAM or IMPORTS_COMMAND for
 * each start, in the order of the text: runs where nothing is around
 * it; guarded in a try whose catch does not end the program, and before a catch() of its own.
 * 0; what found returned, if negative, at once; -EINVAL, before any call, for what is no UTF-8,
 * or has strings, templates, comments or brackets that do not end.
 */
int js_scan(const char *text, size_t len, imports_found_fn found, void *user);

#endif
