/* SPDX-License-Identifier: Apache-2.0 */
/* What a source imports when it runs, and what a skill's entry leads to. */
#include "api/skill/imports.h"

#include "api/skill/imports_scan.h"
#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/make_archive.h"

/* "a b:c ..d:e " for `import a`, `from b import c`, `from ..d import e`. */
static int put_found(void *user, const struct imports_found *found)
{
    struct buf *out = user;

    if (found->kind != IMPORTS_MODULE || !found->runs)
        return 0;
    for (unsigned i = 0; i < found->level; i++)
        buf_printf(out, ".");
    return buf_printf(out, "%s%s%s ", found->module, found->name ? ":" : "",
                      found->name ? found->name : "");
}

static void check(const char *text, size_t len, bool is_main, const char *want)
{
    struct buf out = buf_init(1u << 16);
    int r = imports_scan(text, len, is_main, put_found, &out);
    const char *got = r == 0 ? buf_cstr(&out) : "refused";

    if (r != 0 && r != -EINVAL)
        fail_msg("%d", r);
    if (r != 0 && out.len > 0)
        fail_msg("something was told before it was refused:\n%s", text);
    if (strcmp(got, want) != 0)
        fail_msg("\"%s\" instead of \"%s\" in:\n%s", got, want, text);
    buf_finish(&out);
}

struct shape {
    const char *text;
    const char *want;
};

static void check_all(const struct shape *shapes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(shapes[i].text, strlen(shapes[i].text), true, shapes[i].want);
}

static void test_statements(void **state)
{
    static const struct shape shapes[] = {
        {"", ""},
        {"import a", "a "},
        {"import a, b.c as d, e", "a b.c e "},
        {"import a . b\t.\\\n c", "a.b.c "},
        {"import a;import b ; from c import d;\n", "a b c:d "},
        {"from a import b", "a:b "},
        {"from a.b import c as d, e", "a.b:c a.b:e "},
        {"from a import (b, # one )\n\n   c as d,\n)\nimport e", "a:b a:c e "},
        {"from a import(b)\nfrom a import*\n", "a:b a:* "},
        {"from . import a\nfrom .b import c\nfrom ... d import e\nfrom .. .f import g",
         ".:a .b:c ...d:e ...f:g "},
        {"from.import a\nfrom.a import(b)", ".:a .a:b "},
        {"import a\\\n , b\\\r\n , c", "a b c "},
        {"x = 1\rimport a\r\nimport b\n\rimport c", "a b c "},
        {"\xef\xbb\xbfimport a", "a "},
        {"\fimport a\n \f\timport b", "a b "},
        {"import caf\xc3\xa9", "caf\xc3\xa9 "},
        {"importa = froma = 1\nx.import_ = 2\n", ""},
        {"x = yield from a\nraise b from c\n", ""},
        {"x = 1.;import a; y = 0x1for_; z = 1_0.\nimport b", "a b "},
        {"import a if", "refused"},
        {"import a as", "refused"},
        {"import a.", "refused"},
        {"import", "refused"},
        {"import a,", "refused"},
        {"import (a)", "refused"},
        {"import a\nimport b c", "refused"},
        {"from a import b,", "refused"},
        {"from a import ()", "refused"},
        {"from a import (b", "refused"},
        {"from a import (b c)", "refused"},
        {"from a", "refused"},
        {"from a import *, b", "refused"},
        {"from . x", "refused"},
    };

    (void)state;
    check_all(shapes, sizeof(shapes) / sizeof(shapes[0]));
}

