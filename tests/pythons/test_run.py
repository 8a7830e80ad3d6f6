# SPDX-License-Identifier: Apache-2.0
"""What run.py makes of reports that are made up, and that docs/syscalls.md lists what it runs."""

import collections
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent / "skill"))
sys.dont_write_bytecode = True

import main  # noqa: E402
import run  # noqa: E402


def report(**tests):
    """Endings and seconds by test; what a class of tests takes is all that counts."""
    named = {f"test.test_x.{name.replace('__', '.')}": value for name, value in tests.items()}
    return {"tests": named, "seconds": sum(taken for _, taken in named.values())}


class Children(unittest.TestCase):
    def test_interpreters_of_the_suite_s_find_it(self):
        seen = {}

        class Process:
            pid, returncode = 0, 0

            def __init__(self, _command, env, **_):
                seen.update(env)

            def wait(self, _seconds):
                return 0

        with tempfile.TemporaryDirectory() as place, \
                unittest.mock.patch.object(main, "PLACE", pathlib.Path(place)), \
                unittest.mock.patch.object(main.subprocess, "Popen", Process):
            for module, isolated in (("test_json", True), ("test_threading", False)):
                seen.clear()
                main.run({"module": module}, 1, pathlib.Path(place))
                # What script_helper of the suite goes by.
                self.assertEqual("PYTHONHOME" not in seen, isolated, module)


class Cuts(unittest.TestCase):
    def test_a_short_module_is_whole(self):
        units = run.cut("test_x", report(A__one=["passed", 1.0]))
        self.assertEqual([unit for unit, _ in units], [{"module": "test_x"}])

    def test_a_long_one_is_cut_by_classes_and_loses_none(self):
        tests = {f"C{n}__one": ["passed", 5.0] for n in range(20)}
        units = run.cut("test_x", report(**tests))
        self.assertGreater(len(units), 1)
        self.assertEqual(sorted(name for unit, _ in units for name in unit["classes"]),
                         sorted(f"C{n}" for n in range(20)))
        self.assertTrue(all(seconds <= run.TARGET_S for _, seconds in units))

    def test_batches_keep_order_and_time(self):
        units = collections.deque(({"module": str(n)}, run.TARGET_S * 0.4) for n in range(5))
        sizes = [len(run.next_batch(units)) for _ in range(3)]
        self.assertEqual((sizes, len(units)), ([2, 2, 1], 0))

    def test_one_that_takes_too_long_is_alone(self):
        units = collections.deque([({"module": "x"}, run.TARGET_S * 9), ({"module": "y"}, 1)])
        self.assertEqual(len(run.next_batch(units)), 1)


class Guest:
    """One whose time is over in the second unit of each execution."""

    def run(self, units):
        ends = ["0", "late", "not begun"]
        return [{"status": end, "tests": {unit["module"]: ["passed", 1]}, "seconds": 1}
                for unit, end in zip(units, ends)]


class Failing:
    def run(self, units):
        raise RuntimeError("the machine is gone")


class Batches(unittest.TestCase):
    BATCH = [({"module": name}, 1) for name in "xyz"]

    def test_what_was_not_done_is_tried_again(self):
        reports = [report for _, report in run.run_batch(Guest(), self.BATCH)]
        self.assertEqual([report is None for report in reports], [False, True, True])

    def test_what_ends_an_execution_is_found_alone(self):
        reports = [report for _, report in run.run_batch(Failing(), self.BATCH)]
        self.assertEqual(reports, [None] * 3)
        ((_, report),) = run.run_batch(Failing(), self.BATCH[:1])
        self.assertIn("gone", report["status"])

    def test_every_module_has_its_verdict(self):
        said = []
        verdicts = run.Verdicts({})
        verdicts.module = lambda name, *_: said.append(name)

        class Here:
            def run(self, units):
                return [report(A__one=["passed", 1.0])]

        run.compare(list("xyz"), Here(), Guest(), verdicts, None)
        self.assertEqual(sorted(said), list("xyz"))


