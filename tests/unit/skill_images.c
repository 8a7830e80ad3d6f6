/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a skill by what its Python, its shells and its fields need. */
#include "tests/unit/images_world.h"

#include "api/skill/image_recipes.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

/* One file, or two: the name, the text. */
#define PY(text)                                                                               \
    {                                                                                          \
        {                                                                                      \
            .path = "main.py", .content = text                                                 \
        }                                                                                      \
    }
#define SH(text)                                                                               \
    {                                                                                          \
        {                                                                                      \
            .path = "main.sh", .content = text                                                 \
        }                                                                                      \
    }
#define WITH(name, text, more)                                                                 \
    .files = {{.path = "main.py", .content = more}, {.path = name, .content = text}}
#define FIELDS(fields, name, text)                                                             \
    .files = {{.path = "SKILL.md", .content = MD(fields)}, {.path = name, .content = text}}
static const struct sample samples[] = {
    /* What Python imports. */
    {"the standard library", PY("import json, os.path, csv\n"), "python",
     .why = NEVER("Python")},
    {"what every Python has", PY("import yaml\n"), "python", .why = NEVER("Python, yaml")},
    {"pandas", PY("import pandas as pd\n"), "data", .why = NEVER("Python, pandas")},
    {"two of an image", PY("import numpy as np, pandas\n"), "data",
     .why = NEVER("Python, numpy, pandas")},
    {"a submodule", PY("from scipy.stats import norm\n"), .image = "data"},
    {"a from", PY("from matplotlib import pyplot\n"), .image = "data"},
    {"lazy", PY("def f():\n    import pandas\n    return pandas\n"), .image = "data"},
    {"in a method",
     PY("class A:\n    def f(self):\n        from openpyxl import Workbook\n        return "
        "1\n"),
     .image = "data"},
    {"behind a condition", PY("import sys\nif len(sys.argv) > 2:\n    import lxml.etree\n"),
     .image = "data"},
    {"one that may be missing",
     PY("try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"), .image = "python"},
    {"one that may be missing, passed over",
     PY("try:\n    import pandas as pd\nexcept ModuleNotFoundError:\n    pass\n"),
     .image = "python"},
    {"one that ends the script when it is missing",
     PY("import sys\ntry:\n    import pandas\nexcept ImportError:\n"
        "    print('pip install pandas', file=sys.stderr)\n    sys.exit(1)\n"),
     .image = "data"},
    {"one without which it exits",
     PY("try:\n    from PIL import Image\nexcept ImportError:\n    exit('Pillow is needed')\n"),
     .image = "data"},
    {"one without which it raises",
     PY("try:\n    import docx\nexcept ImportError as e:\n"
        "    raise SystemExit('no docx') from e\n"),
     .image = "data"},
    {"one without which it ends on the same line",
     PY("import os\ntry: import reportlab\nexcept ImportError: os._exit(2)\n"),
     .image = "data"},
    {"one without which it raises where that is asked for",
     PY("try:\n    import reportlab\nexcept ImportError:\n    if STRICT:\n        raise\n"
        "    reportlab = None\n"),
     .image = "python"},
    {"one with another handler that ends it",
     PY("try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "except OSError:\n    exit(1)\n"),
     .image = "python"},
    {"one of two that the library has",
     PY("try:\n    import tomllib\nexcept ImportError:\n    import tomli as tomllib\n"),
     .image = "python"},
    {"one of two, the second of which is there",
     PY("try:\n    import ujson as json\nexcept ImportError:\n    import json\n"),
     .image = "python"},
    {"suppressed",
     PY("import contextlib\nwith contextlib.suppress(ImportError):\n    import numpy\n"),
     "python", NULL, .want = {"no module \"contextlib\""}},
    {"for a checker of types",
     PY("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n"),
     .image = "python"},
    {"by importlib", PY("import importlib\nnp = importlib.import_module('numpy')\n"),
     .image = "data"},
    {"by __import__", PY("np = __import__('numpy')\n"), .image = "data"},
    {"commented out", PY("# import pandas\nx = 'import numpy'\n"), .image = "python"},
    {"what a module of its own needs",
     WITH("lib.py", "import json\nfrom PIL import Image\n", "import lib\n"), .image = "data"},
    {"a module of its own that is called so", WITH("pandas.py", "x = 1\n", "import pandas\n"),
     .image = "python"},
    {"in one of several scripts",
     .files = {{.path = "scripts/a.py", .content = "import json\n"},
               {.path = "scripts/b.py", .content = "import reportlab\n"}},
     "data", .why = NEVER("Python, reportlab")},
    {"in a test of its own",
     WITH("tests/test_a.py", "import numpy\nif __name__ == '__main__':\n    pass\n",
          "import json\n"),
     .image = "python"},
    /* Packages by another name than their modules. */
    {"PIL", PY("from PIL import Image\n"), "data", .why = NEVER("Python, PIL")},
    {"reportlab", PY("import reportlab\n"), .image = "data"},
    {"bs4", PY("from bs4 import BeautifulSoup\n"), .image = "python"},
    {"docx", PY("import docx\n"), .image = "data"},
    {"seaborn", PY("from seaborn.objects import Plot\n"), .image = "data"},
    {"uno", PY("from uno import getComponentContext\n"), "office", .why = NEVER("Python, uno")},
    {"docx and uno", PY("import docx, uno\n"), .image = "office"},
    {"requirements of the smallest",
     WITH("requirements.txt", "PyYAML>=6\nbeautifulsoup4\npython_dateutil==2.8.*\n", "x = 1\n"),
     .image = "python"},
    {"requirements",
     WITH("requirements.txt", "# tables\n-r more.txt\nPandas>=1.5 ; python_version > '3'\n",
          "x = 1\n"),
     "data", .why = NEVER("Python, pandas")},
    {"a requirement with extras", WITH("requirements.txt", "SciPy[alldeps]~=1.0\n", "x = 1\n"),
     .image = "data"},
    {"a requirement that the image has under another name",
     WITH("requirements.txt", "pdfminer.six\n", "x = 1\n"), .image = "data"},
    {"a requirement that the library has", WITH("requirements.txt", "argparse\n", "x = 1\n"),
     .image = "python"},
    {"Pillow and its import", WITH("requirements.txt", "Pillow\n", "from PIL import Image\n"),
     "data", .why = NEVER("Python, PIL")},
    {"a requirement with comments and hashes",
     WITH("requirements.txt", "numpy==1.24.2 \\\n    --hash=sha256:00  # c\n",
          "import numpy\n"),
     .image = "data"},
    /* Of what no image has in the version that is asked for. */
    {"requirements of newer ones",
     WITH("requirements.txt", "pandas>=2.0\n\nnumpy==1.26.4\nlxml>=4\n", "import pandas\n"),
     "data", "none of 5 has the versions: this one has pandas 1.5.3, numpy 1.24.2",
     .want =
         {"requirements.txt line 1: it asks for pandas >=2.0, and the image data has 1.5.3: "
          "put a wheel of it into wheels/, or ask for what the image has",
          "requirements.txt line 3: it asks for numpy ==1.26.4, and the image data has "
          "1.24.2: put a wheel"}},
    {"PEP 723 of a newer one",
     PY("# /// script\n# dependencies = [\n#   \"pandas[excel]>=2.1,<3\",\n# ]\n# ///\n"
        "import json\n"),
     "data", "none of 5 has the versions: this one has pandas 1.5.3",
     .want = {"main.py line 3: it asks for pandas [excel]>=2.1,<3, and the image data has "
              "1.5.3: put a wheel"}},
    {"a requirement of an older one",
     WITH("requirements.txt", "lxml<4.9\nscipy~=1.10.0\nmatplotlib!=3.6.3\n", "x = 1\n"),
     "data", "none of 5 has the versions: this one has lxml 4.9.2, matplotlib 3.6.3",
     .want = {"lxml <4.9", "matplotlib !=3.6.3"}},
    {"a requirement for another Python or system",
     WITH("requirements.txt",
          "numpy>=1.21; python_version<'3.12'\nnumpy>=2 ; python_version>='3.12'\n"
          "pywin32>=306; sys_platform == 'win32'\n",
          "x = 1\n"),
     "data", .why = NEVER("Python, numpy")},
    {"a newer one that it brings",
     .files = {{.path = "main.py", .content = "import yaml\n"},
               {.path = "requirements.txt", .content = "pyyaml>=7\n"},
               {.path = "yaml/__init__.py", .content = ""}},
     .image = "python"},
    {"a newer one of a module without a version",
     WITH("requirements.txt", "pdfminer-six>=99\nargparse>=99\n", "x = 1\n"), .image = "data"},
    {"a requirement that is none",
     WITH("requirements.txt", "pandas>=>2\nnumpy @ https://example.com/numpy-9.whl\n",
          "x = 1\n"),
     .image = "data"},
    {"PEP 723",
     PY("# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\"pandas>=1\"]\n# ///\n"
        "import json\n"),
     "data", .why = NEVER("Python >=3.9, pandas")},
    {"PEP 723 of a newer Python",
     PY("# /// script\n# requires-python = \">=3.12,<4\"\n# ///\nimport json\n"), "python",
     "none of 5 has all: this one lacks Python >=3.12,<4",
     .want = {"it asks for Python >=3.12,<4"}},
    {"PEP 723 with both ends",
     PY("# /// script\n# requires-python = \"<3.13,>=3.8\"\n# ///\nimport json\n"),
     .image = "python"},
    {"PEP 723 in lines",
     PY("# /// script\n# dependencies = [\n#   'uno',\n#   \"requests\",\n# ]\n# "
        "///\n"),
     .image = "office"},
    /* Programs. */
    {"a shell's script", SH("#!/bin/bash\nset -e\nls | grep x\n"), "python",
     .why = "smallest of 5"},
    {"a program", SH("ffmpeg -i a b\n"), "data", .why = NEVER("ffmpeg")},
    {"in a pipe", SH("cat x | pandoc -o y.html\n"), .image = "data"},
    {"in a substitution", SH("t=$(pdftotext x.pdf -)\necho \"$t\"\n"), .image = "data"},
    {"soffice", SH("soffice --headless --convert-to pdf x.docx\n"), .image = "office"},
    {"libreoffice", SH("libreoffice --headless --convert-to csv x.xlsx\n"), .image = "office",
     .why = NEVER("libreoffice")},
    {"soffice by Python",
     PY("import subprocess\nsubprocess.run(['soffice', '--headless', 'x'], check=True)\n"),
     .image = "office"},
    {"UNO", PY("import uno\nfrom com.sun.star.beans import PropertyValue\n"),
     .image = "office"},
    {"dot", SH("dot -Tsvg g.dot -o g.svg\n"), "data", .why = NEVER("dot")},
    {"dot by Python", PY("import subprocess\nsubprocess.run(['dot', '-Tpng'])\n"),
     .image = "data"},
    {"two images' programs", SH("pandoc x -o y.docx && libreoffice y.docx\n"),
     .image = "office"},
    {"a function of that name", SH("convert() { cat \"$1\"; }\nconvert x\n"),
     .image = "python"},
    {"by xargs", SH("ls | xargs -n 1 -I {} convert {} {}.png\n"), .image = "data"},
    {"by timeout", SH("timeout -k 5 60 soffice x.docx\n"), .image = "office"},
    {"what is looked for", SH("if command -v ffmpeg; then ffmpeg -version; fi\n"),
     .image = "python"},
    {"a program of its own",
     .files = {{.path = "main.sh", .content = "./tesseract x\ntesseract y\n"},
               {.path = "tesseract", .content = "#!/bin/sh\nls\n", .mode = 0755}},
     .image = "python"},
    {"xargs and env", SH("env A=1 ffmpeg x\nnohup convert a b\n"), .image = "data"},
    {"subprocess by name", PY("import subprocess\nsubprocess.run(['tesseract', 'x', '-'])\n"),
     .image = "data"},
    {"subprocess by path",
     PY("import subprocess\nsubprocess.check_call(['/usr/bin/convert', 'a', 'b'])\n"),
     .image = "data"},
    {"subprocess by a shell",
     PY("import subprocess\nsubprocess.run('soffice --headless x | cat', shell=True)\n"),
     .image = "office"},
    {"os.system", PY("import os\nos.system(f'ffmpeg -i {x} y')\n"), .image = "data"},
    {"a list with a name",
     PY("import subprocess\ncmd = ['pandoc', 'a']\nsubprocess.run(cmd)\n"), .image = "data"},
    {"a program whose absence is expected",
     PY("import subprocess\ntry:\n    subprocess.run(['ffmpeg'])\n"
        "except FileNotFoundError:\n    pass\n"),
     .image = "python"},
    {"no literal", PY("import subprocess, sys\nsubprocess.run([sys.argv[1]])\n"),
     .image = "python"},
    {"node by Python", PY("import subprocess\nsubprocess.run(['node', 'x.js'])\n"), "node",
     .why = NEVER("Python, node")},
    {"node by a shell", SH("node x.js\n"), "node", .why = NEVER("node")},
    {"npx by a shell", SH("npx prettier .\n"), .image = "web"},
    /* First lines. */
    {"Python by its first line",
     .files = {{.path = "tool",
                .content = "#!/usr/bin/env python3\nimport numpy\n",
                .mode = 0755}},
     .image = "data"},
    {"a versioned Python by its first line",
     .files = {{.path = "tool",
                .content = "#!/usr/bin/python3.11\nimport numpy\n",
                .mode = 0755}},
     .image = "data"},
    {"node by its first line",
     .files = {{.path = "tool",
                .content = "#!/usr/bin/env -S node --no-warnings\n",
                .mode = 0755}},
     .image = "node"},
    {"bash by its first line",
     .files = {{.path = "tool", .content = "#!/usr/bin/env bash\nffmpeg x\n", .mode = 0755}},
     .image = "data"},
    {"perl by its first line",
     .files = {{.path = "tool", .content = "#!/usr/bin/perl -w\n", .mode = 0755}}, "python",
     .why = NEVER("perl")},
    /* Other languages. */
    {"JavaScript", .files = {{.path = "main.js", .content = "console.log(1)\n"}}, "node",
     .why = NEVER("JavaScript")},
    {"JavaScript of modules",
     .files = {{.path = "scripts/run.mjs", .content = "import 'fs'\n"}}, .image = "node"},
    {"package.json",
     .files = {{.path = "index.js", .content = "require('lodash')\n"},
               {.path = "package.json", .content = "{\"dependencies\": {\"lodash\": \"4\"}}"}},
     .image = "node"},
    {"JavaScript in an asset",
     .files = {{.path = "main.py", .content = "import json\n"},
               {.path = "assets/page.js", .content = "alert(1)\n"}},
     .image = "python"},
    {"Python and JavaScript",
     .files = {{.path = "main.py", .content = "import yaml\n"},
               {.path = "scripts/a.js", .content = "1\n"}},
     "node", .why = NEVER("Python, JavaScript, yaml")},
    {"JavaScript by Python",
     {{.path = "main.js", .content = "require('child_process').exec('python3 x.py')\n"},
      {.path = "x.py", .content = "import yaml, requests\n"}},
     .image = "node"},
    {"programs by JavaScript",
     .files = {{.path = "main.js",
                .content = "import {execSync, spawn} from 'node:child_process'\n"
                           "execSync('git log')\nspawn('ffmpeg', ['x'])\n"}},
     .image = "node", .want = {"main.js line 3: the image node has no program \"ffmpeg\""}},
    {"Ruby", .files = {{.path = "main.rb", .content = "puts 1\n"}}, "python", NULL,
     .want = {"does not run Ruby: the image ruby has it, which is not installed here: `skillvm "
              "image "
              "build ruby` makes it"}},
    {"Lua", .files = {{.path = "main.lua", .content = "print(1)\n"}}, "python", NULL,
     .want = {"no image runs Lua: write it in Python (main.py), bash"}},
    {"Go", .files = {{.path = "main.go", .content = "package main\n"}}, "python", NULL,
     .want = {"main.go line 1: no image runs Go: build a static program for Linux"}},
    {"TypeScript", .files = {{.path = "main.ts", .content = "const x: number = 1\n"}}, "python",
     NULL, .want = {"main.ts line 1: no image runs TypeScript: make JavaScript of it"}},
    /* What SKILL.md says. */
    {"lang", FIELDS("lang: python\n", "main.py", "import json\n"), .image = "python"},
    {"lang of a shell", FIELDS("lang: bash\n", "main.sh", "ls\n"), .image = "python"},
    {"lang of Node", FIELDS("lang: node\n", "main.js", "1\n"), .image = "node"},
    {"two langs", FIELDS("lang: python, node\n", "main.py", "import json\n"), "python", NULL,
     .want = {"SKILL.md line 4: lang is python, bash or node, and not \"python, node\": name "
              "one, or remove it"}},
    {"lang that nothing runs", FIELDS("lang: cobol\n", "main.py", "import json\n"), "python",
     NULL, .want = {"lang is python, bash or node, and not \"cobol\""}},
    {"compatibility", FIELDS("compatibility: Needs ffmpeg\n", "main.py", "x = 1\n"),
     .image = "data"},
    {"compatibility with LibreOffice",
     FIELDS("compatibility: Requires LibreOffice and Python 3.9+\n", "main.py", "x = 1\n"),
     .image = "office"},
    {"compatibility with Graphviz",
     FIELDS("compatibility: Needs Graphviz\n", "main.py", "x = 1\n"), .image = "data"},
    {"compatibility with Node",
     FIELDS("compatibility: Node.js 18 or newer\n", "main.sh", "ls\n"), .image = "node"},
    {"compatibility with what nobody has",
     FIELDS("compatibility: Docker\n", "main.py", "x = 1\n"), "python", NULL,
     .want = {"no program \"docker\""}},
    {"its own image", FIELDS("image: data\n", "main.py", "import json\n"), "data",
     .why = "SKILL.md names it"},
    {"its own image, which lacks something",
     FIELDS("image: python\n", "main.py", "import pandas\n"), "python", "SKILL.md names it",
     .want =
         {"the image python has no module \"pandas\": it has compiled code; csv, sqlite3 and "
          "statistics are there; the image data has it"}},
    {"its own image, which runs no Python",
     FIELDS("image: web\n", "main.py", "import json, yaml\n"), "web", "SKILL.md names it",
     .want = {"the image web does not run Python: the image python has it"}},
    {"an image of another runner",
     FIELDS("image: python:3.12-slim\n", "main.py", "import numpy\n"), "data",
     NEVER("Python, numpy"),
     .want =
         {"there is no image \"python:3.12-slim\" here: it runs in the image data, which has "
          "Python and bash"}},
    {"an image that is not installed", FIELDS("image: ruby\n", "main.sh", "ls\n"), "python",
     NULL,
     .want =
         {"there is no image \"ruby\" here, and `skillvm image build ruby` makes it: it runs "
          "in the image python"}},
    {"network", FIELDS("network: [api.example.com]\n", "main.py", "import numpy\n"), "data"},
    /* What no image has. */
    {"what nobody has", PY("import leftpad\n"), "python",
     "none of 5 has all: this one lacks leftpad",
     .want = {"the image python has no module \"leftpad\": if it is pure Python"}},
    {"one of two things", PY("import numpy, leftpad\n"), "data",
     "none of 5 has all: this one lacks leftpad",
     .want = {"the image data has no module \"leftpad\""}},
    {"two images' things",
     .files = {{.path = "main.py", .content = "import pandas\n"},
               {.path = "scripts/a.js", .content = "require('lodash')\n"}},
     "node", "none of 5 has all: this one lacks pandas",
     .want = {"the image node has no module \"pandas\": it has compiled code; csv, sqlite3 and "
              "statistics are there; the image data has it"}},
    {"what no recipe brings", PY("import cv2\nfrom pptx import Presentation\nimport sklearn\n"),
     "python", "none of 5 has all: this one lacks cv2, pptx, sklearn",
     .want = {"no module \"cv2\": it has compiled code, and nothing in the image stands in",
              "no module \"pptx\": no image has it: put a wheel of it, and of what it requires",
              "no module \"sklearn\": it has compiled code"}},
    {"what an image has that is not here", SH("gnuplot x\n"), "python", NULL,
     .want = {"no program \"gnuplot\": use Python, or bring a program that is a script; the "
              "image ruby "
              "has it, which is not installed here"}},
    {"nothing to run", .files = {{.path = "SKILL.md", .content = MD("")}}, "python",
     .why = "the usual one of 5"},
    {"no Python at all", PY("import numpy\nx = '\n"), .image = "python"},
    {"nothing to run, and not the usual one",
     .files = {{.path = "SKILL.md", .content = MD("")}}, "node", .why = "smallest of 2",
     .allowed = "data node"},
    /* What a tenant may use. */
    {"not the smallest",
     PY("import json\n"),
     "data",
     "smallest of 2 that has Python",
     {NULL},
     "data web"},
    {"the only one", PY("import json\n"), "web", "the only one to choose from",
     .want =
         {"the image web does not run Python: the image python has it, which may not be used"},
     "web"},
    {"what is forbidden has it", PY("import pandas\n"), "python", NULL,
     .want = {"the image data has it, which may not be used"}, "python node"},
    {"its own is forbidden", FIELDS("image: data\n", "main.sh", "ls\n"), NULL, NULL,
     .want = {"the image \"data\" may not be used here"}, "python office"},
    {"none is here", SH("ls\n"), NULL, NULL, .allowed = "ruby"},
};

_Static_assert(sizeof(samples) / sizeof(samples[0]) > 60, "so many skills");

static void test_samples(void **state)
{
    (void)state;
    world_check(samples, sizeof(samples) / sizeof(samples[0]));
}

/* Equal sizes are told apart by name, whatever order they are in. */
static void test_ties(void **state)
{
    static const struct world_file files[] = {{.path = "main.py", .content = "import docx\n"},
                                              {.path = NULL}};
    struct needs needs = {0};
    struct image_choice choice;
    struct skill skill;
    char lang[16];

    (void)state;
    world_put("data.erofs", "", 400);
    image_list_finish(&images);
    assert_int_equal(image_list_read(world_folder, &images, NULL), 0);
    assert_int_equal(images.n_here, 5);
    assert_string_equal(images.list[5].name, "ruby");
    assert_false(images.list[5].here);
    world_read_skill(files, &skill, &needs, lang);
    for (int i = 0; i < 3; i++) {
        image_choose(&needs, &images, IMAGE_SET_ALL, NULL, &choice);
        assert_string_equal(images.list[choice.place].name, "data");
    }
    needs_finish(&needs);
    skill_finish(&skill);
    world_put("data.erofs", "", 300);
}

/* Of what no image here has one that has most of it is to be built, and no second one. */
static void test_what_is_to_be_built(void **state)
{
    static const struct world_file files[] = {
        {.path = "main.py",
         .content = "import PIL, subprocess\nsubprocess.run(['soffice'])\n"
                    "subprocess.run(['gcc'])\n"},
        {.path = NULL}};
    _cleanup_image_list_ struct image_list list = {0};
    struct needs needs = {0};
    struct image_choice choice;
    struct skill skill;
    char lang[16], folder[64];
    unsigned n = 0;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/away", world_folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    world_put("away/python.erofs", "", 100);
    world_put("away/python.manifest", "language python 3.11\nstandard subprocess\n", 0);
    world_put("away/data.manifest", "module PIL\nprogram dot\n", 0);
    world_put("away/office.manifest", "module PIL\nprogram dot\nprogram soffice\n", 0);
    world_put("away/other.manifest", "program gcc\n", 0);
    assert_int_equal(image_list_read(folder, &list, NULL), 0);
    world_read_skill(files, &skill, &needs, lang);
    image_choose(&needs, &list, IMAGE_SET_ALL, NULL, &choice);
    needs_look(&needs, &list, IMAGE_SET_ALL, &choice);
    assert_string_equal(needs.away, "office");
    for (size_t i = 0; i < needs.len; i++) {
        if (needs.items[i].help != NEEDS_HELP_AWAY)
            continue;
        n++;
        assert_string_equal(needs.items[i].helper,
                            strcmp(needs.items[i].name, "gcc") == 0 ? "other" : "office");
    }
    assert_int_equal(n, 3);
    needs_finish(&needs);
    skill_finish(&skill);
}

/* A reason is short, whatever a skill needs, and says how much it leaves out. */
static void test_long_reasons(void **state)
{
    struct world_file files[] = {{.path = "main.sh"}, {.path = NULL}};
    struct buf text = buf_init(1u << 20);
    struct needs needs = {0};
    struct image_choice choice;
    struct skill skill;
    char lang[16];

    (void)state;
    for (int i = 0; i < 900; i++)
        (void)buf_printf(&text, "a-program-with-a-name-that-is-not-short-%d x\n", i);
    files[0].content = buf_cstr(&text);
    world_read_skill(files, &skill, &needs, lang);
    image_choose(&needs, &images, IMAGE_SET_ALL, NULL, &choice);
    assert_string_equal(choice.why, "none of 5 has all: this one lacks "
                                    "a-program-with-a-name-that-is-not-short-0, "
                                    "a-program-with-a-name-that-is-not-short-1 and 898 more");
    needs_finish(&needs);
    skill_finish(&skill);
    buf_finish(&text);
}

static void pass_over(void *ctx, const char *file, const struct err *why)
{
    (void)ctx;
    (void)file;
    (void)why;
}

/* Of a list all that the usual image does not have. */
static void are_brought(const char *image, const struct skill_strings *list,
                        const struct skill_strings *usual, const struct skill_strings *brought)
{
    for (size_t i = 0; i < list->len; i++) {
        char name[128];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(list->items[i], " "), list->items[i]);
        if (!image_manifest_has(usual, name) && !image_manifest_has(brought, name))
            fail_msg("the recipe of %s does not bring %s", image, name);
    }
}