static void test_strings(void **state)
{
    static const struct shape shapes[] = {
        {"'import a'\nimport b", "b "},
        {"'''\nimport a\n'''\nimport b", "b "},
        {"\"\"\"\nimport a\n''' \\\"\"\" \"\" \"\n\"\"\"\nimport b", "b "},
        {"x = ''\nimport a\ny = \"\"; import b", "a b "},
        {"x = ''''''\nimport a", "a "},
        {"x = 'it\\'s'; import a", "a "},
        {"x = r'\\'; import a'\nimport b", "b "},
        {"x = rb'\\\\'; import a", "a "},
        {"x = Rb\"\"\"\nimport a\n\"\"\"; import b", "b "},
        {"x = f'{a[\"b\"]}#'; import c", "c "},
        {"x = f'''{\n\"import a\"}\nimport b'''\nimport c", "c "},
        {"x = 'a\\\nimport b'\nimport c", "c "},
        {"x = 'a\\\r\nimport b'\nimport c", "c "},
        {"x = (''\n# '\nimport_)\nimport a", "a "},
        {"# '''\nimport a\n# '''", "a "},
        {"x = '\nimport a", "refused"},
        {"import a\nx = '''\n", "refused"},
        {"import a\nx = '''\\", "refused"},
        {"import a\nx = 'b\\", "refused"},
    };

    (void)state;
    check_all(shapes, sizeof(shapes) / sizeof(shapes[0]));
}

static void test_blocks(void **state)
{
    static const struct shape shapes[] = {
        {"try:\n    import a\nexcept ImportError:\n    import b\nelse:\n    import c\n"
         "finally:\n    import d",
         "a b c d "},
        {"if x:\n  import a\nelif y: import b\nelse: import c", "a b c "},
        {"with x as y, z: import a\nfor i in range(3):\n\timport b\nwhile 0: import c",
         "a b c "},
        {"match x:\n case {'a': 1}: import a\n case [1, 2]:\n  import b", "a b "},
        {"class A:\n    import a\n    def f(self):\n        import b\n    import c", "a c "},
        {"class A(x[1:2], y={3: 4}): import a", "a "},
        {"def f():\n    import a\nimport b", "b "},
        {"def f(): import a; import b\nimport c", "c "},
        {"def f(x=(\n1), y={}) -> {1: 2}:\n  import a\n\n# c\n\n  import b\nimport c", "c "},
        {"async def f():\n    import a\nasync with x: import b", "b "},
        {"@d(lambda: 0)\ndef f():\n  class A:\n    import a\n  def g():\n    import b\n"
         "  import c\nimport d",
         "d "},
        {"if 1:\n  def f():\n    import a\n  import b\nimport c", "b c "},
        {"if 1:\n\tdef f():\n\t\timport a\n        import b\nimport c", "b c "},
        {"def f():\n  '''\nimport a\n'''\n  import b\nimport c", "c "},
        {"def f():\n  x = (\nimport_)\n  import b\nimport c", "c "},
        {"def f():\n  pass\n    # deeper\n# none\n  import b\nimport c", "c "},
        {"def f():\n    x = 1 \\\n+ 2\n    import a\nimport b", "b "},
        {"def f():\n  \\\n  import a\nimport b", "b "},
        {"if 1:\n  x = lambda: 0\n  import a", "a "},
        {"x: int = 1; import a\ny: 'import b' = lambda z: z; import c", "a c "},
        {"if (x := 1): import a\nif y := 2: import b", "a b "},
        {"print(a[1:2], {b: c}); import d", "d "},
        {"x = [\nimport_, from_]\nimport a", "a "},
    };

    (void)state;
    check_all(shapes, sizeof(shapes) / sizeof(shapes[0]));
}

static void test_conditions(void **state)
{
    static const struct shape shapes[] = {
        {"if TYPE_CHECKING:\n    import a\nelse:\n    import b\nimport c", "b c "},
        {"if typing.TYPE_CHECKING: import a\nimport b", "b "},
        {"if t.y.TYPE_CHECKING:\n  if 1:\n    import a\n  import b\nimport c", "c "},
        {"if x: pass\nelif TYPE_CHECKING: import a\nelse: import b", "b "},
        {"if not TYPE_CHECKING: import a", "a "},
        {"if TYPE_CHECKING or x: import a", "a "},
        {"if TYPE_CHECKING.x: import a", "a "},
        {"if TYPE_CHECKING(): import a", "a "},
        {"if __name__ == '__main__': import a", "a "},
    };
    static const struct shape imported[] = {
        {"if __name__ == '__main__':\n    import a\nimport b", "b "},
        {"if __name__ == \"__main__\": import a\nelse: import b", "b "},
        {"if __name__ != '__main__': import a", "a "},
        {"if __name__ == '__mane__': import a", "a "},
        {"if __name__ == '__main__' or x: import a", "a "},
        {"if __name__ == x: import a", "a "},
        {"if __name__: import a", "a "},
    };

    (void)state;
    check_all(shapes, sizeof(shapes) / sizeof(shapes[0]));
    for (size_t i = 0; i < sizeof(imported) / sizeof(imported[0]); i++)
        check(imported[i].text, strlen(imported[i].text), false, imported[i].want);
}

