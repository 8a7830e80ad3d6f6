# SPDX-License-Identifier: Apache-2.0
"""Skills as tools with scripts that really run: on this machine, by tests/mcp/host_vmm.py.

What argparse_probe.py finds in a script, what the three APIs get of it, and what a call of it
does, by the Python client and by `skillvm tools`. SKILLVM names the command line's program.
"""

import json
import os
import subprocess
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
os.environ["FAKE_VMM"] = str(SOURCE / "tests/mcp/host_vmm.py")

import stand_in  # noqa: E402  after FAKE_VMM was set
import skillvm  # noqa: E402  found by stand_in

LENGTHS = ["C", "F", "K", "cm", "ft", "g", "in", "kg", "km", "lb", "m", "mi", "mm", "oz", "t", "yd"]
FILES = {
    "type": "array",
    "description": "Files that the script finds in /sandbox/in, each by its name; the content is "
                   "text, base64, or the uri of a file that an earlier call left",
    "items": {"type": "object", "properties": {
        "name": {"type": "string"}, "text": {"type": "string"}, "base64": {"type": "string"},
        "uri": {"type": "string"}}},
}
CONVERTER = {
    "type": "object",
    "properties": {
        "command": {
            "type": "string",
            "enum": ["convert", "units"],
            "description": "what to do. convert: convert a quantity; units: list the units",
        },
        "value": {"type": "number",
                  "description": "how much. With the command convert (required)."},
        "unit": {"type": "string", "enum": LENGTHS,
                 "description": "of what. With the command convert (required)."},
        "to": {"type": "string", "enum": LENGTHS,
               "description": "the unit of the answer. With the command convert (required)."},
        "digits": {"type": "integer", "default": 3,
                   "description": "decimals (default: 3) With the command convert."},
        "kind": {"type": "string", "enum": ["length", "mass", "temperature"],
                 "description": "only those of this kind. With the command units."},
        "names_only": {"type": "boolean", "default": False,
                       "description": "leave their kinds out. With the command units."},
        "files": FILES,
    },
    "required": ["command"],
    "additionalProperties": False,
}
SEVERAL = {
    "SKILL.md": "---\nname: several\ndescription: Has several scripts.\n---\nText.\n",
    "scripts/add.py": '"""Adds numbers."""\nimport argparse\np = argparse.ArgumentParser()\n'
                      'p.add_argument("numbers", nargs="+", type=int)\n'
                      'print(sum(p.parse_args().numbers))\n',
    "scripts/shout.sh": "tr a-z A-Z\n",
    "scripts/files.sh": 'cat "$SANDBOX_INPUT_DIR/words.txt"\n',
    "scripts/plain.py": 'import sys\nprint(sys.argv[1:], sys.stdin.read())\n',
    "scripts/copy.sh": 'cp "$SANDBOX_INPUT_DIR"/*.* "$SANDBOX_FILES_DIR"\n',
    "scripts/common.py": 'def double(n):\n    return 2 * n\n',
    "scripts/twice.py": 'import argparse\nfrom scripts.common import double\n'
                        'p = argparse.ArgumentParser()\np.add_argument("n", type=int)\n'
                        'print(double(p.parse_args().n))\n',
    "scripts/helper.py": 'import sys, helping\nprint(helping.word())\n',
    "scripts/helping/__init__.py": 'def word():\n    return "helped"\n',
}


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = stand_in.Daemon("--grace", "15", "--jail", str(SOURCE / "tests/mcp/host_jail.py"))
        cls.client = skillvm.Client(cls.daemon.socket)
        several = cls.daemon.dir / "several"
        for path, content in SEVERAL.items():
            (several / path).parent.mkdir(parents=True, exist_ok=True)
            (several / path).write_text(content)
        for folder in (SOURCE / "examples/unit-converter", SOURCE / "examples/word-counter",
                       SOURCE / "examples/text-stats-bash", several):
            cls.client.push_skill(folder)
        cls.wait_described()

    @classmethod
    def wait_described(cls):
        """A busy machine may need longer for its looks at scripts than a list waits for them."""
        until = time.monotonic() + 300
        while True:
            try:
                tools = {t["name"]: t["input_schema"] for t in cls.client.tools("anthropic")}
            except skillvm.APIError as error:
                if error.status != 503 or time.monotonic() > until:
                    raise
                continue
            has = [arguments in tools[name]["properties"] for name, arguments in
                   (("unit-converter", "command"), ("several__add", "numbers"), ("several__twice", "n"))]
            if all(has):
                return
            if time.monotonic() > until:
                raise AssertionError(f"scripts are never described: {tools}")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def cli(self, *arguments):
        return subprocess.run(
            [os.environ["SKILLVM"], "--socket", self.daemon.socket,
             "--data", str(self.daemon.dir / "cli"), "tools", *arguments],
            capture_output=True, text=True, timeout=120)

    def test_definitions_in_three_shapes(self):
        openai = {t["function"]["name"]: t["function"]["parameters"]
                  for t in self.client.tools("openai")}
        anthropic = {t["name"]: t["input_schema"] for t in self.client.tools("anthropic")}
        mcp = {t["name"]: t["inputSchema"] for t in self.client.tools("mcp")["tools"]}
        self.assertEqual(openai["unit-converter"], CONVERTER)
        self.assertEqual(openai, anthropic)
        self.assertEqual(openai, mcp)
        self.assertEqual(sorted(openai), [
            "run_code", "several__add", "several__common", "several__copy", "several__files",
            "several__helper", "several__plain", "several__shout", "several__twice",
            "text-stats-bash", "unit-converter", "word-counter"])
        self.assertEqual(openai["several__add"]["properties"], {
            "numbers": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "files": FILES})
        for name in ("several__shout", "several__helper", "text-stats-bash"):
            self.assertIs(openai[name]["additionalProperties"], True, name)
            self.assertEqual(sorted(openai[name]["properties"]), ["args", "files", "stdin"])

    def test_calls(self):
        call = self.client.call_tool
        answer = call("unit-converter", {"command": "convert", "value": -40, "unit": "C",
                                         "to": "F"})
        self.assertEqual((answer.status, answer.output["text"]), ("success", "-40 F"))
        answer = call("unit-converter", {"command": "units", "kind": "mass", "names_only": True})
        self.assertEqual(answer.output, ["g", "kg", "lb", "oz", "t"])
        answer = call("unit-converter", {"command": "convert", "value": 1, "unit": "C", "to": "m"})
        self.assertEqual((answer.status, answer.exit_code), ("failed", 1))
        self.assertIn("C is a temperature", answer.stderr)
        self.assertEqual(call("several__add", {"numbers": [1, -2, 30]}).output, 29)
        self.assertEqual(call("several__helper", {}).stdout, "helped\n")
        self.assertEqual(call("several__shout", {"a": "b"}).output, {"A": "B"})
        self.assertEqual(call("word-counter", {"text": "to be or not"}).output["words"], 4)

    def test_input_files(self):
        path = self.daemon.dir / "words.txt"
        path.write_text("one two three")
        sent = self.client.upload(path)
        answer = self.client.call_tool("several__files", {}, files=[sent["id"]])
        self.assertEqual(answer.stdout, "one two three")

    def test_what_says_nothing_of_itself(self):
        answer = self.client.call_tool("several__plain", {"args": ["-n", "a b"], "stdin": "\u00e4\n"})
        self.assertEqual(answer.stdout, "['-n', 'a b'] \u00e4\n\n")
        answer = self.client.call_tool("several__plain", {"args": ["x"], "n": 1})
        self.assertEqual(answer.stdout, "['x'] {\"n\":1}\n")
        self.assertEqual(self.client.call_tool("several__shout", {"stdin": "ab"}).stdout, "AB")

    def test_a_script_that_imports_its_own_package(self):
        self.assertEqual(self.client.call_tool("several__twice", {"n": 21}).output, 42)

    def test_files_of_a_call(self):
        call = self.client.call_tool
        answer = call("several__files", {"files": [{"name": "words.txt", "text": "\u00e4 b"}]})
        self.assertEqual(answer.stdout, "\u00e4 b")
        copied = call("several__copy", {"files": [
            {"name": "a.bin", "base64": "AP+A"}, {"name": "words.txt", "text": "left"}]})
        self.assertEqual(sorted(copied.files), ["a.bin", "words.txt"])
        left = f"execution://{copied.execution_id}/files/"
        answer = call("several__files", {"files": [{"uri": left + "words%2Etxt"}]})
        self.assertEqual(answer.stdout, "left")
        answer = call("several__files", {"files": [{"uri": left + "words.txt",
                                                    "name": "old/words.txt"},
                                                   {"name": "words.txt", "text": "new"}]})
        self.assertEqual(answer.stdout, "new")

    def test_refusals_name_the_argument(self):
        for arguments, reason in (
                ({}, '"command" is missing'),
                ({"command": "fly"}, '"command" must be one of ["convert","units"]'),
                ({"command": "convert", "value": "far", "unit": "m", "to": "km"},
                 '"value" must be a number'),
                ({"command": "convert", "value": 1, "unit": "parsec", "to": "km"},
                 '"unit" must be one of'),
                ({"command": "units", "value": 1}, 'no argument "value"')):
            with self.assertRaises(skillvm.APIError) as caught:
                self.client.call_tool("unit-converter", arguments)
            self.assertEqual(caught.exception.status, 400)
            self.assertIn(reason, str(caught.exception))

    def test_command_line(self):
        listed = self.cli("list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        row = next(line for line in listed.stdout.splitlines() if "unit-converter" in line)
        self.assertIn("command [value] [unit] [to] [digits] [kind] [names_only]", row)
        self.assertEqual(json.loads(self.cli("list", "openai").stdout),
                         self.client.tools("openai"))
        self.assertEqual(json.loads(self.cli("list", "-o", "json").stdout),
                         self.client.tools("mcp"))
        done = self.cli("call", "several__add", '{"numbers": [2, 3]}')
        self.assertEqual((done.returncode, done.stdout), (0, "5\n"), done.stderr)
        done = self.cli("call", "several__helper")
        self.assertEqual((done.returncode, done.stdout), (0, "helped\n"), done.stderr)
        done = self.cli("call", "several__add", '{"numbers": [2, 3]}', "-o", "json")
        self.assertEqual(json.loads(done.stdout)["output"], 5)
        done = self.cli("call", "unit-converter",
                        '{"command": "convert", "value": 1, "unit": "C", "to": "m"}')
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("C is a temperature", done.stderr)
        for arguments, status, reason in (
                (["call", "nothing"], 125, "no tool named nothing"),
                (["call", "several__add", "{}"], 125, '"numbers" is missing'),
                (["call", "several__add", "{"], 2, "line 1"),
                (["list", "xml"], 125, "openai, anthropic or mcp"),
                (["call"], 2, "no fewer than 1")):
            done = self.cli(*arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(reason, done.stderr)

    def test_looking_leaves_no_execution(self):
        before = len(list(self.client.executions()))
        self.client.tools()
        self.assertEqual(len(list(self.client.executions())), before)


if __name__ == "__main__":
    unittest.main()