/* What the samples are given is what our recipes bring, as far as they say it. */
static void test_the_images_are_ours(void **state)
{
    static const char *const names[] = {"data", "node", "office"};
    const char *source = getenv("SKILLVM_TEST_SOURCE");
    _cleanup_image_list_ struct image_list recipes = {0};
    char from[4096], to[64];

    (void)state;
    assert_non_null(source);
    snprintf(from, sizeof(from), "%s/images", source);
    snprintf(to, sizeof(to), "%s/recipes", world_folder);
    assert_int_equal(symlink(from, to), 0);
    image_recipes_read(world_folder, &recipes, pass_over, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct image_listed *here = image_list_any(&images, names[i]),
                                  *recipe = image_list_any(&recipes, names[i]);
        const struct image_manifest *usual = &images.list[0].manifest;

        assert_true(here && recipe);
        are_brought(names[i], &here->manifest.modules, &usual->modules,
                    &recipe->manifest.modules);
        are_brought(names[i], &here->manifest.programs, &usual->programs,
                    &recipe->manifest.programs);
        are_brought(names[i], &here->manifest.node_modules, &usual->node_modules,
                    &recipe->manifest.node_modules);
    }
}

/* Its image, of those that are allowed, once nothing is and once heavy is brought by packages.
 */
