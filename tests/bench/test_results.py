# SPDX-License-Identifier: Apache-2.0
"""The bench's own code, without a machine: the form of results, what is drawn of them, what
--compare finds, which promises were held, and the program that takes the times.
"""

import contextlib
import copy
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
sys.path[:0] = [str(BENCH), str(ROOT / "api" / "clients" / "python")]

import compare  # noqa: E402
import daemon  # noqa: E402
import inside  # noqa: E402
import peers  # noqa: E402
import promises  # noqa: E402
import report  # noqa: E402
import run as bench_run  # noqa: E402

SCHEMA = json.loads((BENCH / "schema.json").read_text())


def execution(machine, clients, ms):
    samples = [{"at": i * ms, "ms": ms, "bytes": 0, "machine": machine if machine != "parked" else "fresh",
                "phases_ms": {"queue": 1, "run": ms / 2}} for i in range(100)]
    row = {"skill": "hello", "machine": machine, "clients": clients, "runs": 100, "failed": 0,
           "problem": None, "machines": {}, "response_ms": None, "cycle_ms": None,
           "per_second": None, "phases_ms": {}, "daemon_ms": None, "over_time": []}
    inside.Bench.fill(row, samples, 100 * ms + 5, 100)
    return row


def host(kind="counting", name=None):
    median = {"exits": 2803, "nested_page_faults": 2796, "vmm_page_faults": 900,
              "vmm_system_calls": 1200}
    return {
        "name": name or kind, "kind": kind, "problem": None, "kernel": "6.1.0", "cpu": "made up",
        "cpus": 1, "pooled": True,
        "executions": [execution("fresh", 1, 40.0), execution("reused", 1, 4.0),
                       execution("fresh", 8, 300.0), execution("reused", 8, 30.0)],
        "counts": [{"skill": "hello", "machine": "fresh", "runs": 3, "problem": None,
                    "median": median, "exits_by_reason": {"0x400": 2796},
                    "vmm_system_calls_by_number": {"16": 700}}],
        "density": [{"state": "parked", "machines": 8, "private_bytes": 6 << 20,
                     "shared_bytes": 13 << 20, "host_bytes": 7 << 20}],
        "machine_alone": {"problem": None, "bytes": {"vmlinux": 11},
                          "boot_ms": {"resumed": 5, "connected": 77.1, "ready": 200.5},
                          "restore_ms": {"resumed": 4, "connected": 6, "ready": 6.8}},
        "peers": [{"name": "python3 -c pass", "version": "3.11.2", "command": "python3 -c pass",
                   "time_ms": inside.summary([32.0] * 5), "problem": None},
                  {"name": "crun", "version": "1.8.1", "command": None, "time_ms": None,
                   "problem": "no | cgroup\nhere"}],
    }


def document(*hosts):
    return {"schema": bench_run.SCHEMA, "tree": "v1", "date": "2026-01-02T03:04:05Z", "runs": 100,
            "hosts": list(hosts) or [host()]}


