/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The import statements of one Python source that run when its module starts, found in the text
 * of a stranger's. It knows tokens, logical lines and indentation and nothing of expressions: a
 * statement runs unless it is in a function's body, in the body of `if TYPE_CHECKING:` (also
 * dotted), or, in a module that is not run itself, of `if __name__ == "__main__":`. What both
 * branches of a condition or of a try import counts. It reads UTF-8 as Python 3.11 does, and it
 * must never run, compile or look up anything. Its time is linear, its memory constant.
 */
#ifndef SKILLVM_API_SKILL_IMPORTS_SCAN_H
#define SKILLVM_API_SKILL_IMPORTS_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* A statement with a longer dotted name is left out, as no file could have that name. */
#define IMPORTS_NAME_MAX 255u

/*
 * One name of one statement; the strings are borrowed for the call.
 *   import a.b as c      level 0, module "a.b", name NULL
 *   from ..a import b    level 2, module "a", name "b"; module "" where there is none
 *   from a import *      name "*"
 */
struct imports_found {
    unsigned level;
    const char *module;
    const char *name;
};

typedef int (*imports_found_fn)(void *user, const struct imports_found *found);

/*
 * Calls found for each name in the order of the text; is_main: the module is run as __main__.
 * 0; what found returned, if negative, at once; -EINVAL, before any call, for what is no
 * UTF-8, declares another encoding, or breaks the rules of tokens and of import statements.
 */
int imports_scan(const char *text, size_t len, bool is_main, imports_found_fn found,
                 void *user);

#endif
