# SPDX-License-Identifier: Apache-2.0
"""What promises.py makes of a page and of findings that are made up."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import promises  # noqa: E402

PAGE = """# A page

| what | in a skill | why |
|---|---|---|
| `a b`, `c` | works | |
| `d` | denied: EPERM | root's |
| `e, f` | absent: no core | nobody would find them |
"""


def read(text):
    with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
        page.write(text)
        page.flush()
        return promises.read(page.name)


class Promises(unittest.TestCase):
    def test_a_page_is_read(self):
        found = {name: promise.ending for name, promise in read(PAGE).items()}
        self.assertEqual(found, {"a b": "works", "c": "works", "d": "EPERM", "e, f": "no core"})

    def test_what_is_no_promise_is_named_by_its_line(self):
        for row in ("| `g` | maybe | why |", "| `g` | denied: EPERM | |", "| `c` | works | |"):
            with self.assertRaisesRegex(ValueError, "line 8"):
                read(PAGE + row + "\n")

    def test_each_difference_has_its_line(self):
        kept = {"a b": "works", "c": "works", "d": "EPERM", "e, f": "no core"}
        self.assertEqual(promises.differences(read(PAGE), kept), [])
        changed = promises.differences(read(PAGE), {**kept, "c": "ENOSYS", "d": "works", "new": "works"})
        self.assertEqual(len(changed), 3)
        self.assertIn("line 5: `c` works, but it ended with 'ENOSYS'", changed)
        self.assertIn("line 6: `d` denied: EPERM, but it ended with 'works'", changed)
        self.assertIn("`new` has no line", changed)
        del kept["a b"]
        self.assertEqual(len(promises.differences(read(PAGE), kept)), 1)


if __name__ == "__main__":
    unittest.main()