class Form(unittest.TestCase):
    def check(self, results):
        jsonschema.Draft202012Validator(SCHEMA).validate(results)

    def test_results_are_of_the_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        self.assertEqual(bench_run.SCHEMA, SCHEMA["properties"]["schema"]["const"])
        self.check(document(host(), host("soft"), {"name": "native", "kind": "native",
                                                   "problem": "no results"}))

    def test_what_is_not_of_the_schema_is_told_apart(self):
        for spoil in (lambda d: d.update(schema="skillvm-bench/0"),
                      lambda d: d["hosts"][0]["executions"][0].pop("cycle_ms"),
                      lambda d: d["hosts"][0]["peers"][0].update(more=1),
                      lambda d: d["hosts"][0]["counts"][0]["median"].update(exits="many")):
            results = document()
            spoil(results)
            with self.assertRaises(jsonschema.ValidationError):
                self.check(results)

    def test_parts_are_the_same_on_both_sides(self):
        self.assertEqual(bench_run.PARTS + bench_run.ASKED, tuple(inside.PARTS))

    def test_a_python3_is_measured_with_any_part(self):
        for words, peers_of, parts in (([], list(peers.PEERS), list(bench_run.PARTS)),
                                       (["--only", "memory"], ["python3"], ["memory", "peers"]),
                                       (["--peers", "crun"], ["python3", "crun"], list(bench_run.PARTS))):
            plan = json.loads(bench_run.plan(bench_run.arguments(words), "soft"))
            self.assertEqual((plan["peers"], plan["parts"]), (peers_of, parts), words)

    def test_a_crowd_is_compared_in_its_host(self):
        def row(machine, clients, per_second):
            return {"skill": "hello", "machine": machine, "clients": clients, "per_second": per_second}

        hosts = [{"name": "a", "executions": [row("fresh", 8, 10), row("reused", 8, 55), row("fresh", 1, 9)]},
                 {"name": "b", "executions": [row("fresh", 8, 10)]}, {"name": "c"}]
        self.assertEqual(bench_run.crowd_gains({"hosts": hosts}), {"a": 5.5})

    def test_a_host_that_had_to_end_keeps_what_it_told(self):
        self.assertEqual(bench_run.last('{"a": 1}\n{"a": 2}\n{"a": 3'), {"a": 2})
        self.assertIsNone(bench_run.last("what\n"))

    def test_a_peer_that_fails_or_is_missing_is_told(self):
        def broken(place):
            raise RuntimeError("no such thing")
        with tempfile.TemporaryDirectory() as folder:
            place = peers.Place(Path(folder, "peers"), folder, folder, folder)
            peers.PEERS.update({
                "made-up": ("made up", lambda place: ["/nonexistent"], ["/nonexistent"]),
                "broken": ("broken", broken, ["echo", "v1.2.3"]),
                "ends": ("ends", lambda place: ["sh", "-c", "echo why >&2; exit 3"], ["true"])})
            rows = list(peers.measure(place, "native", ["made-up", "broken", "ends"], None))[1::2]
        self.assertIn("No such file", rows[0]["problem"])
        self.assertEqual((rows[1]["problem"], rows[1]["version"]), ("no such thing", "1.2.3"))
        self.assertEqual(rows[2]["problem"], "sh: status 3: why")

    def test_a_plan_measured_by_nobody_still_has_the_form(self):
        plan = {"kind": "native", "runs": 1, "peers": [], "programs": "/nonexistent", "share": "/",
                "bench": str(BENCH), "lane": os.environ["LANE"], "peers_folder": "/nonexistent"}
        with tempfile.TemporaryDirectory() as scratch:
            bench = inside.Bench({**plan, "scratch": scratch})
            with contextlib.redirect_stdout(io.StringIO()):
                bench.stage("nothing kept", bench.nothing_kept)
                bench.stage("peers", bench.others)
            found = json.loads(json.dumps({"name": "native", **bench.result()}))
        self.assertIn("nothing kept", found["problem"])
        self.check(document(found))


