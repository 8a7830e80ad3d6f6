/* SPDX-License-Identifier: Apache-2.0 */
/* Small skills with known needs: each is warned of what is missing, and of nothing else. */
#include "api/skill/needs.h"

#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/make_archive.h"

#define MD(fields) "---\nname: x\ndescription: y\n" fields "---\n"
#define FILES_MAX  6
#define WANTED_MAX 5
#define HOST(name, file, line)                                                                 \
    "{\"host\":\"" name "\",\"file\":\"" file "\",\"line\":" line                              \
    ",\"connects\":false,\"declared\":false}"

static const char manifest_text[] =
    "language python 3.11\nmodule bs4\nmodule requests\nmodule yaml\n"
    "package beautifulsoup4 4.11.2\npackage pyyaml 6.0\npackage requests 2.28.1\n"
    "program bash\nprogram cat\nprogram curl\nprogram dirname\nprogram env\nprogram "
    "git\nprogram grep\n"
    "program jq\nprogram ls\nprogram mkdir\nprogram python3\nprogram sed\nprogram sh\n"
    "program wc\nprogram which\nstandard __future__\nstandard asyncio\nstandard csv\nstandard "
    "importlib\n"
    "standard json\nstandard os\nstandard pathlib\nstandard shutil\nstandard subprocess\n"
    "standard sys\nstandard tomllib\nstandard typing\nstandard xml\n";

static struct image_manifest manifest;
static char folder[] = "/tmp/skill-needs-XXXXXX";

static void put_manifest(const char *text)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "%s/python.manifest", folder);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    put_manifest(manifest_text);
    return image_manifest_read(folder, "python", &manifest, NULL);
}

static int tear_down(void **state)
{
    char path[64];

    (void)state;
    image_manifest_finish(&manifest);
    snprintf(path, sizeof(path), "%s/python.manifest", folder);
    unlink(path);
    return rmdir(folder);
}

/* Reads the skill of these files; what it gives is the caller's. */
static void look(const struct member *files, size_t n, const struct image_manifest *image,
                 struct needs *ret)
{
    struct member members[64] = {{.path = NULL}};
    _cleanup_fd_ int in = -1, tar = memfd_create("tar", MFD_CLOEXEC);
    struct skill_archive archive;
    struct skill skill;
    struct image_list images = {.n = 1, .n_here = 1};
    struct err err = {0};
    bool has_md = false;

    images.list[0] = (struct image_listed){"python", 0, true, *image};

    for (size_t i = 0; i < n; i++) {
        members[i] = files[i];
        has_md = has_md || strcmp(files[i].path, "SKILL.md") == 0;
    }
    if (!has_md)
        members[n] = (struct member){.path = "SKILL.md", .content = MD("")};
    in = make_archive(TAR, members);
    if (skill_archive_load(in, &archive_limits_default, NULL, tar, &archive, &skill, &err) <
            0 ||
        needs_read(tar, &archive, &skill, ret, &err) < 0)
        fail_msg("%s", err.message);
    needs_look(ret, &images, IMAGE_SET_ALL, &(struct image_choice){.why = "the only one"});
    skill_finish(&skill);
    skill_archive_finish(&archive);
}

struct sample {
    const char *about;
    struct member files[FILES_MAX];
    const char *want[WANTED_MAX]; /* each the beginning of a warning, in order */
};

static void check(const struct sample *sample)
{
    struct skill_strings warnings = {0};
    struct needs needs = {0};
    size_t n = 0;

    while (n < FILES_MAX && sample->files[n].path)
        n++;
    look(sample->files, n, &manifest, &needs);
    assert_int_equal(needs_warn(&needs, &warnings), 0);
    for (size_t i = 0; i < warnings.len; i++)
        if (i >= WANTED_MAX || !sample->want[i] ||
            strncmp(warnings.items[i], sample->want[i], strlen(sample->want[i])) != 0)
            fail_msg("%s: not wanted: %s", sample->about, warnings.items[i]);
    if (warnings.len < WANTED_MAX && sample->want[warnings.len])
        fail_msg("%s: missing: %s", sample->about, sample->want[warnings.len]);
    skill_strings_finish(&warnings);
    needs_finish(&needs);
}