static void test_encodings(void **state)
{
    static const struct shape shapes[] = {
        {"# -*- coding: utf-8 -*-\nimport a", "a "},
        {"#!/usr/bin/python3\n# vim: set fileencoding=UTF_8 :\nimport a", "a "},
        {"# coding=utf-8-unix\nimport a", "a "},
        {"# coding:ascii\nimport a", "a "},
        {"# coding: utf-16\nimport a", "refused"},
        {"\n  # coding: latin-1\nimport a", "refused"},
        {"# coding: utf-7\nimport a", "refused"},
        {"# coding: utf-80\nimport a", "refused"},
        {"# coding:\n# coding\nimport a", "a "},
        {"import a\n# coding: latin-1", "a "},
        {"\n\n# coding: latin-1\nimport a", "a "},
        {"x = '# coding: latin-1'\nimport a", "a "},
        {"# caf\xe9\nimport a", "refused"},
        {"\xff\xfei\0m\0", "refused"},
    };

    (void)state;
    check_all(shapes, sizeof(shapes) / sizeof(shapes[0]));
    check("import a\0\nimport b", 18, true, "refused");
}

static void test_limits(void **state)
{
    struct buf text = buf_init(1u << 22);

    (void)state;
    check("(((", 3, true, "refused");
    check("import a\n)", 10, true, "refused");
    check("import a\\", 9, true, "refused");
    check("import a\\\n", 10, true, "refused");
    check("import a \\ \n", 12, true, "refused");
    /* 200 open brackets, as Python has it. */
    for (size_t depth = 200; depth <= 201; depth++) {
        buf_clear(&text);
        for (size_t i = 0; i < depth; i++)
            buf_append(&text, "(", 1);
        for (size_t i = 0; i < depth; i++)
            buf_append(&text, ")", 1);
        buf_printf(&text, "\nimport a");
        check(buf_cstr(&text), text.len, true, depth == 200 ? "a " : "refused");
    }
    /* Names that no file can have are left out, and only they. */
    buf_clear(&text);
    buf_printf(&text, "import a, ");
    for (size_t i = 0; i < 300; i++)
        buf_printf(&text, "x.x");
    buf_printf(&text, ", b\nfrom ");
    for (size_t i = 0; i < 300; i++)
        buf_append(&text, "y", 1);
    buf_printf(&text, " import c\nfrom d import ");
    for (size_t i = 0; i < 300; i++)
        buf_append(&text, "z", 1);
    buf_printf(&text, "\nimport e\n");
    check(buf_cstr(&text), text.len, true, "a b e ");
    buf_finish(&text);
}

/* Of a tar whose headers are gone only what is known of it finds a file. */
static void wipe_headers(int tar_fd, const struct skill_archive *archive)
{
    static const char wiped[TAR_BLOCK];

    for (size_t i = 0; i < archive->n_entries; i++)
        if (archive->entries[i].type == ARCHIVE_ENTRY_FILE)
            assert_int_equal(fd_pwrite_full(tar_fd, wiped, sizeof(wiped),
                                            archive->entries[i].offset - sizeof(wiped)),
                             0);
}