class Figures(unittest.TestCase):
    def test_a_cycle_has_its_share_of_what_came_behind(self):
        row = execution("reused", 1, 4.0)
        self.assertEqual(row["response_ms"]["p50"], 4.0)
        self.assertEqual(row["cycle_ms"], 4.05)
        self.assertEqual(row["machines"], {"reused": 100})
        self.assertEqual(row["phases_ms"]["run"]["p50"], 2.0)
        self.assertEqual(row["daemon_ms"]["p50"], 2.0)
        # 100 ends in 400 ms; one that falls between two parts is in either.
        self.assertEqual(len(row["over_time"]), inside.OVER_TIME)
        self.assertEqual(sum(p["per_second"] for p in row["over_time"]) / inside.OVER_TIME, 250)
        self.assertTrue(all(abs(p["per_second"] - 250) <= 50 for p in row["over_time"]))

    def test_tables_name_every_lane_peer_and_problem(self):
        text = report.markdown(document())
        for words in ("hello, fresh |", "hello, reused, 8 at once", "0.12", "python3 -c pass",
                      "crun 1.8.1: no \\| cgroup here", "2,796", "parked (8) | 6.00 | 13.00 | 7.00"):
            self.assertIn(words, text)

    def test_plots_show_the_same(self):
        for name, make in report.PLOTS.items():
            script = "\n".join(make(host(), Path(f"{name}.svg")))
            self.assertIn("reused", script, name)
            self.assertIn(f"set output '{name}.svg'", script)
        empty = {**host(), "executions": [], "peers": []}
        self.assertEqual([make(empty, Path("x")) for make in report.PLOTS.values()], [None] * 3)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_gnuplot_draws_them(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in report.plots(document(), Path(folder)):
                self.assertIn("</svg>", path.read_text())


class Compare(unittest.TestCase):
    def grown(self, change, old=None):
        new = copy.deepcopy(old or document())
        change(new["hosts"][0])
        return compare.compare(old or document(), new)

    def test_the_same_is_well(self):
        self.assertEqual(self.grown(lambda h: None), [])

    def test_two_percent_more_is_named(self):
        def more(h):
            h["executions"][1]["response_ms"]["p50"] *= 1.02
        self.assertEqual(self.grown(more), ["counting: hello, reused: response, instructions: "
                                            "4,000,000 to 4,080,000 (+2.0 %)"])

    def test_less_than_two_percent_is_well(self):
        def little(h):
            h["executions"][1]["response_ms"]["p50"] *= 1.019
            h["executions"][1]["cycle_ms"] *= 0.5
        self.assertEqual(self.grown(little), [])

    def test_exits_and_faults_count(self):
        def more(h):
            h["counts"][0]["median"]["nested_page_faults"] = 2900
            h["counts"][0]["median"]["exits"] = 2900
        lines = self.grown(more)
        self.assertEqual(len(lines), 2)
        self.assertIn("counting: hello, fresh: exits: 2,803 to 2,900 (+3.5 %)", lines)

    def test_a_figure_that_is_gone_is_named(self):
        def gone(h):
            h["executions"][1].update(response_ms=None, cycle_ms=None)
        lines = self.grown(gone)
        self.assertEqual(len(lines), 2)
        self.assertIn("is not there any more", lines[0])

    def test_only_serial_lanes_of_counting_hosts(self):
        def more(h):
            h["executions"][2]["response_ms"]["p50"] *= 3
            h["peers"][0]["time_ms"]["p50"] *= 3
        self.assertEqual(self.grown(more), [])
        slow = document(host("soft"))
        self.assertEqual(compare.compare(slow, slow),
                         ["nothing to compare: the two have no counting host in common"])

    def test_the_command_ends_with_1_and_names_them(self):
        with tempfile.TemporaryDirectory() as folder:
            old, new = Path(folder, "old.json"), Path(folder, "new.json")
            old.write_text(json.dumps(document()))
            worse = document()
            worse["hosts"][0]["counts"][0]["median"]["exits"] = 5000
            new.write_text(json.dumps(worse))
            for later, status in ((old, 0), (new, 1)):
                done = subprocess.run(
                    [sys.executable, "-B", str(BENCH / "run.py"), "--from", str(later), "--compare",
                     str(old), "--output", str(Path(folder, "out")), "--no-plots"],
                    capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertEqual("grew: counting: hello, fresh: exits" in done.stdout, status == 1)


class Promises(unittest.TestCase):
    def with_figures(self, kind, node_ms, bare_ms):
        found = host(kind)
        found["executions"].append({**execution("reused", 1, node_ms), "skill": "hello-node"})
        found["peers"].append({**found["peers"][0], "name": "node -e 0",
                               "time_ms": inside.summary([bare_ms] * 5)})
        return document(found)

    def test_what_was_measured_is_held_or_named(self):
        held, broken = promises.hold(self.with_figures("counting", 160.0, 328.0))
        self.assertEqual((len(held), broken), (2, []))
        held, broken = promises.hold(self.with_figures("counting", 165.0, 328.0))
        self.assertEqual(len(held), 1)
        self.assertEqual(broken, ["counting: Node's hello answers in 0.503 of node -e 0; "
                                  "0.500 is promised"])

    def test_only_what_was_measured_and_counted(self):
        self.assertEqual(promises.hold(self.with_figures("soft", 400.0, 1.0)), ([], []))
        bare = document()
        bare["hosts"][0]["peers"] = []
        self.assertEqual(promises.hold(bare), ([], []))
        self.assertEqual(promises.hold(document({"name": "counting", "kind": "counting",
                                                 "problem": "no results"})), ([], []))

    def test_the_figures_are_those_of_the_bench(self):
        names = set().union(*(promises.figures(h) for h in document()["hosts"]))
        known = {name for name, _, _ in peers.PEERS.values()}
        for _, figure, _, of in promises.PROMISES:
            for name in (figure, of):
                skill = name.split(", ")[0]
                self.assertTrue(name in known or (BENCH / "skills" / skill).is_dir(), name)
        self.assertIn("hello, reused: whole cycle", names)

    def test_the_command_ends_with_1_and_names_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "results.json")
            for node_ms, status in ((160.0, 0), (165.0, 1)):
                path.write_text(json.dumps(self.with_figures("counting", node_ms, 328.0)))
                done = subprocess.run(
                    [sys.executable, "-B", str(BENCH / "run.py"), "--from", str(path),
                     "--output", str(Path(folder, "out")), "--no-plots"],
                    capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertIn("Node's hello answers in", done.stderr if status else done.stdout)


class Server:
    """A stand-in for the daemon: answers by path, one request a connection."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "sock")
        self.seen, self.quiet_after = [], 3
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(64)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def close(self):
        # Not before nobody is about to use the descriptor: its number is soon another's.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(peer,), daemon=True).start()

    def answer(self, peer):
        with peer:
            head = peer.recv(65536).decode()
            line = head.split("\r\n")[0]
            self.seen.append(line)
            if "/metrics" in line:
                self.quiet_after -= 1
                body = (f"# x\nbusy {int(self.quiet_after > 1)}\nall 3\npart{{kind=\"a\"}} 1\n"
                        f"part{{kind=\"b\"}} {2 - int(self.quiet_after > 0)}\n")
            elif "/files/" in line:
                body = "x" * 100000
            elif "bad" in head:
                body = '{"status":"failed","error":"no"}'
            else:
                body = ('{"execution_id":"e1","status":"success","machine":"reused",'
                        '"phases_ms":{"queue":1.5,"run":2}}')
            peer.sendall(f"HTTP/1.1 200 OK\r\n\r\n{body}".encode())


class Lane(unittest.TestCase):
    def lane(self, *arguments):
        done = subprocess.run([os.environ["LANE"], *arguments], capture_output=True, text=True,
                              timeout=60, check=False)
        return done, json.loads(done.stdout) if done.stdout else None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.server = Server(self.folder.name)

    def tearDown(self):
        self.server.close()
        self.folder.cleanup()

    def test_executions_are_timed_and_what_is_behind_them_waited_for(self):
        done, out = self.lane("--socket", self.server.path, "--body", "{}", "--runs", "5",
                              "--clients", "3", "--fetch", "a.bin", "--settled", "busy", "--settled",
                              'all part{kind="a"} part{kind="b"}', "--settled", "all 2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(out["failed"], 0)
        self.assertEqual(len(out["samples"]), 5)
        for sample in out["samples"]:
            self.assertEqual(sample["machine"], "reused")
            self.assertEqual(sample["phases_ms"], {"queue": 1.5, "run": 2})
            self.assertGreater(sample["bytes"], 100000)
            self.assertLessEqual(sample["at"] + sample["ms"], out["settled_at"])
        fetched = [s for s in self.server.seen if "GET /v1/executions/e1/files/a.bin" in s]
        self.assertEqual(len(fetched), 5, self.server.seen)
        self.assertEqual(sum("/metrics" in s for s in self.server.seen), 3)

    def test_what_is_not_there_or_too_little_is_waited_for(self):
        figures = {"a": 3.0, "b": 1.0, "c": 2.0}
        for names, good in (("a b c", True), ("a b", False), ("a 3", True), ("a 4", False),
                            ("b 1", True), ("c a", False)):
            self.assertEqual(daemon.is_sum(figures, names.split()), good, names)

    def test_a_failure_is_counted_and_told(self):
        done, out = self.lane("--socket", self.server.path, "--body", '"bad"', "--runs", "2")
        self.assertEqual((done.returncode, out["failed"]), (1, 2))
        self.assertIn('"error":"no"', done.stderr)

    def test_commands(self):
        done, out = self.lane("--runs", "3", "--", "sh", "-c", "exit 0")
        self.assertEqual((done.returncode, out["failed"], len(out["samples"])), (0, 0, 3))
        done, out = self.lane("--runs", "1", "--", "sh", "-c", "exit 3")
        self.assertEqual((done.returncode, out["failed"]), (1, 1))
        self.assertEqual(self.lane("--runs", "1")[0].returncode, 2)


if __name__ == "__main__":
    unittest.main()
