/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one Python source of a stranger's takes from elsewhere, found in its text: the modules
 * that it imports, the programs that it starts by name, the hosts of URLs that it asks, the
 * folders that it adds to its path. It knows tokens, logical lines and indentation and nothing
 * of expressions. A statement runs when the module starts unless it is in a function's body;
 * not told is what is in the body of `if TYPE_CHECKING:` (also dotted), or, in a module that is
 * not run itself, of `if __name__ == "__main__":`. What both branches of a condition or of a
 * try import counts. It reads UTF-8 as Python 3.11 does, and it must never run, compile or look
 * up anything. Its time is linear, its memory constant.
 */
#ifndef SKILLVM_API_SKILL_IMPORTS_SCAN_H
#define SKILLVM_API_SKILL_IMPORTS_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* A statement with a longer dotted name is left out, as no file could have that name. */
#define IMPORTS_NAME_MAX 255u
/* So is a literal that is longer. */
#define IMPORTS_TEXT_MAX 4095u

enum imports_kind {
    IMPORTS_MODULE,  /* an import statement: level, module and name */
    IMPORTS_NAMED,   /* a module by a literal: importlib.import_module("a.b"), as of import */
    IMPORTS_PROGRAM, /* the first of an argument list: subprocess.run(["git", …]) */
    IMPORTS_COMMAND, /* a shell's text, as far as it is literal: os.system("ls | wc -l") */
    IMPORTS_ASKED,   /* a program that is looked for: shutil.which("git") */
    IMPORTS_FOLDER,  /* the literals of sys.path.insert(…), joined by slashes; "" for none */
    IMPORTS_HOST,    /* that a URL is for which is asked: requests.get("https://…") */
    IMPORTS_NODE,    /* of a JavaScript source (js_scan.h): "pkg/sub", "./own.js" */
};

/*
 * One name of one statement or call; the strings are borrowed for the call.
 *   import a.b as c      level 0, module "a.b", name NULL
 *   from ..a import b    level 2, module "a", name "b"; module "" where there is none
 *   from a import *      name "*"
 */
struct imports_found {
    enum imports_kind kind;
    unsigned line; /* from 1 */
    unsigned level;
    const char *module; /* of other kinds the literal */
    const char *name;
    bool runs;    /* when the module starts */
    bool guarded; /* in a try whose handlers expect that it is not there */
};

typedef int (*imports_found_fn)(void *user, const struct imports_found *found);

/*
 * Calls found for each in the order of the text; is_main: the module is run as __main__.
 * 0; what found returned, if negative, at once; -EINVAL, before any call, for what is no
 * UTF-8, declares another encoding, or breaks the rules of tokens and of import statements.
 */
int imports_scan(const char *text, size_t len, bool is_main, imports_found_fn found,
                 void *user);

#endif