class Verdicts(unittest.TestCase):
    HOST = report(A__one=["passed", 0.1], A__two=["passed", 0.1], A__three=["skipped: no", 0.1])

    def said(self, guest, excused=()):
        lines = []
        verdicts = run.Verdicts(dict.fromkeys(excused, "why"))
        verdicts.say = lambda word, text: lines.append((word, text))
        verdicts.module("test_x", self.HOST, guest["tests"], 1)
        verdicts.stale(["test_x"])
        return lines

    def test_the_same_is_well(self):
        self.assertEqual([word for word, _ in self.said(self.HOST)], ["ok"])

    def test_a_test_that_fails_skips_or_is_not_there_is_named(self):
        for guest in (report(A__one=["failed: E", 0.1], A__two=["passed", 0.1]),
                      report(A__one=["skipped: E", 0.1], A__two=["passed", 0.1]),
                      report(A__two=["passed", 0.1])):
            ((word, text),) = self.said(guest)
            self.assertEqual(word, "FAIL")
            self.assertIn("test.test_x.A.one", text)
            self.assertNotIn("A.two", text)

    def test_a_line_explains_it(self):
        guest = report(A__one=["failed: E", 0.1], A__two=["passed", 0.1])
        self.assertEqual([word for word, _ in self.said(guest, ["test.test_x.A.o*"])], ["ok"])

    def test_a_line_without_a_difference_fails(self):
        words = [word for word, _ in self.said(self.HOST, ["test.test_x.A.o*"])]
        self.assertEqual(words, ["ok", "FAIL"])

    def test_a_line_of_what_does_not_pass_here_stays(self):
        self.assertEqual([word for word, _ in self.said(self.HOST, ["test.test_x.A.three"])], ["ok"])

    def test_a_line_of_no_test_fails(self):
        words = [word for word, _ in self.said(self.HOST, ["test.test_x.A.four"])]
        self.assertEqual(words, ["ok", "FAIL"])

    def test_the_page_has_patterns_and_reasons(self):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write("| `test.test_x.A.*` | why |\n| `pread` | works | |\n| test | y |\n")
            page.flush()
            self.assertEqual(run.promised(pathlib.Path(page.name)), {"test.test_x.A.*": "why"})

    def test_a_number_that_is_far_off_fails(self):
        for said, words in ((3, []), (2, ["FAIL"]), (4, ["FAIL"])):
            lines = []
            verdicts = run.Verdicts({})
            verdicts.say = lambda word, text: lines.append(word)
            verdicts.module("test_x", self.HOST, self.HOST["tests"], 1)
            verdicts.number(said)
            self.assertEqual(lines, ["ok", *words])


class Page(unittest.TestCase):
    def named(self, begin, end):
        """Modules that the page names between two texts."""
        return re.findall(r"`(test_\w+)`", run.PAGE.read_text().split(begin)[1].split(end)[0])

    def test_it_lists_what_is_run(self):
        self.assertEqual(self.named("\nThe modules, ", "\n\n"), run.MODULES)
        self.assertEqual(self.named("\n`./dev test --long pythons-more` ", "\nLeft out "), run.MORE)

    def test_what_it_leaves_out_is_not_run(self):
        left_out = self.named("\nLeft out of both are\n", "\n\nTests ")
        self.assertTrue(left_out)
        self.assertFalse(set(left_out) & {*run.MODULES, *run.MORE})

    def test_what_differs_is_run(self):
        modules = {pattern.split(".")[1] for pattern in run.promised(run.PAGE)}
        self.assertLessEqual(modules, {*run.MODULES, *run.MORE})

    def test_it_has_a_number(self):
        self.assertGreater(run.number_of_tests(run.PAGE), 0)


if __name__ == "__main__":
    unittest.main()
