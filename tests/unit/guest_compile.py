#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What compiles the packages that a snapshot holds leaves no more than its room.

guest_compile.py COMPILE.PY
"""
import importlib.util
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
# Some 4 KiB of constants for each of these short lines.
LINE = '"{}{}" * 2048,\n'
LETTERS = [chr(c) for c in range(ord("A"), ord("Z") + 1)]


def blown_up(kib):
    pairs = [(a, b) for a in LETTERS for b in LETTERS]
    return "x = (\n" + "".join(LINE.format(*pair) for pair in pairs[: kib // 4]) + ")\n"


class Compile(unittest.TestCase):
    def setUp(self):
        spec = importlib.util.spec_from_file_location("compile_packages", COMPILE)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        for name in ("a", "y", "z"):
            self.write(name, f"{name} = 1\n")

    def write(self, name, source):
        with open(os.path.join(self.folder, name + ".py"), "w", encoding="utf-8") as out:
            out.write(source)

    def compiled(self):
        with mock.patch.object(sys, "argv", ["compile.py", self.folder]):
            self.module.main()
        made = os.path.join(self.folder, "__pycache__")
        return sorted(name.partition(".")[0] for name in os.listdir(made))

    def test_all_where_there_is_room(self):
        self.write("b", blown_up(600))
        self.assertEqual(self.compiled(), ["a", "b", "y", "z"])

    def test_a_few_times_the_sources(self):
        self.write("b", blown_up(1200))
        self.assertEqual(self.compiled(), ["a"])

    def test_more_sources_may_take_more(self):
        self.write("b", blown_up(1200) + "#" * (1 << 20))
        self.assertEqual(self.compiled(), ["a", "b", "y", "z"])

    def test_never_more_than_so_much(self):
        self.write("b", blown_up(600))
        self.module.AT_MOST = 500 << 10
        self.assertEqual(self.compiled(), ["a"])
        self.setUp()
        self.assertLessEqual(self.module.AT_MOST, 64 << 20)

    def test_a_quarter_of_what_is_free(self):
        self.write("b", blown_up(600))
        free = os.statvfs_result((4096, 4096, 512, 512, 512, 0, 0, 0, 0, 255))
        with mock.patch.object(os, "statvfs", return_value=free):
            self.assertEqual(self.compiled(), ["a"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    COMPILE = sys.argv.pop()
    unittest.main()
