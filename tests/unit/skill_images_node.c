/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a skill by what its JavaScript imports. */
#include "tests/unit/images_world.h"

#include "tests/unit/cmocka_all.h"

#define JS(text)                                                                               \
    {                                                                                          \
        {                                                                                      \
            .path = "main.js", .content = text                                                 \
        }                                                                                      \
    }
#define WITH(name, text, more)                                                                 \
    .files = {{.path = "main.js", .content = more}, {.path = name, .content = text}}
#define LACKS(name) "none of 5 has all: this one lacks " name
#define NO(place, name)                                                                        \
    place ": the image node has no module \"" name                                             \
          "\": install it into a node_modules beside the script"

static const struct sample samples[] = {
    {"Node's own",
     JS("const fs = require('fs/promises'), t = require('node:test')\nimport('path')\n"),
     "node", .why = NEVER("JavaScript")},
    {"a package", JS("const _ = require('lodash')\n"), "node",
     .why = NEVER("JavaScript, lodash")},
    {"a package of another image", JS("import {Document} from \"docx\"\n"), "web",
     .why = NEVER("JavaScript, docx")},
    {"a file of a package", JS("const f = require('lodash/fp/map.js')\n"), .image = "node"},
    {"a package with a scope", JS("import core, * as all from '@kit/core/lib/a.js';\n"), "web",
     .why = NEVER("JavaScript, @kit/core")},
    {"imported for what it does", JS("import 'pptxgenjs'\n"), .image = "web"},
    {"when it is called", JS("async function f() { return await import(`docx`) }\n"),
     .image = "web"},
    {"exported from", JS("export * from 'sharp'\n"), .image = "web"},
    {"exported by name", JS("export {a as b} from 'sharp'\n"), .image = "web"},
    {"looked for", JS("console.log(require.resolve('docx'))\n"), .image = "web"},
    {"in a field of a template", JS("console.log(`a ${`b ${require('docx')}`} c`)\n"),
     .image = "web"},
    {"in text",
     JS("// require('docx')\n/* import 'docx' */\nx = \"require('docx')\"\n"
        "y = `require('docx')`\nz = /require('docx')/\nw = a / require / 2\n"),
     .image = "node"},
    {"of something else", JS("jest.require('docx'); x = {require: 'docx'}; import.meta.url\n"),
     .image = "node"},
    {"by no literal", JS("require('do' + 'cx'); require(name); import(name)\n"),
     .image = "node"},
    {"one that may be missing",
     JS("let docx\ntry {\n  docx = require('docx')\n} catch { docx = null }\n"),
     .image = "node"},
    {"one that may be missing, by a promise",
     JS("const docx = await import('docx').catch(() => null)\n"), .image = "node"},
    {"one of two",
     JS("let y; try { y = require('leftpad') } catch (e) { y = require('yaml') }\n"),
     .image = "node"},
    {"one without which it exits",
     JS("try { require('docx') } catch (e) {\n  console.error('npm install docx')\n"
        "  process.exit(1)\n}\n"),
     .image = "web"},
    {"one without which it raises",
     JS("try { require('docx') } catch (e) { throw new Error('no docx') }\n"), .image = "web"},
    {"one without which it may raise",
     JS("try { require('docx') } catch (e) { if (strict) throw e }\n"), .image = "node"},
    {"one in a try that expects nothing", JS("try { require('docx') } finally { x() }\n"),
     .image = "web"},
    {"a package of its own", WITH("node_modules/docx/index.js", "1\n", "require('docx')\n"),
     .image = "node"},
    {"a package of its own, with a scope",
     WITH("scripts/node_modules/@a/b/package.json", "{}", "1\n"), .image = "node"},
    {"what a file of its own needs",
     .files = {{.path = "scripts/run.mjs", .content = "import {a} from '../lib/a.js'\n"},
               {.path = "lib/a.js", .content = "export * from './b'\n"},
               {.path = "lib/b/index.js", .content = "import 'docx'\n"}},
     .image = "web"},
    {"what nobody runs", WITH("assets/page.js", "import 'leftpad'\n", "1\n"), .image = "node"},
    {"a bundle", JS("(function (require, module, exports) {\n  require('leftpad')\n})(f)\n"),
     .image = "node"},
    {"itself",
     .files = {{.path = "main.mjs", .content = "import 'mine/a.js'\nimport '#b'\n"},
               {.path = "package.json", .content = "{\"name\": \"mine\"}"}},
     .image = "node"},
    {"by its first line",
     .files = {{.path = "tool",
                .content = "#!/usr/bin/env node\nrequire('docx')\n",
                .mode = 0755}},
     "web", NEVER("node, JavaScript, docx")},
    {"no JavaScript", JS("require('docx')\nx = 'open\n"), .image = "node"},
    {"types and addresses", JS("import 'https://a.example/b.js'\nimport '@/c'\nimport '~/d'\n"),
     .image = "node"},
    {"dependencies",
     WITH("package.json", "{\"dependencies\": {\"docx\": \"^8\"}}", "console.log(1)\n"), "web",
     NEVER("JavaScript, docx")},
    {"a dependency that nobody has",
     WITH("package.json",
          "{\n  \"dependencies\": {\n    \"lodash\": \"4\",\n    \"leftpad\": \"1\"\n  }\n}",
          "1\n"),
     "node", LACKS("leftpad"),
     .want = {"package.json line 4: the image node has no package \"leftpad\": install it"}},
    {"a dependency and its import",
     WITH("package.json", "{\"dependencies\": {\"leftpad\": \"1\"}}", "require('leftpad')\n"),
     "node", LACKS("leftpad"), .want = {NO("main.js line 1", "leftpad")}},
    {"one that it can do without",
     WITH("package.json", "{\"optionalDependencies\": {\"docx\": \"8\"}}", "require('docx')\n"),
     .image = "node"},
    {"for its own tests and types",
     WITH(
         "package.json",
         "{\"devDependencies\": {\"docx\": \"8\"}, \"dependencies\": {\"@types/node\": \"1\"}}",
         "1\n"),
     .image = "node"},
    {"of a copy of something",
     WITH("assets/app/package.json", "{\"dependencies\": {\"docx\": \"8\"}}", "1\n"),
     .image = "node"},
    {"no package.json", WITH("package.json", "{\"dependencies\": {\"docx\": }}", "1\n"),
     .image = "node"},
    /* What no image has. */
    {"what nobody has", JS("const a = require('fs')\nconst b = require('leftpad')\n"), "node",
     LACKS("leftpad"), .want = {NO("main.js line 2", "leftpad")}},
    {"what Node has itself", JS("#!/usr/bin/env node\nimport axios from 'axios'\n"), "node",
     LACKS("axios"),
     .want = {"main.js line 2: the image node has no module \"axios\": fetch, of Node itself, "
              "is there"}},
    {"two images' things", JS("require('docx')\nrequire('js-yaml')\n"), "node", LACKS("docx"),
     .want = {NO("main.js line 1",
                 "docx") ", and push that with the skill; the image web has it"}},
    {"where Node is not",
     .files = {{.path = "SKILL.md", .content = MD("image: python\n")},
               {.path = "main.js", .content = "require('docx')\nrequire('leftpad')\n"}},
     "python", "SKILL.md names it",
     .want =
         {"main.js line 1: the image python does not run JavaScript: the image node has it"}},
    {"where one is missing",
     .files = {{.path = "SKILL.md", .content = MD("image: node\n")},
               {.path = "main.js", .content = "import 'sharp'\n"}},
     "node", "SKILL.md names it",
     .want = {"the image node has no module \"sharp\": it has compiled code"}},
    /* Of what is there in another version. */
    {"dependencies in versions that are there",
     WITH("package.json",
          "{\"engines\": {\"node\": \">=16 <19\"}, \"dependencies\": {\"lodash\": \"^4.17.0\", "
          "\"js-yaml\": \"3 || 4\", \"ajv\": \"6\", \"yaml\": \"latest\"}}",
          "1\n"),
     "node", NEVER("JavaScript, lodash, js-yaml, ajv, yaml")},
    {"dependencies in others",
     WITH("package.json",
          "{\n  \"dependencies\": {\n    \"js-yaml\": \"^12.0.0\",\n    \"lodash\": "
          "\"~4.16.1\",\n"
          "    \"cheerio\": \"1.0.0\"\n  }\n}",
          "require('lodash')\n"),
     "node",
     "none of 5 has the versions: this one has js-yaml 4.1.0, lodash 4.17.21, cheerio "
     "1.0.0-rc.12",
     .want = {"package.json line 3: it asks for js-yaml ^12.0.0, and the image node has 4.1.0: "
              "put it into node_modules, or ask for what the image has",
              "package.json line 4: it asks for lodash ~4.16.1, and the image node has 4.17.21",
              "package.json line 5: it asks for cheerio 1.0.0, and the image node has "
              "1.0.0-rc.12"}},
    {"one that it can do without, in another",
     WITH("package.json", "{\"optionalDependencies\": {\"lodash\": \"^9\"}}", "1\n"),
     .image = "node"},
    {"one of its own, in another",
     .files = {{.path = "main.js", .content = "1\n"},
               {.path = "package.json", .content = "{\"dependencies\": {\"lodash\": \"^9\"}}"},
               {.path = "node_modules/lodash/package.json", .content = "{}"}},
     .image = "node"},
    {"a Node of another image",
     WITH("package.json", "{\"engines\": {\"npm\": \">=99\", \"node\": \">=20\"}}", "1\n"),
     "web", NEVER("JavaScript")},
    {"a Node that may not be used",
     WITH("package.json", "{\n\"engines\": {\n\"node\": \">=20\"}}", "1\n"), "node",
     "none of 2 has the versions: this one has Node.js 18.20.4", .allowed = "python node",
     .want = {"package.json line 3: it asks for Node.js >=20, and the image node has 18.20.4: "
              "keep to what that knows; the image web has it, which may not be used"}},
    {"a Node that nobody has",
     .files = {{.path = "SKILL.md",
                .content = MD("compatibility: Requires Node.js 22. Not Python 2.\n")},
               {.path = "main.js", .content = "1\n"},
               {.path = "package.json", .content = "{\"engines\": {\"node\": \">=21\"}}"}},
     "node", "none of 5 has the versions: this one has Node.js 18.20.4",
     .want = {"SKILL.md line 4: it asks for Node.js >=22, and the image node has 18.20.4",
              "package.json line 1: it asks for Node.js >=21, and the image node has 18.20.4"}},
    {"a Node that is there",
     .files = {{.path = "SKILL.md",
                .content = MD("compatibility: node (>= v18.0) with git 9\n")},
               {.path = "main.js", .content = "1\n"}},
     .image = "node"},
    {"a Node where there is none",
     .files = {{.path = "SKILL.md",
                .content = MD("image: python\ncompatibility: Node.js 22+\n")},
               {.path = "main.py", .content = "1\n"}},
     "python", "SKILL.md names it", .want = {"the image python has no program \"node\""}},
    /* Two languages' things that are called the same. */
    {"of Node by Python", .files = {{.path = "main.py", .content = "import lodash\n"}},
     "python", LACKS("lodash"),
     .want = {"the image python has no module \"lodash\": if it is pure"}},
    {"of Python by JavaScript", JS("require('bs4')\n"), "node", LACKS("bs4"),
     .want = {NO("main.js line 1", "bs4")}},
};

static void test_samples(void **state)
{
    (void)state;
    world_check(samples, sizeof(samples) / sizeof(samples[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
    };

    return cmocka_run_group_tests(tests, world_set_up, world_tear_down);
}
