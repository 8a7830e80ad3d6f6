/* SPDX-License-Identifier: Apache-2.0 */
/* What JavaScript names: imports and programs in sources of all shapes, names of packages. */
#include "api/skill/js_imports.h"
#include "api/skill/js_scan.h"
#include "base/buf.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

/*
 * "LINE MODULE", "LINE !PROGRAM", "LINE $COMMAND", and "?" behind what is guarded, "()" where
 * something is around it.
 */
static int put(void *user, const struct imports_found *found)
{
    struct buf *out = user;
    const char *mark = found->kind == IMPORTS_PROGRAM   ? "!"
                       : found->kind == IMPORTS_COMMAND ? "$"
                                                        : "";

    assert_true(*mark || found->kind == IMPORTS_NODE);
    assert_null(found->name);
    return buf_printf(out, "%s%u %s%s%s%s", out->len > 0 ? ", " : "", found->line, mark,
                      found->module, found->guarded ? "?" : "", found->runs ? "" : "()");
}

/* What is not looked for is told by the text alone. */
static const struct {
    const char *text, *want; /* NULL: no source */
} sources[] = {
    {"", ""},
    {"\xef\xbb\xbfimport 'a'", "1 a"},
    {"#!/usr/bin/env node\nimport 'a'", "2 a"},
    {"import a from 'a'; import {b, c as d} from \"b\"\nimport*as e from'e'", "1 a, 1 b, 2 e"},
    {"import a, {\n  b\n} from 'a'\n", "3 a"},
    {"import a, * as b from 'a' with {type: 'json'}", "1 a"},
    {"import from from 'a'", "1 a"},
    {"import {'a b' as c} from 'a'", "1 a"},
    {"export {a, b as c} from 'a'\nexport * as d from 'b'\nexport {}\nimport 'c'",
     "1 a, 2 b, 4 c"},
    {"export {a}\nimport b from 'b'\nexport default from\n'c'", "2 b"},
    {"export const a = require('a')", "1 a"},
    {"x = import ( /* a */ 'a', {})", "1 a"},
    {"function f() { import a from 'a' }", ""},
    {"if (x) { require('a'); import('b') }", "1 a(), 1 b()"},
    {"f(require('a'))", "1 a()"},
    {"require.resolve('a'); require.cache['b']; require.resolve.paths('c')", "1 a"},
    {"module.require('a'); a?.require('b'); [...require('c')]", "1 c()"},
    {"require\n(\n'a'\n)", "3 a"},
    {"require('a'.b)\nrequire('a\\x62')\nrequire(''), require(`a${b}`)", ""},
    /* Text. */
    {"'require(\\'a\\')'; \"\\\\\"; require('b')", "1 b"},
    {"'a\\\nb'; 'c\\\r\nd'; require('b')", "3 b"},
    {"/* '\n */ require('a') // require('b')\nrequire('c')", "2 a, 3 c"},
    {"`\\`${`}`}${{a: 1}.a}` + require('a')", "1 a"},
    {"`${function () { return {b: require('a')} }()}`", "1 a()"},
    /* Divisions and regular expressions. */
    {"a = b / require('a') / c", "1 a"},
    {"a = b\n/ require('a') /\nc", "2 a"},
    {"a = /'/.test(b); require('a')", "1 a"},
    {"a = /[/'\\]]/g; require('a')", "1 a"},
    {"if (a) /'/.test(b); require('a')", "1 a"},
    {"a = (b) / 2 / require('a')", "1 a"},
    {"a = [1] / 2 / require('a')", "1 a"},
    {"return /'/; typeof /`/; a.return / require('a') / 2", "1 a"},
    {"function f() {} /'/.test(a); require('a')", "1 a"},
    {"x = {a: 1} / require('a') / 2", "1 a"},
    {"x = a => /'/; b = c ? /'/ : /`/; require('a')", "1 a"},
    {"a++ / require('a') / b--", "1 a"},
    {"x = 1 / require('a') / .5; y = a?.5/2:/'/; require('b')", "1 a, 1 b"},
    {"for await (const a of b) /'/.test(a); require('a')", "1 a"},
    {"x = `a` / require('a') / 'b' / 2", "1 a"},
    {"x = /[\nrequire('a')", NULL},
    {"x = / [\n; require('a')", NULL},
    /* Names. */
    {"a.import('b'); ({import: 'c', require: 'd'}); class A { #import() {} }", ""},
    {"required('a'); $require('b'); require\xc2\xa0('c'); r\xc3\xa9quire('d')", "1 c"},
    {"function require(a) {}\nrequire('a'); import('b')", "2 b"},
    {"define(function (require, exports) { require('a') })", ""},
    {"function* f(a, b) { require('a') }", "1 a()"},
    /* What is expected. */
    {"try { require('a') } catch {}\nrequire('b')", "1 a?(), 2 b"},
    {"try { require('a') } catch { require('b') } finally { require('c') } require('d')",
     "1 a?(), 1 b?(), 1 c?(), 1 d"},
    {"try { try { require('a') } catch (e) { throw e } } catch ({message}) { }", "1 a?()"},
    {"try { try { require('a') } catch {} require('b') } catch (e) { throw e }",
     "1 a?(), 1 b()"},
    {"try { require('a') } catch (e) { f(() => { throw e }) }", "1 a?()"},
    {"try { try { try { try { require('a') } catch {} } catch (e) { throw e } } catch (e) "
     "{ throw e } } catch (e) { throw e }",
     "1 a?()"},
    /* As many as are looked through. */
    {"try { try { try { try { try { require('a') } catch {} } catch (e) { throw e } } "
     "catch (e) { throw e } } catch (e) { throw e } } catch (e) { throw e }",
     "1 a()"},
    {"try { require('a') } catch (e) { if (x) process.exit(1); else throw e }", "1 a?()"},
    {"try { require('a') } catch (e) {\n  f()\n  throw e }", "1 a()"},
    {"try { require('a') } catch (e) { process.abort() }", "1 a()"},
    /* The block of its own, and no later one. */
    {"try { require('a') } catch (e = (1), f) { f() }", "1 a?()"},
    {"try { require('a') } catch; { f() }", "1 a()"},
    {"x.try; require('a'); ({try: 1}); require('b')", "1 a, 1 b"},
    {"import('a').catch(f); import('b').then(f)", "1 a?, 1 b"},
    /* What is started, in files that import what starts programs. */
    {"require('child_process').exec('a b')", "1 child_process, 1 $a b"},
    {"require('child_process')\n  .execFileSync('a', ['b'])", "1 child_process, 2 !a"},
    {"const cp = require('node:child_process')\ncp.exec('a | b')\ncp?.spawn('c')",
     "1 node:child_process, 2 $a | b, 3 !c"},
    {"import {exec, spawnSync} from 'child_process'\nexec('a b', f); x(spawnSync('c', []))",
     "1 child_process, 2 $a b, 2 !c()"},
    {"execSync('a'); import 'child_process'", "1 $a, 1 child_process"},
    {"import {execa} from 'execa'; await execa('a', ['b'])", "1 execa, 1 !a"},
    {"import {execaCommand as c} from 'execa'; other.execSync('a b')", "1 execa, 1 $a b"},
    {"require('cross-spawn'); spawn('a')", "1 cross-spawn, 1 !a"},
    {"require('shelljs'); shell.exec('a b')", "1 shelljs, 1 $a b"},
    {"require('child_process'); execSync(`a b${c} d`); execSync(`a b ${c}`); exec(`${c} a`)",
     "1 child_process, 1 $a , 1 $a b "},
    {"require('child_process'); exec('a b' + c); exec('a b c\\n'); exec(a, 'b')",
     "1 child_process, 1 $a , 1 $a b "},
    {"require('child_process'); spawn('a' + b); spawn('\\x61'); spawn(`a`); spawn('')",
     "1 child_process, 1 !a"},
    {"require('child_process'); try { execSync('a') } catch {}", "1 child_process, 1 $a?()"},
    {"require('child_process'); /a/.exec('b'); db.exec('CREATE x'); x.cp.exec('c')",
     "1 child_process"},
    {"require('child_process').cache.exec('a')", "1 child_process"},
    {"require('fs').exec('a'); exec('b'); cp.spawn('c')", "1 fs"},
    {"require('child_process'); function exec(a) {} ({spawn: 'b'}); exec; spawn\n('c')",
     "1 child_process, 2 !c"},
    /* What is no source. */
    {"require('a'); 'b", NULL},
    {"require('a'); `b", NULL},
    {"require('a'); /* b", NULL},
    {"require('a'); (b", NULL},
    {"require('a'); (b]", NULL},
    {"require('a'); b }", NULL},
    {"require('a'); `${b`", NULL},
    {"require('a'); 'b\n'", NULL},
    {"require('a') \xff", NULL},
    {"'\\", NULL},
    {"`\\", NULL},
    {"/\\", ""},
};