/* Makes a skill of the members and compares what its entry imports. */
static void check_skill(const struct member *members, enum proto_mode mode, const char *entry,
                        const char *want)
{
    _cleanup_fd_ int in = make_archive(TAR, members);
    _cleanup_fd_ int tar = memfd_create("tar", MFD_CLOEXEC);
    const struct skill_entry start = {mode, (char *)(uintptr_t)entry, "python"};
    struct skill_archive archive;
    struct skill_strings names;
    struct buf got = buf_init(1u << 20);
    struct err err = {0};

    if (skill_archive_ingest(in, &archive_limits_default, NULL, tar, &archive, &err) < 0)
        fail_msg("%s", err.message);
    /* There may be thousands, which nobody passes again for each file that is read. */
    wipe_headers(tar, &archive);
    if (imports_read(tar, &archive, &start, &names, &err) < 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < names.len; i++) {
        buf_printf(&got, "%s ", names.items[i]);
        assert_true(i == 0 || strcmp(names.items[i - 1], names.items[i]) < 0);
    }
    assert_string_equal(buf_cstr(&got), want);
    assert_int_equal(err.code, 0);
    buf_finish(&got);
    skill_strings_finish(&names);
    skill_archive_finish(&archive);
}

#define SKILL_MD                                                                               \
    {                                                                                          \
        .path = "SKILL.md", .content = "---\nname: x\ndescription: y\n---\n"                   \
    }

static void test_follows_its_own_modules(void **state)
{
    static const struct member flat[] = {
        SKILL_MD,
        {.path = "scripts/main.py",
         .content = "import json, helper\nfrom lib.tools import x, y\nfrom pkg import mod\n"
                    "from os import path\nfrom lone import *\nimport space.deep\nimport gone"},
        {.path = "scripts/helper.py",
         .content = "import csv, json\nimport main\nif __name__ == '__main__': import cmd\n"},
        {.path = "scripts/lib/tools.py", .content = "from . import more\nimport shutil\n"},
        {.path = "scripts/lib/more.py", .content = "from .. import outside\nimport heapq"},
        {.path = "scripts/pkg/__init__.py",
         .content = "from .inner import z\nfrom .inner.z import w\nimport pkg.mod"},
        {.path = "scripts/pkg/inner/__init__.py", .content = "from ..mod import q\nimport abc"},
        {.path = "scripts/pkg/mod.py", .content = "import xml.etree.ElementTree as ET"},
        {.path = "scripts/pkg/never.py", .content = "import never"},
        {.path = "scripts/lone.py", .content = "def f(): import never\nimport zipfile"},
        {.path = "scripts/space/deep/__init__.py", .content = "import bisect"},
        {.path = "scripts/data/json/x.txt", .content = "no module"},
        {.path = "json.py", .content = "import never"},
        {.path = NULL},
    };

    (void)state;
    check_skill(flat, PROTO_MODE_ENTRY, "scripts/main.py",
                "abc bisect csv gone heapq json os os.path shutil xml.etree.ElementTree "
                "zipfile ");
    check_skill(flat, PROTO_MODE_SCRIPT, "scripts/helper.py",
                "abc bisect cmd csv gone heapq json os os.path shutil xml.etree.ElementTree "
                "zipfile ");
    /* Without a package around it a script has no relative imports. */
    check_skill(flat, PROTO_MODE_SCRIPT, "scripts/lib/tools.py", "shutil ");
    check_skill(flat, PROTO_MODE_MODULE, "scripts.lib.tools", "heapq shutil ");
}

static void test_modules_and_what_is_in_the_way(void **state)
{
    static const struct member members[] = {
        SKILL_MD,
        {.path = "app/__init__.py", .content = "import glob"},
        {.path = "app/__main__.py",
         .content = "from . import part\nfrom ..x import y\n"
                    "if __name__ == '__main__': import cmd"},
        {.path = "app/part.py",
         .content = "import json\nif __name__ == '__main__': import pdb"},
        {.path = "both.py", .content = "import never"},
        {.path = "both/__init__.py", .content = "import abc"},
        {.path = "json/data.txt", .content = "a folder of that name is no module yet"},
        {.path = "csv.py", .content = "import both\nimport linked, broken, statistics"},
        {.path = "linked.py", .link = "csv.py"},
        {.path = "broken.py", .content = "import never\nx = '"},
        {.path = "statistics.py", .content = "import cmath"},
        {.path = NULL},
    };

    (void)state;
    check_skill(members, PROTO_MODE_MODULE, "app", "cmd glob json ");
    check_skill(members, PROTO_MODE_MODULE, "app.part", "glob json pdb ");
    check_skill(members, PROTO_MODE_SCRIPT, "csv.py", "abc cmath linked ");
    check_skill(members, PROTO_MODE_SCRIPT, "linked.py", "");
    check_skill(members, PROTO_MODE_SCRIPT, "gone.py", "");
    check_skill(members, PROTO_MODE_MODULE, "gone", "");
    check_skill(members, PROTO_MODE_SCRIPT, "broken.py", "");
}

