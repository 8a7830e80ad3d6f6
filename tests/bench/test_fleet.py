# SPDX-License-Identifier: Apache-2.0
"""The fleet's bench, without a server: the simulation accounts for every execution and repeats, its
parts do what they say, and tables and plots show what was found.
"""

import json
import random
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLEET = ROOT / "bench" / "fleet"
sys.path[:0] = [str(FLEET), str(ROOT / "bench")]

import placement  # noqa: E402
import simulate  # noqa: E402
from placement import FLOODING, PATTERNS, PLACEMENTS, Costs, World, arrivals  # noqa: E402

SMALL = World(10, "steady", seconds=10)


def run(placement_of, pattern="steady", **more):
    return placement_of(replace(SMALL, pattern=pattern, **more), Costs()).run()


class Parts(unittest.TestCase):
    def test_tenants_take_turns(self):
        fair = placement.Fair(2)
        jobs = [placement.Job(i, tenant, 0, 1.0) for i, tenant in enumerate((7, 7, 7, 8))]
        self.assertEqual([fair.push(job) for job in jobs], [True, True, False, True])
        self.assertEqual([fair.pop().tenant for _ in range(fair.size)], [7, 8, 7])
        self.assertEqual(fair.size, 0)

    def test_a_member_that_went_is_not_taken(self):
        among, rng = placement.Among(range(5)), random.Random(1)
        for gone in (0, 4, 4, 2):
            among.remove(gone)
        self.assertEqual({among.any(rng) for _ in range(100)}, {1, 3})
        self.assertEqual(len(among), 2)

    def test_costs_are_those_that_were_measured(self):
        rows = [{"part": "hop", "ms": {"p50": 2.5}}, {"part": "machine"},
                {"part": "stream", "replicas": 1, "bytes": 1024, "in_flight": 1, "ms": {"p50": 9}},
                {"part": "stream", "replicas": 3, "bytes": 1024, "in_flight": 1, "ms": {"p50": 0.7}}]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "measured.jsonl")
            path.write_text("\n".join(map(json.dumps, rows)))
            self.assertEqual(simulate.measured_costs(path), Costs(hop_ms=2.5, ack_ms=0.7))
        self.assertEqual(simulate.measured_costs(None), Costs())


class Placements(unittest.TestCase):
    def test_every_execution_has_one_end(self):
        for pattern in PATTERNS:
            came = sum(1 for _ in arrivals(replace(SMALL, pattern=pattern), random.Random(2)))
            for kind in PLACEMENTS:
                fleet = run(kind, pattern)
                self.assertEqual(len(fleet.rows) + len(fleet.refused) + fleet.lost, came,
                                 (kind.name, pattern))
                self.assertTrue(all(n.free == fleet.world.slots and not n.queue.size
                                    for n in fleet.nodes if n.alive), (kind.name, pattern))
                self.assertEqual(fleet.lost > 0, pattern == "rack", (kind.name, pattern))

    def test_one_seed_gives_one_result(self):
        for kind in PLACEMENTS:
            self.assertEqual(run(kind).rows, run(kind).rows)
            self.assertNotEqual(run(kind).rows, run(kind, seed=2).rows)

    def test_who_asks_for_the_snapshot_finds_it_more_often(self):
        shares = {kind.name: simulate.figures(run(kind, nodes=50))["warm_share"]
                  for kind in PLACEMENTS}
        self.assertGreater(shares["warm"], shares["group"] + 0.2)
        self.assertLessEqual(shares["warm"], shares["central"] + 0.02)

    def test_nothing_waits_where_there_is_room(self):
        fleet = run(placement.Fleet, slots=64, work_s=20)
        self.assertLess(simulate.figures(fleet)["wait_ms"]["p99"],
                        fleet.costs.cold_ms + fleet.costs.ack_ms + 2 * fleet.costs.hop_ms)

    def test_a_flood_is_refused_and_others_are_not(self):
        for kind in PLACEMENTS:
            fleet = run(kind, "flood", seconds=20)
            self.assertEqual(set(fleet.refused), {FLOODING}, kind.name)


class Recorded(unittest.TestCase):
    LINES = ("5.5,a,one,0.25", "5,b,one,1", "7,a,one,0.5", "9.5,a,two,0")

    def test_what_was_recorded_comes_as_it_came(self):
        found = placement.record(self.LINES)
        # Skills of two tenants are two.
        self.assertEqual(found, ((0, 1, 1, 1), (0.5, 0, 0, 0.25), (2, 0, 0, 0.5), (4.5, 0, 2, 0)))
        for kind in PLACEMENTS:
            fleet = kind(placement.recorded_world(3, found), Costs()).run()
            self.assertEqual([row[1] for row in sorted(fleet.rows, key=lambda row: row[1])],
                             [0, 0.5, 2, 4.5], kind.name)

    def test_what_is_no_arrival_is_told_with_its_line(self):
        for line in ("1,a,one", "x,a,one,1", "1,a,one,-1", "nan,a,one,1", "1,a,one,inf", ""):
            with self.assertRaisesRegex(ValueError, "line 2: "):
                placement.record((self.LINES[0], line))

    def test_the_program_takes_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "arrivals.csv")
            path.write_text("\n".join(self.LINES) + "\n")
            command = [sys.executable, "-B", str(FLEET / "simulate.py"), "--no-plots", "--nodes", "2",
                       "--output", folder, "--arrivals"]
            done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True)
            self.assertIn("recorded:", done.stdout)
            self.assertNotIn("steady:", done.stdout)
            path.write_text("nothing\n")
            done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--arrivals: line 1: ", done.stderr)


class Shown(unittest.TestCase):
    def test_tables_and_plots_name_all(self):
        rows = [simulate.figures(run(kind, pattern)) for pattern in PATTERNS for kind in PLACEMENTS]
        text = simulate.markdown(rows)
        script = "\n".join(simulate.plot_waits(rows, "out.svg"))
        for name in simulate.NAMES.values():
            self.assertIn(f"| {name} | 10 |", text)
            self.assertIn(name, script)
        self.assertIn("every node follows all",
                      "\n".join(simulate.plot_messages(Costs(), "out.svg")))

    def test_messages_of_entries_grow_with_the_square(self):
        few, many = (simulate.messages(n, 0, 0, 3.0)["entries"] for n in (100, 1000))
        self.assertGreater(many / few, 50)
        self.assertEqual(many, 6 * 1000 / 3 + 1e6 / 9)

    def test_measured_rows_as_a_table(self):
        import measure
        text = measure.markdown([
            {"part": "hop", "what": "there and back", "n": 2000, "ms": {"p50": 1.0, "p99": 2.5}},
            {"part": "memory", "what": "servers", "n": 5, "mib": [1.5, 2.0]},
            {"part": "memory", "what": "a node", "n": 5, "most_mib": 3.25}])
        self.assertIn("| there and back | 2,000 | 1.00/2.50 |", text)
        self.assertIn("| servers | 5 | 1.50, 2.00 | – |", text)

    def test_help_says_what_there_is(self):
        for program, word in (("measure.py", "--rows"), ("simulate.py", "--measured")):
            done = subprocess.run([sys.executable, "-B", str(FLEET / program), "--help"],
                                  capture_output=True, text=True, check=True)
            self.assertIn(word, done.stdout)


if __name__ == "__main__":
    unittest.main()