static void test_sources(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        struct buf out = buf_init(4096);
        const char *text = sources[i].text;
        int r = js_scan(text, strlen(text), put, &out);
        const char *got = buf_cstr(&out);

        if (r != (sources[i].want ? 0 : -EINVAL) ||
            strcmp(got, sources[i].want ? sources[i].want : "") != 0)
            fail_msg("%d \"%s\" of: %s", r, got, text);
        buf_finish(&out);
    }
}

static int stop(void *user, const struct imports_found *found)
{
    (void)found;
    ++*(unsigned *)user;
    return -ECANCELED;
}

static void test_limits(void **state)
{
    static const char deep[] = "((((((((((((((((((((((((((((((((((((((((";
    static const char *const floods[] = {"try{",     "/[ ",   "`${", "import{", "import a,",
                                         "require(", "try{}", "=/[", "\\",      "export{a,"};
    struct buf text = buf_init(1u << 20);
    unsigned calls = 0;

    (void)state;
    assert_int_equal(js_scan("require('a'); require('b')", 26, stop, &calls), -ECANCELED);
    assert_int_equal(calls, 1);
    assert_int_equal(js_scan("require('a')\0", 13, stop, &calls), -EINVAL);
    for (int i = 0; i < 6; i++)
        buf_printf(&text, "%s", deep);
    assert_int_equal(js_scan(buf_cstr(&text), text.len, stop, &calls), -EINVAL);
    /* None of these takes more than its length. */
    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        text.len = 0;
        while (text.len < 256 * 1024)
            buf_printf(&text, "%s", floods[i]);
        (void)js_scan(buf_cstr(&text), text.len, stop, &calls);
    }
    assert_int_equal(calls, 1);
    buf_finish(&text);
    /* A name that is too long is none. */
    text = buf_init(1u << 20);
    buf_printf(&text, "require('%0255d'); require('%0256d')", 1, 1);
    assert_int_equal(js_scan(buf_cstr(&text), text.len - 20, stop, &calls), -EINVAL);
    assert_int_equal(js_scan(buf_cstr(&text), text.len, stop, &calls), -ECANCELED);
    assert_int_equal(js_scan(buf_cstr(&text) + 267, text.len - 267, stop, &calls), 0);
    buf_finish(&text);
}

static void test_packages(void **state)
{
    static const struct {
        const char *module, *want; /* NULL: none */
    } names[] = {{"a", "a"},         {"a/b/c.js", "a"},
                 {"@a/b", "@a/b"},   {"@a/b/c", "@a/b"},
                 {"@a/fs", "@a/fs"}, {"Some.Name_1-2", "Some.Name_1-2"},
                 {"fs", NULL},       {"fs/promises", NULL},
                 {"node:fs", NULL},  {"node:later", NULL},
                 {"./a", NULL},      {"../a", NULL},
                 {"/a", NULL},       {"#a", NULL},
                 {"@a", NULL},       {"@/a", NULL},
                 {"@a/", NULL},      {"~/a", NULL},
                 {"", NULL},         {"a b", NULL},
                 {"a:b", NULL},      {"https://a.example/b", NULL},
                 {"C:\\a", NULL},    {"\xc3\xa9", NULL}};
    char name[IMPORTS_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool is = js_package_name(names[i].module, name);

        if (is != (names[i].want != NULL) || (is && strcmp(name, names[i].want) != 0))
            fail_msg("%d \"%s\" of \"%s\"", is, is ? name : "", names[i].module);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_packages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
