# SPDX-License-Identifier: Apache-2.0
"""Runs scripts with argparse or click through the probe, and the command lines made for them.

usage: tools_parsers.py PROBE TOOLS_ARGV

Each case is a script, arguments in JSON, and what its parser must make of the command line.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROBE, TOOL = sys.argv[1:3]

PLAIN = '''
"""Says what it was given."""
import argparse, json, pathlib

def number(text):
    return int(text, 0)

p = argparse.ArgumentParser(description="Works on %(prog)s files.")
p.add_argument("source", type=pathlib.Path, help="where from")
p.add_argument("rest", nargs="*", type=float)
p.add_argument("-n", "--count", type=int, default=3, help="how often (%(default)s)")
p.add_argument("--base", type=number, default=10)
p.add_argument("--mode", choices=["fast", "slow"], default="fast")
p.add_argument("--level", type=int, choices=range(3))
p.add_argument("--pair", nargs=2, metavar=("A", "B"))
p.add_argument("--tag", action="append")
p.add_argument("--point", action="append", nargs=2, type=int)
p.add_argument("--more", action="extend", nargs="+")
p.add_argument("--names", nargs="+")
p.add_argument("--maybe", nargs="?", const="alone", default="absent")
p.add_argument("--dry-run", action="store_true")
p.add_argument("--no-color", dest="color", action="store_false")
p.add_argument("--no-cache", action="store_false")
p.add_argument("--clean", action=argparse.BooleanOptionalAction, default=True)
p.add_argument("-v", action="count", default=0)
p.add_argument("--data", type=json.loads)
p.add_argument("--yes", type=bool, default=False)
p.add_argument("--secret", help=argparse.SUPPRESS)
p.add_argument("-q", dest="v", action="store_const", const=-1)
'''

COMMANDS = '''
import argparse, json
common = argparse.ArgumentParser(add_help=False)
common.add_argument("--verbose", action="store_true", help="say more")
p = argparse.ArgumentParser(parents=[common])
p.add_argument("--store", nargs="*")
s = p.add_subparsers(dest="command", required=True, help="what to do")
a = s.add_parser("add", help="adds one", aliases=["a"], parents=[common])
a.add_argument("title")
a.add_argument("--level", type=int)
r = s.add_parser("remove", help="takes one away")
r.add_argument("number", type=int)
r.add_argument("--level", choices=["one", "all"], required=True)
deep = s.add_parser("remote").add_subparsers()
deep.add_parser("list", description="Lists them.").add_argument("words", nargs=argparse.REMAINDER)
'''

GROUPS = '''
import argparse
p = argparse.ArgumentParser()
g = p.add_mutually_exclusive_group(required=True)
g.add_argument("--text")
g.add_argument("--file")
p.add_argument("+x", action="store_true") if False else None
p.add_argument("-5", dest="five", action="store_true")
p.add_argument("value", nargs="?", type=int)
'''

CLICK = '''
"""Draws."""
import click, json

@click.command(help="Draws shapes.\\fNot for help.")
@click.argument("target")
@click.argument("points", nargs=-1, type=int)
@click.option("-n", "--count", type=click.IntRange(1, 9), default=3, show_default=True, help="How often.")
@click.option("--scale", type=float, required=True)
@click.option("--style", type=click.Choice(["plain", "round"]))
@click.option("--tag", multiple=True)
@click.option("--size", nargs=2, type=int)
@click.option("--pair", multiple=True, nargs=2)
@click.option("--color/--no-color", default=True)
@click.option("--loud/--quiet", default=True)
@click.option("--fill", is_flag=True)
@click.option("-v", "--verbose", count=True)
@click.option("--name", prompt=True)
@click.option("--exact", type=bool)
@click.option("--data", type=json.loads)
@click.option("-x", type=int)
@click.option("--hidden", hidden=True)
@click.version_option("1")
def draw(**given):
    print(json.dumps(given, default=str))

if __name__ == "__main__":
    draw()
'''

CLICK_GROUP = '''
import click, json

@click.group()
@click.option("--level", type=int)
@click.pass_context
def tasks(context, level):
    context.obj = {"level": level}

@tasks.command()
@click.argument("title")
@click.option("--due")
@click.pass_obj
def add(obj, **given):
    """Adds a task."""
    print(json.dumps({"did": "add", **obj, **given}))

@tasks.command(hidden=True)
def secret():
    pass

@tasks.group()
def list():
    """Lists them."""

@list.command()
@click.argument("words", nargs=-1, required=True)
def all(words):
    print(json.dumps({"did": "all", "words": words}))

tasks()
'''

TYPER = '''
import enum, json, typer

class Color(str, enum.Enum):
    red = "red"
    blue = "blue"

def main(name: str, times: int = 1, color: Color = Color.red, formal: bool = False):
    """Greets."""
    print(json.dumps({"name": name, "times": times, "color": color.value, "formal": formal}))

typer.run(main)
'''

END = '''
print(json.dumps(vars(p.parse_args()), default=str))
raise SystemExit(0)
'''


class Cases(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.dir.name)
        (self.root / "probe.py").write_text(pathlib.Path(PROBE).read_text())

    def tearDown(self):
        self.dir.cleanup()

    def probe(self, script, name="script.py"):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        output = self.root / "output.json"
        output.unlink(missing_ok=True)
        done = subprocess.run(
            ["/usr/bin/python3", self.root / "probe.py", name],
            env={**os.environ, "SANDBOX_OUTPUT": str(output)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertTrue(output.exists(), done.stderr)
        return json.loads(output.read_text())

    def tool(self, *arguments):
        return subprocess.run(
            [TOOL, self.root / "output.json", *arguments], capture_output=True, text=True
        )

    def schema(self):
        done = self.tool()
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def argv(self, arguments):
        done = self.tool(json.dumps(arguments))
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def parsed(self, arguments):
        """What the script's own parser makes of the command line for these arguments."""
        argv = self.argv(arguments)
        done = subprocess.run(
            ["/usr/bin/python3", self.root / "script.py", *argv], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, f"{argv}: {done.stderr}")
        return json.loads(done.stdout)

    def refused(self, arguments, reason):
        done = self.tool(json.dumps(arguments))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(reason, done.stderr)

    def test_schema(self):
        self.assertEqual(self.probe(PLAIN + END)["doc"], "Says what it was given.")
        schema = self.schema()
        properties = schema["properties"]
        self.assertEqual(schema["type"], "object")
        self.assertEqual(schema["required"], ["source"])
        self.assertIs(schema["additionalProperties"], False)
        self.assertNotIn("secret", properties)
        expected = {
            "source": {"type": "string", "description": "where from"},
            "rest": {"type": "array", "items": {"type": "number"}},
            "count": {"type": "integer", "default": 3, "description": "how often (3)"},
            "base": {"type": "integer", "default": 10},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            "level": {"type": "integer", "enum": [0, 1, 2]},
            "pair": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
            "tag": {"type": "array", "items": {"type": "string"}},
            "names": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "boolean"}], "default": "absent"},
            "dry_run": {"type": "boolean", "default": False},
            "color": {"type": "boolean", "default": True},
            "no_cache": {"type": "boolean", "default": True},
            "v": {"type": "integer", "minimum": 0, "maximum": 32, "default": 0},
            "q": {"type": "boolean"},
            "data": {},
        }
        for name, value in expected.items():
            self.assertEqual(properties[name], value, name)

    def test_values(self):
        self.probe(PLAIN + END)
        for arguments, expected in (
            ({"source": "a"}, {"source": "a", "count": 3, "color": True, "rest": []}),
            ({"source": "-a", "rest": [-1, 2.5]}, {"source": "-a", "rest": [-1.0, 2.5]}),
            ({"source": "--count=9"}, {"source": "--count=9", "count": 3}),
            ({"source": "x", "count": -7, "level": 2}, {"count": -7, "level": 2}),
            ({"source": "x", "count": "12"}, {"count": 12}),
            ({"source": "x", "mode": "slow"}, {"mode": "slow"}),
            ({"source": "x", "pair": ["a b", "-3"]}, {"pair": ["a b", "-3"]}),
            ({"source": "x", "tag": ["--no-color", "", "=="]}, {"tag": ["--no-color", "", "=="]}),
            ({"source": "x", "point": [[1, 2], [-3, 4]]}, {"point": [[1, 2], [-3, 4]]}),
            ({"source": "x", "more": ["-a", "b"]}, {"more": ["-a", "b"]}),
            ({"source": "x", "names": ["a", "b"], "rest": [1]}, {"names": ["a", "b"]}),
            ({"source": "x", "names": ["-only"]}, {"names": ["-only"], "source": "x"}),
            ({"source": "x", "maybe": True}, {"maybe": "alone", "source": "x"}),
            ({"source": "x", "maybe": False}, {"maybe": "absent"}),
            ({"source": "x", "maybe": "-v"}, {"maybe": "-v", "v": 0}),
            ({"source": "x", "dry_run": True, "color": False}, {"dry_run": True, "color": False}),
            ({"source": "x", "dry_run": False, "color": True}, {"dry_run": False, "color": True}),
            ({"source": "x", "no_cache": True}, {"no_cache": False}),
            ({"source": "x", "clean": False}, {"clean": False}),
            ({"source": "x", "clean": True}, {"clean": True}),
            ({"source": "x", "v": 3}, {"v": 3}),
            ({"source": "x", "q": True}, {"v": -1}),
            ({"source": "x", "data": {"a": [1, None]}}, {"data": {"a": [1, None]}}),
            ({"source": "x", "yes": True}, {"yes": True}),
            ({"source": "x", "yes": False}, {"yes": False}),
            ({"source": "x", "base": 16, "count": None}, {"base": 16, "count": 3}),
            ({"source": "caf\u00e9 \U0001f600\n"}, {"source": "caf\u00e9 \U0001f600\n"}),
        ):
            result = self.parsed(arguments)
            for name, value in expected.items():
                self.assertEqual(result[name], value, f"{arguments}: {name}")

    def test_refusals(self):
        self.probe(PLAIN + END)
        for arguments, reason in (
            ({}, '"source" is missing'),
            ({"source": "x", "other": 1}, 'no argument "other"'),
            ({"source": "x", "secret": "y"}, 'no argument "secret"'),
            ({"source": ["x"]}, '"source" must be text'),
            ({"source": "x", "count": "many"}, '"count" must be a whole number'),
            ({"source": "x", "count": 1.5}, '"count" must be a whole number'),
            ({"source": "x", "mode": "odd"}, 'must be one of ["fast","slow"]'),
            ({"source": "x", "level": 3}, "must be one of [0,1,2]"),
            ({"source": "x", "pair": ["a"]}, "must be a list of 2 values, not 1"),
            ({"source": "x", "pair": ["a", "--tag"]}, '"pair" cannot have the value "--tag"'),
            ({"source": "x", "names": []}, '"names" must have at least one value'),
            ({"source": "x", "tag": "a"}, '"tag" must be a list'),
            ({"source": "x", "dry_run": "yes"}, '"dry_run" must be true or false'),
            ({"source": "x", "v": 99}, '"v" must be a whole number from 0 to 32'),
            ({"source": "--"}, '"source" cannot be "--"'),
            ({"source": "a\0b"}, "NUL"),
            ([], "must be a JSON object"),
        ):
            self.refused(arguments, reason)

    def test_commands(self):
        self.probe(COMMANDS + END)
        schema = self.schema()
        properties = schema["properties"]
        self.assertEqual(schema["required"], ["command"])
        self.assertEqual(properties["command"]["enum"], ["add", "remove", "remote"])
        self.assertIn("add: adds one; remove: takes one away", properties["command"]["description"])
        self.assertEqual(
            properties["title"],
            {"type": "string", "description": "With the command add (required)."},
        )
        self.assertEqual(
            properties["level"]["anyOf"],
            [{"type": "integer"}, {"type": "string", "enum": ["one", "all"]}],
        )
        self.assertEqual(
            properties["level"]["description"], "With the command add, remove (required)."
        )
        self.assertEqual(properties["subcommand"]["enum"], ["list"])
        self.assertEqual(
            properties["verbose"],
            {"type": "boolean", "default": False, "description": "say more"},
        )
        for arguments, expected in (
            ({"command": "add", "title": "-x", "level": 2}, {"title": "-x", "level": 2}),
            ({"command": "add", "title": "t", "verbose": True}, {"verbose": True}),
            ({"command": "remove", "number": -4, "level": "all"}, {"number": -4, "level": "all"}),
            ({"command": "remote", "verbose": True}, {"command": "remote", "verbose": True}),
            (
                {"command": "remote", "subcommand": "list", "words": ["a", "--b", "-c"]},
                {"words": ["a", "--b", "-c"]},
            ),
            ({"command": "remote", "store": ["one"]}, {"store": ["one"]}),
        ):
            result = self.parsed(arguments)
            for name, value in expected.items():
                self.assertEqual(result[name], value, f"{arguments}: {name}")
        for arguments, reason in (
            ({}, '"command" is missing'),
            ({"command": "a", "title": "t"}, '"command" must be one of ["add","remove","remote"]'),
            ({"command": "add"}, '"title" is missing'),
            ({"command": "remove", "number": 1}, '"level" is missing'),
            ({"command": "remove", "number": 1, "level": 5}, '"level" must be one of'),
            ({"command": "add", "title": "t", "number": 1}, 'no argument "number"'),
            ({"command": "remote", "store": ["a", "b"]}, "cannot be given like this"),
        ):
            self.refused(arguments, reason)

    def test_groups(self):
        self.probe(GROUPS.replace("import argparse", "import argparse, json") + END)
        properties = self.schema()["properties"]
        self.assertEqual(
            properties["text"]["description"],
            "(one of these is required: text, file; not together with file)",
        )
        # With an option that looks like one, no number is a value by itself.
        self.assertEqual(self.argv({"text": "t", "value": -6}), ["--text=t", "--", "-6"])
        self.assertEqual(self.parsed({"file": "f", "value": -6})["value"], -6)

    def test_click(self):
        self.assertEqual(self.probe(CLICK)["doc"], "Draws.")
        schema = self.schema()
        properties = schema["properties"]
        self.assertEqual(sorted(schema["required"]), ["name", "scale", "target"])
        self.assertEqual(
            properties["count"], {"type": "integer", "default": 3, "description": "How often."}
        )
        self.assertEqual(properties["style"]["enum"], ["plain", "round"])
        self.assertEqual(properties["exact"]["enum"], ["true", "false"])
        self.assertEqual(properties["points"], {"type": "array", "items": {"type": "integer"}})
        # "-x=5" would be "=5" for click, and --version ends the script.
        for name in ("x", "hidden", "version"):
            self.assertNotIn(name, properties)
        plain = {"target": "t", "scale": 1.5, "name": "n"}
        for arguments, expected in (
            ({}, {"target": "t", "scale": 1.5, "name": "n", "count": 3, "points": []}),
            ({"target": "--scale", "points": [-1, 2]}, {"target": "--scale", "points": [-1, 2]}),
            ({"count": 9, "style": "round"}, {"count": 9, "style": "round"}),
            ({"tag": ["a", "-b"]}, {"tag": ["a", "-b"]}),
            ({"size": [3, 4], "pair": [["a", "b"], ["c", "d"]]}, {"size": [3, 4]}),
            ({"pair": [["a", "b"], ["c", "d"]]}, {"pair": [["a", "b"], ["c", "d"]]}),
            ({"color": False, "loud": False}, {"color": False, "loud": False}),
            ({"color": True, "loud": True}, {"color": True, "loud": True}),
            ({"fill": True, "verbose": 3}, {"fill": True, "verbose": 3}),
            ({"exact": "false", "data": {"a": [1]}}, {"exact": False, "data": {"a": [1]}}),
        ):
            result = self.parsed({**plain, **arguments})
            for name, value in expected.items():
                self.assertEqual(result[name], value, f"{arguments}: {name}")
        self.refused({"target": "t", "scale": 1}, '"name" is missing')
        self.refused({**plain, "style": "odd"}, '"style" must be one of')

    def test_click_groups(self):
        self.assertEqual(self.probe(CLICK_GROUP)["parser"]["actions"][1]["kind"], "commands")
        self.assertEqual(self.schema()["properties"]["command"]["enum"], ["add", "list"])
        for arguments, expected in (
            (
                {"level": 2, "command": "add", "title": "-t", "due": "now"},
                {"did": "add", "level": 2, "title": "-t", "due": "now"},
            ),
            (
                {"command": "list", "subcommand": "all", "words": ["--a", "b"]},
                {"did": "all", "words": ["--a", "b"]},
            ),
        ):
            self.assertEqual(self.parsed(arguments), expected)
        self.refused({"level": 1}, '"command" is missing')

    def test_typer(self):
        self.assertEqual(self.probe(TYPER)["parser"]["description"], "Greets.")
        self.assertEqual(self.schema()["required"], ["name"])
        expected = {"name": "n", "times": 2, "color": "blue", "formal": True}
        self.assertEqual(self.parsed(expected), expected)

    def test_click_that_cannot_be_called(self):
        script = CLICK.replace('"-x", type=int', '"-x", type=int, required=True')
        self.assertIsNone(self.probe(script)["parser"])

    def test_not_run(self):
        script = '"""Only talks of argparse."""\nopen("ran", "w")\nprint("argparse")\n'
        self.assertEqual(
            self.probe(script), {"version": 1, "doc": "Only talks of argparse.", "parser": None}
        )
        self.assertFalse((self.root / "ran").exists())
        self.assertFalse(os.path.exists("ran"))

    def test_stops_there(self):
        mark = self.root / "mark"
        script = (
            "import atexit, sys\nfrom argparse import ArgumentParser as P\n"
            f"atexit.register(lambda: open({str(mark)!r}, 'w'))\n"
            "if __name__ == '__main__':\n"
            "    import helper\n"
            "    class Own(P):\n"
            "        def parse_known_args(self, *a, **k):\n"
            "            return super().parse_known_args(*a, **k)\n"
            "    p = Own(prog='x', description='%(prog)s!'); p.add_argument('a', nargs=1)\n"
            "    try:\n"
            "        p.parse_args()\n"
            "    finally:\n"
            f"        open({str(mark)!r}, 'w')\n"
        )
        (self.root / "scripts").mkdir()
        (self.root / "scripts" / "helper.py").write_text("X = 1\n")
        answer = self.probe(script, "scripts/script.py")
        self.assertEqual(answer["parser"]["description"], "x!")
        self.assertEqual(answer["parser"]["actions"][0]["nargs"], 1)
        self.assertFalse(mark.exists())

    def test_what_fails_has_no_parser(self):
        for script in (
            "import argparse\nraise ValueError('early')\n",
            "import argparse, sys\nsys.exit(3)\n",
            "import argparse\nprint('no parser is asked')\n",
            "import argparse\nimport missing_module\n",
            "import argparse\nthis is no Python\n",
            "",
        ):
            self.assertIsNone(self.probe(script)["parser"], script)

    def test_odd_parsers(self):
        script = (
            "import argparse, json\nclass A:\n"
            "    def __contains__(self, x): return True\n"
            "p = argparse.ArgumentParser()\n"
            "p.add_argument('--any', choices=A(), metavar='X')\n"
            "p.add_argument('--nan', type=float, default=float('nan'))\n"
            "p.add_argument('--half', default='\\ud800')\n"
            "p.add_argument('--object', default=object())\n"
            "p.add_argument('--big', type=int, default=10**30)\n"
            "p.add_argument('--many', choices=range(1000), type=int)\n"
            "p.add_argument('--odd-help', help='100% of %(nothing)s')\n"
            "p.add_argument('--clash', dest='nan', action='store_true')\n"
            "p.add_argument('--d\u00e9j\u00e0')\n"
        )
        self.probe(script + END)
        properties = self.schema()["properties"]
        self.assertEqual(properties["any"], {"type": "string"})
        self.assertEqual(properties["nan"], {"type": "number"})
        self.assertEqual(properties["half"], {"type": "string"})
        self.assertEqual(properties["big"], {"type": "integer"})
        self.assertEqual(properties["many"], {"type": "integer"})
        self.assertEqual(properties["clash"]["type"], "boolean")
        self.assertEqual(properties["d_j_"], {"type": "string"})
        self.assertEqual(self.parsed({"d_j_": "x"})["d\u00e9j\u00e0"], "x")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