#define MODULE(place, name)  place ": the image python has no module \"" name "\": "
#define PROGRAM(place, name) place ": the image python has no program \"" name "\": "

static const struct sample samples[] = {
    {"the standard library",
     {{.path = "main.py", .content = "import json, os.path\n"}},
     {NULL}},
    {"a module of the image", {{.path = "main.py", .content = "from bs4 import X\n"}}, {NULL}},
    {"one that is missing",
     {{.path = "main.py", .content = "import os\n\nimport pandas as pd\n"}},
     {MODULE("main.py line 3", "pandas") "it has compiled code; csv"}},
    {"a submodule",
     {{.path = "scripts/a.py", .content = "from google.cloud import storage"}},
     {MODULE("scripts/a.py line 1", "google") "if it is pure Python"}},
    {"in a function",
     {{.path = "main.py", .content = "def f():\n    '''\n    doc'''\n    import numpy\n"}},
     {MODULE("main.py line 4", "numpy")}},
    {"expected to be missing",
     {{.path = "main.py",
       .content = "try:\n    import pandas\nexcept ImportError:\n    pandas = None\n"}},
     {NULL}},
    {"one of two",
     {{.path = "main.py",
       .content =
           "try:\n  import tomllib\nexcept ModuleNotFoundError:\n  import tomli as tomllib"}},
     {NULL}},
    {"handlers that expect something else",
     {{.path = "main.py",
       .content = "try:\n  import pandas\n  x()\nexcept (ValueError, KeyError) as e:\n  pass"}},
     {MODULE("main.py line 2", "pandas")}},
    {"behind a try",
     {{.path = "main.py", .content = "try:\n  import a1\nexcept:\n  pass\nimport b1\n"}},
     {MODULE("main.py line 5", "b1")}},
    {"in the function within a try",
     {{.path = "main.py",
       .content =
           "def f():\n  try:\n    import a1\n  except Exception:\n    pass\n  import b1\n"}},
     {MODULE("main.py line 6", "b1")}},
    {"suppressed",
     {{.path = "main.py",
       .content = "with contextlib.suppress(ImportError):\n    import a1\n"}},
     {NULL}},
    {"for a checker of types",
     {{.path = "main.py",
       .content = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n"}},
     {NULL}},
    {"twice, the first time guarded",
     {{.path = "main.py", .content = "try: import a1\nexcept ImportError: pass\nimport a1\n"}},
     {MODULE("main.py line 3", "a1")}},
    {"in two scripts",
     {{.path = "scripts/a.py", .content = "import lxml\n"},
      {.path = "scripts/b.py", .content = "import json\nimport lxml\n"}},
     {MODULE("scripts/a.py line 1", "lxml")}},
    {"a sibling",
     {{.path = "scripts/a.py", .content = "import helpers, helpers.x"},
      {.path = "scripts/helpers.py", .content = "import csv"}},
     {NULL}},
    {"what a sibling needs",
     {{.path = "scripts/a.py", .content = "import lib.deep"},
      {.path = "scripts/lib/__init__.py", .content = ""},
      {.path = "scripts/lib/deep.py", .content = "\nimport PIL.Image"}},
     {MODULE("scripts/lib/deep.py line 2", "PIL")}},
    {"a package of its own, relative",
     {{.path = "pkg/__init__.py", .content = "from . import other\n"},
      {.path = "pkg/other.py", .content = "from .gone import x"},
      {.path = "main.py", .content = "import pkg"}},
     {NULL}},
    {"a vendored folder",
     {{.path = "scripts/a.py",
       .content =
           "import os, sys\n"
           "sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'vendor'))\n"
           "import tabulate\n"},
      {.path = "vendor/tabulate.py", .content = "def f():\n    import wcwidth\n"}},
     {NULL}},
    {"a vendored folder, by pathlib",
     {{.path = "scripts/deep/a.py",
       .content = "import sys\nfrom pathlib import Path\n"
                  "sys.path.append(str(Path(__file__).parent.parent / 'lib'))\n"
                  "import click\nif __name__ == '__main__': pass\n"},
      {.path = "scripts/lib/click/__init__.py", .content = ""}},
     {NULL}},
    {"a vendored folder, by its place",
     {{.path = "main.py",
       .content = "import sys\nsys.path += ['/sandbox/skill/lib']\nimport rich"},
      {.path = "lib/rich/__init__.py", .content = ""}},
     {NULL}},
    {"a folder that is not on the path",
     {{.path = "main.py", .content = "import tabulate"},
      {.path = "lib/tabulate.py", .content = ""}},
     {"main.py line 1: the module \"tabulate\" is not found from there: the skill has it as "
      "lib/tabulate.py; add its folder to sys.path"}},
    {"tests are not run",
     {{.path = "main.py", .content = ""},
      {.path = "tests/test_a.py", .content = "import pytest\nif __name__ == '__main__': 1"}},
     {NULL}},
    {"no Python", {{.path = "main.py", .content = "import pandas\nx = '\n"}}, {NULL}},
    {"programs that are there",
     {{.path = "main.py",
       .content = "import subprocess\nsubprocess.run(['git', 'log'])\n"
                  "subprocess.check_output(\"ls | wc -l\", shell=True)\n"}},
     {NULL}},
    {"programs in lists",
     {{.path = "main.py",
       .content = "import subprocess\nr = subprocess.run(\n    [\n        'ffmpeg', '-i', x])\n"
                  "subprocess.run(['/usr/sbin/sendmail', x])\n"}},
     {PROGRAM("main.py line 4", "ffmpeg"), PROGRAM("main.py line 5", "sendmail")}},
    {"a program in a list with a name",
     {{.path = "main.py", .content = "cmd = ['soffice', '--headless']\nrun(cmd)\n"}},
     {PROGRAM("main.py line 1", "soffice")}},
    {"programs in a text",
     {{.path = "main.py",
       .content = "import os\nos.system(f'cat {x} | convert - y.png')\n"
                  "os.popen('pdftotext ' + name)\n"}},
     {PROGRAM("main.py line 3", "pdftotext")}},
    {"a program that is looked for",
     {{.path = "main.py",
       .content = "import shutil, subprocess\nif shutil.which('dot'):\n"
                  "    subprocess.call(['dot', '-V'])\n"}},
     {NULL}},
    {"a program that may be missing",
     {{.path = "main.py",
       .content = "from subprocess import Popen\ntry:\n  Popen(args=['dot'])\n"
                  "except FileNotFoundError:\n  pass\n"}},
     {NULL}},
    {"no literal",
     {{.path = "main.py",
       .content = "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'x'])\n"
                  "subprocess.run(f'{tool} x', shell=True)\nsubprocess.run(command)\n"}},
     {NULL}},
    {"a shell's script",
     {{.path = "run.sh",
       .content = "#!/bin/bash\nset -euo pipefail\nmkdir -p out && pandoc x.md -o out/x.html\n"
                  "for f in *.png; do echo \"$f\"; done\n"}},
     {PROGRAM("run.sh line 3", "pandoc")}},
    {"functions, cases and texts of a shell's",
     {{.path = "run.sh",
       .content =
           "render() { cat \"$1\"; }\nfunction other {\n  :\n}\n"
           "case \"$1\" in\n  -h|--help) render x ;;\n  *) other; exit 1 ;;\nesac\n"
           "cat <<EOF\nnothing here runs: gnuplot\nEOF\n"
           "x=$(wc -l <f); y=(one two); z=$((1 + 2))\n"
           "if [[ $x == a && b ]]; then :; fi # gnuplot\nA=1 B=\"x y\" ls 2>&1 >/dev/null\n"}},
     {NULL}},
    {"substitutions and pipes of a shell's",
     {{.path = "run.sh",
       .content = "a=\"$(rg x | wc)\"\nls |\n  yq .\nif ! gs --version; then :; fi\n"}},
     {PROGRAM("run.sh line 1", "rg"), PROGRAM("run.sh line 3", "yq"),
      PROGRAM("run.sh line 4", "gs")}},
    {"a program that a shell looks for",
     {{.path = "run.sh",
       .content = "if command -v dot >/dev/null; then dot -V; fi\nwhich gs || exit 1\ngs x\n"}},
     {NULL}},
    {"functions of its own file",
     {{.path = "run.sh", .content = ". \"$(dirname \"$0\")\"/lib/common.sh\nrender x\ngs y\n"},
      {.path = "lib/common.sh", .content = "render() {\n  rg x\n}\n"}},
     {PROGRAM("lib/common.sh line 2", "rg"), PROGRAM("run.sh line 3", "gs")}},
    {"functions of nobody knows what",
     {{.path = "run.sh", .content = "source /opt/lib.sh\nrender x\n"}},
     {NULL}},
    {"a program of its own",
     {{.path = "run.sh", .content = "PATH=$PATH:bin\ntool x\n./bin/tool y\n"},
      {.path = "bin/tool", .content = "#!/bin/sh\nls\n", .mode = 0755}},
     {NULL}},
    {"a shell's script that does not end",
     {{.path = "run.sh", .content = "gnuplot x\necho 'open\n"}},
     {NULL}},
    {"installing",
     {{.path = "run.sh", .content = "pip install -q pandas\n"}},
     {PROGRAM("run.sh line 1", "pip") "nothing can be installed"}},
    {"requirements that are there",
     {{.path = "main.py", .content = "import yaml"},
      {.path = "requirements.txt",
       .content = "# c\nPyYAML>=6\nbeautifulsoup4==4.12 ; x\n-r y\n"}},
     {NULL}},
    {"a requirement that nobody imports",
     {{.path = "main.py", .content = ""},
      {.path = "requirements.txt", .content = "requests\npython_docx[x]>=1\n"}},
     {"requirements.txt line 2: the image python has no package \"python-docx\": "}},
    {"requirements as pip reads them",
     {{.path = "main.py", .content = ""},
      {.path = "requirements.txt",
       .content = "https://example.org/gone.whl\ngone.whl\npandas \\\n  >=2 # polars\n"
                  "httpx @ https://example.org/httpx.whl\n"}},
     {"requirements.txt line 3: the image python has no package \"pandas\": ",
      "requirements.txt line 5: the image python has no package \"httpx\": "}},
    {"a requirement and its import",
     {{.path = "main.py", .content = "from PIL import Image"},
      {.path = "requirements.txt", .content = "Pillow==10.0\n"}},
     {MODULE("main.py line 1", "PIL")}},
    {"a block of PEP 723",
     {{.path = "main.py",
       .content = "# /// script\n# requires-python = \">=3.12\"\n# dependencies = [\n"
                  "#   \"requests[socks]<3\",\n#   'httpx',\n# ]\n# ///\nimport requests\n"}},
     {"main.py line 2: it asks for Python >=3.12",
      "main.py line 5: the image python has no package \"httpx\": "}},
    {"Node",
     {{.path = "scripts/main.js", .content = "const fs = require('fs')\n"},
      {.path = "package.json", .content = "{}"}},
     {"package.json line 1: no image runs JavaScript: `skillvm image build node` makes one"}},
    {"an interpreter that is missing",
     {{.path = "scripts/tool", .content = "#!/usr/bin/env -S ruby -w\n", .mode = 0755}},
     {PROGRAM("scripts/tool line 1", "ruby")}},
    {"what SKILL.md asks for",
     {{.path = "SKILL.md",
       .content = MD("compatibility: Needs Python 3.13+, git and Docker\nimage: node:20\n"
                     "network: \"true\"\nlang: node\n")},
      {.path = "main.py", .content = ""}},
     {"SKILL.md line 7: there is no lang \"node\"",
      "SKILL.md line 5: there is no image \"node:20\"",
      "SKILL.md line 4: it asks for Python 3.13", PROGRAM("SKILL.md line 4", "docker")}},
    {"an image of another runner",
     {{.path = "SKILL.md", .content = MD("image: python:3.12\n")},
      {.path = "main.py", .content = ""}},
     {"SKILL.md line 4: there is no image \"python:3.12\""}},
    {"what SKILL.md gets",
     {{.path = "SKILL.md",
       .content =
           MD("compatibility: Python 3.9+, git\nimage: python\nnetwork: none\nlang: bash\n")},
      {.path = "main.sh", .content = "ls"}},
     {NULL}},
};

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        check(&samples[i]);
}

/* "key=value " of the members, for what is in the list of that key. */
static void check_json(const struct needs *needs, const char *want)
{
    struct json_writer w = json_writer_init(1u << 20);
    const char *got;

    json_write_open(&w, NULL, '{');
    needs_write(needs, &w);
    json_write_close(&w, '}');
    assert_int_equal(w.out.error, 0);
    got = buf_cstr(&w.out);
    if (!strstr(got, want))
        fail_msg("no %s in %s", want, got);
    buf_finish(&w.out);
}

static void test_json(void **state)
{
    static const struct member files[] = {
        {.path = "main.py",
         .content = "import json, yaml, own, gone\nURL = 'https://API.example.com:8443/x'\n"
                    "KEY = \"sk-live-0123456789abcdefghij\"\npassword = 'hunter2hunter2'\n"
                    "token = '<your-token-1>'\nos.system('git pull')\n"},
        {.path = "own.py", .content = ""},
        {.path = "requirements.txt",
         .content = "pyyaml>=7\nrequests\npywin32; sys_platform == 'win32'\ncsv>=2\n"},
    };
    struct needs needs = {0};

    (void)state;
    look(files, 3, &manifest, &needs);
    check_json(
        &needs,
        "\"requirements\":[{\"package\":\"pyyaml\",\"version\":\">=7\",\"from\":\"image\","
        "\"image_version\":\"6.0\",\"fits\":false,\"file\":\"requirements.txt\",\"line\":1},"
        "{\"package\":\"requests\",\"version\":null,\"from\":\"image\","
        "\"image_version\":\"2.28.1\",\"fits\":true,");
    check_json(&needs, "{\"package\":\"pywin32\",\"version\":null,\"from\":\"not asked for\"");
    check_json(&needs,
               "requirements.txt line 1: it asks for pyyaml >=7, and the image python "
               "has 6.0: put a wheel of it into wheels/, or ask for what the image has");
    check_json(&needs, "\"image\":\"python\"");
    check_json(&needs,
               "\"imports\":[{\"module\":\"json\",\"from\":\"standard library\",\"file\":"
               "\"main.py\",\"line\":1,\"guarded\":false},"
               "{\"module\":\"yaml\",\"from\":\"image\"");
    check_json(&needs, "{\"module\":\"own\",\"from\":\"skill\"");
    check_json(&needs, "{\"module\":\"gone\",\"from\":\"missing\"");
    check_json(&needs,
               "\"programs\":[{\"program\":\"git\",\"from\":\"image\",\"file\":\"main.py\","
               "\"line\":6,\"guarded\":false}]");
    check_json(&needs, "\"hosts\":[" HOST("api.example.com:8443", "main.py", "2") "]");
    check_json(&needs, "\"secrets\":[{\"text\":\"sk-l… (28 characters)\",\"file\":\"main.py\","
                       "\"line\":3},{\"text\":\"hunt… (14 characters)\",\"file\":\"main.py\","
                       "\"line\":4}]");
    check_json(&needs, "\"truncated\":false");
    needs_finish(&needs);
}

/* A URL that only names a namespace or a schema is no host's that the skill asks. */
static void test_namespaces(void **state)
{
    static const struct member files[] = {
        {.path = "main.py",
         .content = "NS = {'w': 'http://schemas.openxmlformats.org/wordprocessingml/2006/m'}\n"
                    "XSD = 'http://www.w3.org/2001/XMLSchema'\n"
                    "root.iter('{http://clark.example.com/ns}p')\n"
                    "ODF_NS = \"https://ns.example.com/odf\"; ns='http://short.example.com/'\n"
                    "url = 'https://api.example.com/'; old = f'{base}http://old.example.com/'\n"
                    "get(f'{url}'); site = 'https://www.w3.org/'; x = 'http://www.w3.org'\n"
                    "columns = 'http://columns.example.com/'\n"},
        {.path = "a.html",
         .content =
             "<a xmlns=\"http://a.example.com/\" xmlns:b = 'https://b.example.com/'\n"
             "targetNamespace=\"http://target.example.com\" href=\"http://h.example\"\n"},
        {.path = "b.json",
         .content = "{\"$schema\": \"https://json-schema.example/draft\",\n"
                    "\"url\": \"https://schemas.example.com/get\"}\n"},
    };
    struct needs needs;

    (void)state;
    look(files, 3, &manifest, &needs);
    check_json(
        &needs,
        "\"hosts\":[" HOST("h.example", "a.html", "2") "," HOST(
            "schemas.example.com", "b.json",
            "2") "," HOST("api.example.com", "main.py",
                          "5") "," HOST("old.example.com", "main.py",
                                        "5") "," HOST("www.w3.org", "main.py",
                                                      "6") "," HOST("columns.example.com",
                                                                    "main.py", "7") "]");
    needs_finish(&needs);
}

/* Without a manifest nothing is said to be missing. */
static void test_unknown_image(void **state)
{
    static const struct member files[] = {
        {.path = "main.py", .content = "import gone\nos.system('gnuplot')\n"},
        {.path = "requirements.txt", .content = "gone\n"},
    };
    struct image_manifest none;
    struct skill_strings warnings = {0};
    struct needs needs = {0};

    (void)state;
    assert_int_equal(image_manifest_read("/nonexistent", "python", &none, NULL), 0);
    look(files, 2, &none, &needs);
    assert_int_equal(needs_warn(&needs, &warnings), 0);
    assert_int_equal(warnings.len, 0);
    check_json(&needs,
               "\"image\":\"python\",\"image_reason\":\"the only one\",\"image_known\":false");
    check_json(&needs, "{\"module\":\"gone\",\"from\":\"unknown\"");
    needs_finish(&needs);
}

static void test_manifests(void **state)
{
    static const char *const bad[] = {"x\n",      "module\n",          "module \n",
                                      "module a", "language ruby 3\n", "\n"};
    struct image_manifest other = {0};
    struct err err = {0};

    (void)state;
    assert_true(manifest.known);
    assert_int_equal(manifest.python_minor, 11);
    assert_string_equal(image_manifest_package(&manifest, "pyyaml"), "6.0");
    assert_null(image_manifest_package(&manifest, "pyyam"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put_manifest(bad[i]);
        assert_int_equal(image_manifest_read(folder, "python", &other, &err), -EINVAL);
        assert_non_null(strstr(err.message, "python.manifest: line 1"));
        err = (struct err){0};
    }
    put_manifest("later kind\nmodule a\n");
    assert_int_equal(image_manifest_read(folder, "python", &other, NULL), 0);
    assert_true(image_manifest_has(&other.modules, "a"));
    image_manifest_finish(&other);
    /* Of Node's the version may be there, and a name that another one begins with. */
    put_manifest("node a\nnode a-b 1.0\nnode a.b 3.0\nnode @s/a 2.0.0\nnode ab\n");
    assert_int_equal(image_manifest_read(folder, "python", &other, NULL), 0);
    assert_string_equal(image_manifest_node_module(&other, "a"), "");
    assert_string_equal(image_manifest_node_module(&other, "a-b"), "1.0");
    assert_string_equal(image_manifest_node_module(&other, "a.b"), "3.0");
    assert_string_equal(image_manifest_node_module(&other, "@s/a"), "2.0.0");
    assert_string_equal(image_manifest_node_module(&other, "ab"), "");
    assert_null(image_manifest_node_module(&other, "a-"));
    assert_null(image_manifest_node_module(&other, "@s"));
    image_manifest_finish(&other);
}

static void test_explanations(void **state)
{
    static const struct {
        const char *log, *want; /* NULL: nothing */
    } logs[] = {
        {"Traceback (most recent call last):\n  File \"main.py\", line 3\n"
         "ModuleNotFoundError: No module named 'pandas.core'\n",
         "the image python has no module \"pandas\": it has compiled code"},
        {"ModuleNotFoundError: No module named 'json.x'\n", NULL},
        {"ModuleNotFoundError: No module named '../x'\n", NULL},
        {"ModuleNotFoundError: No module named 'open\n", NULL},
        {"main.sh: line 3: gnuplot: command not found\n",
         "the image python has no program \"gnuplot\": "},
        {"sh: 1: ffmpeg: not found", "the image python has no program \"ffmpeg\": "},
        {"main.sh: line 3: git: command not found\n", NULL},
        {"  File \"/usr/lib/python3.11/subprocess.py\", line 1\n"
         "FileNotFoundError: [Errno 2] No such file or directory: 'dot'\n",
         "the image python has no program \"dot\": "},
        {"FileNotFoundError: [Errno 2] No such file or directory: 'dot'\n", NULL},
        {"page: not found\n", NULL},
        {"node:internal/modules/cjs/loader:1080\n  throw err;\n  ^\n\n"
         "Error: Cannot find module '@a/b/c.js'\nRequire stack:\n- /sandbox/skill/main.js\n"
         "    at Module._resolveFilename {\n  code: 'MODULE_NOT_FOUND',\n",
         "the image python has no module \"@a/b\": install it into a node_modules beside"},
        {"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'axios' imported from "
         "/sandbox/skill/main.mjs\n",
         "the image python has no module \"axios\": fetch, of Node itself, is there"},
        {"Error: spawn dot ENOENT\n    at f\n", "the image python has no program \"dot\": "},
        {"Error: Cannot find module './own.js'\n", NULL},
        {"Error: Cannot find module '/sandbox/skill/own.js'\n", NULL},
        {"Error: Cannot find module 'node:later'\n", NULL},
        {"", NULL},
        {"\n\n", NULL},
    };
    struct image_list images = {.n = 1, .n_here = 1};
    char text[256];

    (void)state;
    images.list[0] = (struct image_listed){"python", 0, true, manifest};
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        int r = needs_explain(&images, IMAGE_SET_ALL, 0, logs[i].log, strlen(logs[i].log), text,
                              sizeof(text));

        if (r != (logs[i].want != NULL) ||
            (r && strncmp(text, logs[i].want, strlen(logs[i].want)) != 0))
            fail_msg("%d \"%s\" of: %s", r, r ? text : "", logs[i].log);
    }
}

/* More than there is room for is cut and said, and takes no long time. */
static void test_limits(void **state)
{
    struct buf many = buf_init(1u << 20), line = buf_init(1u << 20);
    struct skill_strings warnings = {0};
    struct member files[3] = {
        {.path = "main.py"}, {.path = "requirements.txt"}, {.path = "b.sh"}};
    struct needs needs = {0};

    (void)state;
    for (unsigned i = 0; many.len < NEEDS_FILE_BYTES_MAX - 32; i++)
        buf_printf(&many, "import m%u\n", i);
    buf_printf(&line, "echo ");
    while (line.len < NEEDS_FILE_BYTES_MAX - 32)
        buf_printf(&line, "$(");
    files[0].content = buf_cstr(&many);
    files[1].content = "x\n";
    files[2].content = buf_cstr(&line);
    look(files, 3, &manifest, &needs);
    assert_true(needs.truncated);
    assert_int_equal(needs.len, NEEDS_ITEMS_MAX);
    assert_int_equal(needs_warn(&needs, &warnings), 0);
    assert_int_equal(warnings.len, NEEDS_WARNINGS_MAX + 1);
    assert_string_equal(warnings.items[NEEDS_WARNINGS_MAX],
                        "990 more things are missing or not declared: skillvm skill inspect");
    skill_strings_finish(&warnings);
    needs_finish(&needs);
    buf_finish(&many);
    buf_finish(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),      cmocka_unit_test(test_json),
        cmocka_unit_test(test_namespaces),   cmocka_unit_test(test_unknown_image),
        cmocka_unit_test(test_explanations), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_manifests),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
