/* SPDX-License-Identifier: Apache-2.0 */
/* Which line of a run's log tells that it wrote where it may not, and what is said of it. */
#include "tests/unit/cmocka_all.h"

#include "api/skill/denied.h"

#include <string.h>

#define FILES                                                                                  \
    ": the folders of a skill are read-only; files for the caller go to /sandbox/out/files "   \
    "(SANDBOX_FILES_DIR), others to /tmp"
#define COULD_NOT(name) "it could not write \"" name "\"" FILES

static void what_was_denied_is_told(void **state)
{
    static const struct {
        const char *log, *want; /* NULL: nothing */
    } logs[] = {
        {"Traceback (most recent call last):\n  File \"/sandbox/scripts/main.py\", line 3\n"
         "PermissionError: [Errno 13] Permission denied: 'out.txt'\n",
         COULD_NOT("out.txt")},
        {"PermissionError: [Errno 13] Permission denied: '/sandbox/skill/a b/x'\nbye\n",
         COULD_NOT("/sandbox/skill/a b/x")},
        {"OSError: [Errno 30] Read-only file system: \"it's\"", COULD_NOT("it's")},
        {"OSError: [Errno 30] Read-only file system: '/output'", COULD_NOT("/output")},
        {"tool.py: error: argument -o: can't open 'r.csv': [Errno 13] Permission denied: "
         "'r.csv'\n",
         COULD_NOT("r.csv")},
        {"PermissionError: [Errno 13] Permission denied: '/tmp/a' -> 'b'", COULD_NOT("b")},
        {"PermissionError: [Errno 13] Permission denied: '../output.json'",
         "it could not write \"../output.json\": the folders of a skill are read-only; the "
         "result goes to /sandbox/out/output.json (SANDBOX_OUTPUT)"},
        {"PermissionError: [Errno 13] Permission denied: '\x1b[31mx'", COULD_NOT("\\x1b[31mx")},
        {"Error: EACCES: permission denied, open 'out.txt'\n    at Object.openSync (node:fs)\n",
         COULD_NOT("out.txt")},
        {"  [Error: EROFS: read-only file system, mkdir '/sandbox/skill/d'] {\n",
         COULD_NOT("/sandbox/skill/d")},
        {"Error: EACCES: permission denied, copyfile '/sandbox/in/a' -> 'b'", COULD_NOT("b")},
        {"main.sh: line 2: out.txt: Permission denied\n", COULD_NOT("out.txt")},
        {"main.sh: line 2: ./out.txt: Read-only file system\n", COULD_NOT("./out.txt")},
        {"touch: cannot touch 'a/b c': Permission denied", COULD_NOT("a/b c")},
        {"mkdir: cannot create directory \xe2\x80\x98new\xe2\x80\x99: Permission denied",
         COULD_NOT("new")},
        {"sh: 1: cannot create d/out: Permission denied", COULD_NOT("d/out")},
        /* What tells of no write to a folder of the skill's. */
        {"PermissionError: [Errno 13] Permission denied: '/etc/shadow'", NULL},
        {"PermissionError: [Errno 13] Permission denied: '/tmp/closed/x'", NULL},
        {"PermissionError: [Errno 1] Operation not permitted: 'x'", NULL},
        {"PermissionError: [Errno 13] Permission denied", NULL},
        {"PermissionError: [Errno 13] Permission denied: '", NULL},
        {"PermissionError: [Errno 13] Permission denied: ''", NULL},
        {"  File \"/usr/lib/python3.11/subprocess.py\", line 1\n"
         "PermissionError: [Errno 13] Permission denied: './tool.sh'",
         NULL},
        {"Error: listen EACCES: permission denied 0.0.0.0:80", NULL},
        {"Error: EACCES: permission denied, spawn './x'", NULL},
        {"Error: EACCES: permission denied, open", NULL},
        {"main.sh: line 2: ./tool.sh: Permission denied", NULL},
        {"ls: cannot open directory '/root': Permission denied", NULL},
        {"': Permission denied", NULL},
        {": Permission denied", NULL},
        {"\xe2\x80\x99: Permission denied", NULL},
        {"", NULL},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        int found = denied_explain(logs[i].log, strlen(logs[i].log), text, sizeof(text));

        if (found != (logs[i].want != NULL) || (found && strcmp(text, logs[i].want) != 0))
            fail_msg("%s: %d %s", logs[i].log, found, found ? text : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_denied_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