static void gets(const struct world_file *files, const char *allowed, const char *image,
                 const char *why, const char *why_with)
{
    image_set_t set = world_set_of(allowed);
    struct image_manifest brought = {.known = true};
    struct needs needs = {0};
    struct image_choice choice;
    struct skill skill;
    char lang[16];

    world_read_skill(files, &skill, &needs, lang);
    image_choose(&needs, &images, set, lang, &choice);
    assert_string_equal(images.list[choice.place].name, image);
    assert_string_equal(choice.why, why);
    assert_int_equal(skill_strings_insert(&brought.modules, "heavy", 9), 0);
    needs_bring(&needs, &brought, IMAGE_SET_ALL & ~world_set_of("own"));
    image_choose(&needs, &images, set, lang, &choice);
    assert_string_equal(choice.why, why_with);
    image_manifest_finish(&brought);
    needs_finish(&needs);
    skill_finish(&skill);
}

/* An image that takes no packages is none for a skill with such, whatever else it has. */
static void test_images_that_take_no_packages(void **state)
{
    static const char *const manifests[] = {"language python 3.11\nalone python\n",
                                            "language python 3.11\npypy 3.11\n"};
    static const struct world_file without[] = {
        {.path = "main.py", .content = "import heavy, yaml\n"}, {.path = NULL}};
    static const struct world_file with[] = {
        {.path = "main.py", .content = "import heavy, yaml\n"},
        {.path = "wheels/heavy-1.0-py3-none-any.whl", .content = "x"},
        {.path = NULL}};
    static const char taken[] = "smallest of 6 that takes its packages and has Python, yaml";
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof(manifests) / sizeof(manifests[0]); i++) {
        snprintf(text, sizeof(text), "%smodule heavy\nmodule yaml\n", manifests[i]);
        world_put("own.erofs", "", 50);
        world_put("own.manifest", text, 0);
        image_list_finish(&images);
        assert_int_equal(image_list_read(world_folder, &images, NULL), 0);
        gets(without, NULL, "own", "smallest of 6 that has Python, heavy, yaml", taken);
        gets(with, NULL, "python",
             "none of 6 takes its packages and has all: this one lacks heavy", taken);
        /* Where there is no other, the skill is told why it is refused. */
        gets(with, "own web", "own", "smallest of 2 that has Python, heavy, yaml",
             "smallest of 2 that has Python, yaml");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_what_is_to_be_built),
        cmocka_unit_test(test_long_reasons),
        cmocka_unit_test(test_the_images_are_ours),
        cmocka_unit_test(test_images_that_take_no_packages), /* adds one */
    };

    return cmocka_run_group_tests(tests, world_set_up, world_tear_down);
}
