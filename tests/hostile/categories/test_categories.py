# SPDX-License-Identifier: Apache-2.0
"""What is made of runs and pages that are made up, and that no program of a category is missing."""

import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "e2e" / "inside")]
sys.dont_write_bytecode = True

import sandboxes  # noqa: E402
import table  # noqa: E402
from verdict import BLOCKED, ERROR, OPEN, Run, verdict  # noqa: E402


def told(*events):
    return "".join(json.dumps(event) + "\n" for event in events)


BEGIN, END, READY = ["begin", "kill"], ["end", None], ["ready", None]
REFUSED = ["refused", ["SIGKILL", "ESRCH"]]


class Verdicts(unittest.TestCase):
    def outcome(self, out, ended="exit 0", effects=(), category="kill"):
        return verdict(category, Run(out, ended), list(effects))[0]

    def test_a_program_that_came_to_its_end(self):
        out = told(BEGIN, REFUSED, END)
        self.assertEqual(self.outcome(out), BLOCKED)
        self.assertEqual(self.outcome("other words\n" + out), BLOCKED)
        self.assertEqual(self.outcome(out, effects=["the process was ended"]), OPEN)

    def test_what_proves_nothing(self):
        for out, ended in (
            ("", "exit 0"),
            (told(REFUSED, END), "exit 0"),
            (told(["begin", "cpu"], REFUSED, END), "exit 0"),
            (told(BEGIN, END), "exit 0"),
            (told(BEGIN, REFUSED), "exit 0"),
            (told(BEGIN, REFUSED, END), "exit 1: Traceback"),
            (told(BEGIN, REFUSED), "signal 9"),
            (told(BEGIN, REFUSED), "stopped"),
            (told(BEGIN, REFUSED), "timeout: timed out after 300 s"),
            (told(BEGIN, REFUSED), "out of memory"),
        ):
            self.assertEqual(self.outcome(out, ended), ERROR, (out, ended))

    def test_an_error_does_not_hide_an_effect(self):
        self.assertEqual(self.outcome("", "exit 1", ["a key was told"]), OPEN)

    def test_those_that_hold_what_they_took(self):
        out = told(["begin", "fork"], ["got", ["children", "63"]], READY)
        self.assertEqual(self.outcome(out, "stopped", category="fork"), BLOCKED)
        early = told(["begin", "fork"], ["got", ["children", "63"]])
        self.assertEqual(self.outcome(early, "stopped", category="fork"), ERROR)
        self.assertEqual(self.outcome(early, "out of memory", category="fork"), ERROR)
        memory = told(["begin", "memory"])
        self.assertEqual(self.outcome(memory, "out of memory", category="memory"), BLOCKED)


class Tables(unittest.TestCase):
    def setUp(self):
        self.found = {
            name: {sandbox: "open" for sandbox in table.SANDBOXES} for name in table.CATEGORIES
        }
        self.page = "\n".join([table.BEGIN, *table.rows(self.found), table.END, ""])

    def test_what_is_written_is_read(self):
        self.assertEqual(table.told(self.page), self.found)
        self.assertEqual(table.differences(self.page, self.found), [])
        lines = "".join(
            table.result_line(name, sandbox, outcome) + " (why)\n"
            for name, outcomes in self.found.items()
            for sandbox, outcome in outcomes.items()
        )
        self.assertEqual(table.results(lines), self.found)

    def test_another_outcome_is_a_difference(self):
        self.found["dns"]["crun"] = "blocked"
        self.assertEqual(len(table.differences(self.page, self.found)), 1)

    def test_a_page_with_other_rows(self):
        rows = self.page.splitlines(keepends=True)
        for page in (
            "".join(rows[:7] + rows[8:]),
            "".join(rows[:7] + [rows[6]] + rows[7:]),
            self.page.replace("looks for processes", "looks for more"),
            self.page.replace("| open |", "| error |", 1),
            self.page.replace("| open |", "| – |", 1),
            self.page.replace(table.END, ""),
        ):
            with self.assertRaises(ValueError):
                table.told(page)


class Programs(unittest.TestCase):
    def test_there_is_one_for_each_category(self):
        names = {path.stem for path in sandboxes.PROGRAMS.glob("*.py")} - {"prelude"}
        self.assertEqual(names, set(table.CATEGORIES))
        self.assertEqual(len(names), 20)
        for name in names:
            compile(sandboxes.source_of(name, {"category": name}), name, "exec")


if __name__ == "__main__":
    unittest.main()
