#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scanner of imports against Python's own parser, over every source of a real library.

skill_imports.py PROGRAM [FOLDER…]

PROGRAM is skill_imports_show. Both must find the same names in the same order in every file
that this interpreter compiles, each file read once as an imported module and once as the one
that is run. What the parser refuses may be taken or refused by the scanner: it would not run.
"""
import ast
import os
import re
import subprocess
import sys
import warnings

FOLDERS = ["/usr/lib/python3.11", "/usr/lib/python3/dist-packages"]
ENCODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def declares_other_encoding(data):
    for line in re.split(rb"\r\n|\r|\n", data.removeprefix(b"\xef\xbb\xbf"))[:2]:
        match = ENCODING.match(line)
        if match:
            name = match[1].lower().replace(b"_", b"-").decode()
            return not (name in ("utf-8", "utf8", "ascii", "us-ascii") or name.startswith("utf-8-"))
        if line.strip(b" \t\f") and not line.lstrip(b" \t\f").startswith(b"#"):
            return False
    return False


def is_false(test, is_main):
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        left, right = test.left, test.comparators[0]
        return (
            not is_main
            and isinstance(left, ast.Name)
            and left.id == "__name__"
            and isinstance(right, ast.Constant)
            and right.value == "__main__"
        )
    if isinstance(test, ast.Attribute):
        node = test.value
        while isinstance(node, ast.Attribute):
            node = node.value
        return test.attr == "TYPE_CHECKING" and isinstance(node, ast.Name)
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def walk(body, is_main, found):
    for node in body:
        if isinstance(node, ast.Import):
            found += [(0, alias.name, "-") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, node.module or "-", alias.name) for alias in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        elif isinstance(node, ast.If) and is_false(node.test, is_main):
            walk(node.orelse, is_main, found)
        else:
            for part in ("body", "cases", "handlers", "orelse", "finalbody"):
                value = getattr(node, part, None)
                if isinstance(value, list):
                    walk(value, is_main, found)


def parse(path):
    """The syntax tree; None for what does not compile or is in another encoding."""
    with open(path, "rb") as source:
        data = source.read()
    if declares_other_encoding(data):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def scan(program, paths, is_main):
    prefix = "as main " if is_main else ""
    text = "".join(f"{prefix}{path}\n" for path in paths)
    result = subprocess.run([program], input=text.encode(), stdout=subprocess.PIPE, check=True)
    files, current = {}, None
    for line in result.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        if line.startswith("file "):
            current = files.setdefault(line[5:], [])
        elif line == "refused":
            files[next(reversed(files))] = None
        else:
            level, module, name = line.split(" ")
            current.append((int(level), module, name))
    return files


def sources(folders):
    paths = []
    for folder in folders:
        for directory, _, names in os.walk(folder):
            paths += [os.path.join(directory, name) for name in names if name.endswith(".py")]
    return sorted(path for path in paths if os.path.isfile(path))


def differs(path, tree, is_main, got):
    want = []
    walk(tree.body, is_main, want)
    if got == want:
        return False
    print(f"FAILED {path}{' as main' if is_main else ''}")
    print(f"  only the parser:  {[f for f in want if f not in (got or [])]}")
    print(f"  only the scanner: {[f for f in got or [] if f not in want]}")
    return True


def main():
    program = os.path.abspath(sys.argv[1])
    if sys.version_info[:2] != (3, 11) or not os.path.isdir(FOLDERS[0]):
        print("skipped: needs Python 3.11 and its library")
        return 77
    paths = sources(sys.argv[2:] or FOLDERS)
    readings = {is_main: scan(program, paths, is_main) for is_main in (False, True)}
    wrong = total = read = 0
    for path in paths:
        tree = parse(path)
        if tree is None:
            continue
        read += 1
        for is_main, files in readings.items():
            wrong += differs(path, tree, is_main, files[path])
            total += len(files[path] or [])
    print(f"{read} of {len(paths)} files, {total} names in two readings, {wrong} mismatches")
    return 1 if wrong or total < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