static void test_other_languages(void **state)
{
    static const struct member members[] = {
        SKILL_MD, {.path = "main.sh", .content = "import a\n"}, {.path = NULL}};
    _cleanup_fd_ int in = make_archive(TAR, members);
    _cleanup_fd_ int tar = memfd_create("tar", MFD_CLOEXEC);
    char path[] = "main.sh";
    struct skill_entry start = {PROTO_MODE_ENTRY, path, "bash"};
    struct skill_archive archive;
    struct skill_strings names;
    struct err err = {0};

    (void)state;
    assert_int_equal(
        skill_archive_ingest(in, &archive_limits_default, NULL, tar, &archive, NULL), 0);
    assert_int_equal(imports_read(tar, &archive, &start, &names, NULL), 0);
    assert_int_equal(names.len, 0);
    /* A tar that cannot be read is an error and not an empty answer. */
    start.lang = "python";
    assert_int_equal(imports_read(-1, &archive, &start, &names, &err), -EBADF);
    assert_int_equal(err.code, EBADF);
    assert_int_equal(imports_read(tar, &archive, &start, &names, NULL), 0);
    assert_int_equal(names.len, 1);
    skill_strings_finish(&names);
    skill_archive_finish(&archive);
}

static void test_limits_of_a_skill(void **state)
{
    enum { CHAIN = IMPORTS_FILES_MAX + 10 };
    static struct member members[CHAIN + 5] = {SKILL_MD};
    static char paths[CHAIN][16], texts[CHAIN][64];
    struct buf many = buf_init(1u << 20), want = buf_init(1u << 20);
    char *large = malloc(IMPORTS_FILE_BYTES_MAX + 64);

    (void)state;
    assert_non_null(large);
    for (int i = 0; i < CHAIN; i++) {
        snprintf(paths[i], sizeof(paths[i]), "m%03d.py", i);
        snprintf(texts[i], sizeof(texts[i]), "import m%03d, e%03d", i + 1, i);
        members[i + 1] = (struct member){.path = paths[i], .content = texts[i]};
        if (i < (int)IMPORTS_FILES_MAX)
            buf_printf(&want, "e%03d ", i);
    }
    /* Names beyond the limit: the first ones stay, whatever comes first by name. */
    for (size_t i = 0; i < IMPORTS_NAMES_MAX + 50; i++)
        buf_printf(&many, "import n%04zu\n", 9999 - i);
    members[CHAIN + 1] = (struct member){.path = "many.py", .content = buf_cstr(&many)};
    memset(large, '#', IMPORTS_FILE_BYTES_MAX + 63);
    large[IMPORTS_FILE_BYTES_MAX + 63] = '\0';
    memcpy(large, "import a\n", 9);
    members[CHAIN + 2] = (struct member){.path = "large.py", .content = large};
    members[CHAIN + 3] = (struct member){.path = "main.py", .content = "import large, b"};
    check_skill(members, PROTO_MODE_SCRIPT, "m000.py", buf_cstr(&want));
    check_skill(members, PROTO_MODE_SCRIPT, "large.py", "");
    check_skill(members, PROTO_MODE_SCRIPT, "main.py", "b ");
    buf_clear(&want);
    for (size_t i = IMPORTS_NAMES_MAX; i-- > 0;)
        buf_printf(&want, "n%04zu ", 9999 - i);
    check_skill(members, PROTO_MODE_SCRIPT, "many.py", buf_cstr(&want));
    buf_finish(&many);
    buf_finish(&want);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_follows_its_own_modules),
        cmocka_unit_test(test_modules_and_what_is_in_the_way),
        cmocka_unit_test(test_other_languages),
        cmocka_unit_test(test_limits_of_a_skill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
