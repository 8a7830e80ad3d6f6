# SPDX-License-Identifier: Apache-2.0
"""Measures what a fleet is made of, on this machine: three nats-servers on the loopback interface
and nodes with a stand-in for their machines. All of them share its processors with what measures.

Writes one JSON object a line (measured.jsonl) and the same as tables (measured.md) into a folder,
and prints the tables. `simulate.py --measured measured.jsonl` takes its costs from there.

    python3 -B bench/fleet/measure.py [--only PART]… [--rows N] [--output DIR]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT / "tests" / "clients"),
                str(ROOT / "api" / "clients" / "python")]

from report import number, table  # noqa: E402

SCHEMA = "skillvm-bench-fleet/1"
PUSHES = 30
RUNS = 200
WATCHERS = (1, 10, 50, 100)
NODES = 5           # of which throughput is measured
SLOTS = 4           # of each
HELD_MS = (100, 0) # for which an execution holds one, beside what it costs
DRIVE_S = 5
ENTRY_BYTES = 700  # of a node's entry with an image or two


def summary(values):
    ordered = sorted(values)

    def at(percent):
        return round(ordered[min(int(percent / 100 * len(ordered)), len(ordered) - 1)], 4)

    return {"p50": at(50), "p90": at(90), "p99": at(99), "max": at(100)}


class Measure:
    """The parts; each adds rows, which are written at once."""

    def __init__(self, options, out):
        self.streams = str(options.build / "bench" / "streams")
        self.rows_wanted, self.out, self.rows = options.rows, out, []

    def add(self, part, what, **figures):
        row = {"schema": SCHEMA, "part": part, "what": what, **figures}
        self.rows.append(row)
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()
        print(f"fleet: {part}: {what}: {figures}", file=sys.stderr, flush=True)

    def run(self, *words):
        done = subprocess.run([self.streams, *map(str, words)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"streams {' '.join(map(str, words))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def stream(self, servers):
        """One stream: with acknowledgement, one at a time and 256 in flight."""
        lanes = [(1, 1024, 1, 2000), (3, 1024, 1, 2000), (1, 1024, 256, 40000),
                 (3, 1024, 256, 40000), (3, 131072, 1, 200), (3, 131072, 16, 400)]
        for replicas, size, flight, n in lanes:
            before = servers.cpu_seconds()
            found = self.run("publish", servers.urls[0], f"bench{replicas}_{size}_{flight}",
                             replicas, size, n, flight)
            used = sum(servers.cpu_seconds()) - sum(before)
            per_second = n / found["seconds"]
            self.add("stream", f"{size} B, {replicas} replica{'s' * (replicas > 1)}, {flight} in flight",
                     replicas=replicas, bytes=size, in_flight=flight, n=n,
                     messages_per_second=round(per_second, 1),
                     mib_per_second=round(per_second * size / (1 << 20), 2),
                     server_cpu_us=round(used / n * 1e6, 1),
                     ms=summary(found["ms"]) if "ms" in found else None)

    def hop(self, servers):
        found = self.run("request", servers.urls[0], servers.urls[1], 2000)
        self.add("hop", "request of 1 KiB to another server's queue group, with its reply",
                 n=found["n"], messages_per_second=round(found["n"] / found["seconds"], 1),
                 ms=summary(found["ms"]))

    def entries(self, servers):
        """Entries that nodes write about themselves, to so many nodes that watch them."""
        for watchers in WATCHERS:
            n = max(2000, 40000 // watchers)
            before = servers.cpu_seconds()
            found = self.run("watch", ENTRY_BYTES, n, watchers, *servers.urls)
            used = [b - a for a, b in zip(before, servers.cpu_seconds())]
            self.add("entries", f"{ENTRY_BYTES} B to {watchers} watchers", watchers=watchers, n=n,
                     arrived=found["arrived"],
                     deliveries_per_second=round(found["arrived"] / found["seconds"], 1),
                     server_cpu_us=round(sum(used) / found["arrived"] * 1e6, 2))

    def follow(self, servers):
        """Keys as rows: how fast they are written, how fast a node that is there follows, how
        long one takes that comes later, and what all of it holds in memory; then as many
        executions beside them."""
        from world import Node, cpu_seconds, status_mib
        n = self.rows_wanted
        with Node(servers, "a") as a:
            a.sure("POST", "/v1/admin/cluster")
            began = a.wait_revision(1)["changes"]["revision"]
            tenant = a.sure("POST", "/v1/admin/tenants", {"name": "acme"})["id"]
            a.wait_revision(began + 1)
            rss, servers_rss = status_mib(a.pid, "VmRSS"), servers.resident_mib()
            started, cpu = time.monotonic(), cpu_seconds(a.pid)
            found = self.run("keys", servers.urls[0], tenant, 0, n)
            a.wait_revision(began + 1 + n)
            seconds = time.monotonic() - started
            if a.rows("keys") != n:
                raise RuntimeError(f"of {n} keys the node has {a.rows('keys')}")
            self.add("follow", f"{n:,} keys written, by one writer with 512 in flight", n=n,
                     seconds=round(found["seconds"], 2),
                     rows_per_second=round(n / found["seconds"], 1),
                     bytes_per_row=round(found["bytes"] / n))
            self.add("follow", "a node that is joined has them, from the first one's writing", n=n,
                     seconds=round(seconds, 2), rows_per_second=round(n / seconds, 1),
                     cpu_seconds=round(cpu_seconds(a.pid) - cpu, 2))
            self.add("memory", "a node, more by the rows (MiB)", n=n,
                     mib=round(status_mib(a.pid, "VmRSS") - rss, 1),
                     most_mib=round(status_mib(a.pid, "VmHWM"), 1),
                     resident_mib=round(status_mib(a.pid, "VmRSS"), 1))
            self.add("memory", "the servers, more by the rows (MiB, each)", n=n,
                     mib=[round(after - before, 1) for after, before in
                          zip(servers.resident_mib(), servers_rss)])
            self._catch_up(servers, "late", "has them", began + 1 + n, {"keys": n})
            with tempfile.TemporaryDirectory() as folder:
                a.client.push_skill(self._skill(folder, "demo", 1))
            one = a.client.run("demo", env={"FAKE": "exit"}).execution_id
        # Without a node that follows them meanwhile: the new one has the processors.
        found = self.run("records", servers.urls[0], one, n)
        self.add("follow", f"{n:,} executions written, as ended, by one writer", n=n,
                 seconds=round(found["seconds"], 2),
                 rows_per_second=round(n / found["seconds"], 1),
                 bytes_per_row=round(found["bytes"] / n))
        self._catch_up(servers, "later", "has both", began + 1 + n,
                       {"keys": n, "executions": n + 1})

    def _catch_up(self, servers, name, what, revision, rows):
        """A new node; rows are tables and how many each is to have then."""
        from world import Node, cpu_seconds, status_mib
        n, started = sum(rows.values()), time.monotonic()
        with Node(servers, name) as late:
            late.wait_revision(revision)
            seconds = time.monotonic() - started
            for table_name, wanted in rows.items():
                if late.rows(table_name) != wanted:
                    raise RuntimeError(f"of {wanted} {table_name} the new node has "
                                       f"{late.rows(table_name)}")
            self.add("follow", f"a new node is joined and {what}, from its start", n=n,
                     seconds=round(seconds, 2), rows_per_second=round(n / seconds, 1),
                     cpu_seconds=round(cpu_seconds(late.pid), 2))
            self.add("memory", f"a new node that {what}, at most while it catches up (MiB)", n=n,
                     mib=round(status_mib(late.pid, "VmHWM"), 1),
                     resident_mib=round(status_mib(late.pid, "VmRSS"), 1))

    def push(self, servers):
        """Skills pushed at one node, and read by another that needs them."""
        from world import Node
        with Node(servers, "a") as a, Node(servers, "b") as b, \
                tempfile.TemporaryDirectory() as folder:
            a.sure("POST", "/v1/admin/cluster")
            for node in (a, b):
                node.wait_revision(1)
            for kib in (1, 100, 4096):
                names = [self._skill(folder, f"s{kib}-{i}", kib) for i in range(PUSHES)]
                times = self._timed(lambda path: a.client.push_skill(path), names)
                b.wait_revision(a.cluster()["changes"]["revision"])
                first = self._timed(lambda path: b.client.skill(path.name), names)
                self.add("push", f"{kib} KiB, one after the other", kib=kib, n=PUSHES,
                         per_second=round(1e3 * PUSHES / sum(times), 1), ms=summary(times))
                self.add("push", f"{kib} KiB, another node's first look", kib=kib, n=PUSHES,
                         per_second=None, ms=summary(first))
            self._crowd(a, folder)

    def _crowd(self, node, folder, clients=4):
        names = [self._skill(folder, f"crowd-{i}", 1) for i in range(clients * PUSHES)]
        times = []
        threads = [threading.Thread(target=lambda mine=names[i::clients]: times.extend(
            self._timed(lambda path: node.client.push_skill(path), mine)))
            for i in range(clients)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.add("push", f"1 KiB, {clients} clients of one node at once", kib=1, n=len(times),
                 per_second=round(len(times) / (time.monotonic() - started), 1), ms=summary(times))

    def forward(self, servers):
        """Short executions sent to a node that is full, and to the one that then runs them."""
        from world import Node, wait_for
        lines = "limits:\n  max_running: 1\n"
        with Node(servers, "full", lines) as full, Node(servers, "free", lines) as free, \
                tempfile.TemporaryDirectory() as folder:
            full.sure("POST", "/v1/admin/cluster")
            for node in (full, free):
                node.wait_revision(1)
            full.client.push_skill(self._skill(folder, "demo", 1))
            free.wait_revision(full.cluster()["changes"]["revision"])
            full.ask("POST", "/v1/executions", {"skill": "demo", "env": {"FAKE": "ticks"},
                                                "timeout": 3600, "async": True})
            wait_for("it runs", lambda: next(full.client.executions(status="running"), None))

            def run(node):
                wait_for("there is room", lambda: free.cluster()["takes_executions"])
                time.sleep(0.02)  # until the servers have told each other of it
                return self._timed(lambda at: at.client.run("demo", env={"FAKE": "exit"}), [node])[0]

            times = {node: [] for node in (free, full)}
            for node in 20 * [free, full]:
                run(node)
            for node in RUNS * [free, full]:
                times[node].append(run(node))
            for node, what in ((free, "to the node that runs it"), (full, "to a node that is full")):
                self.add("forward", what, n=RUNS, ms=summary(times[node]))
            more = summary(times[full])["p50"] - summary(times[free])["p50"]
            self.add("forward", "more at the median (ms)", more_ms=round(more, 2))

    def throughput(self, servers):
        """Executions a second by how many nodes there are, each with a few slots."""
        from contextlib import ExitStack
        from world import Node
        with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
            nodes = []
            for count in range(1, NODES + 1):
                nodes.append(stack.enter_context(
                    Node(servers, f"n{count}", f"limits:\n  max_running: {SLOTS}\n")))
                if count == 1:
                    nodes[0].sure("POST", "/v1/admin/cluster")
                nodes[-1].wait_revision(1)
                if count == 1:
                    nodes[0].client.push_skill(self._skill(folder, "demo", 1))
                nodes[-1].wait_revision(nodes[0].cluster()["changes"]["revision"])
                nodes[-1].client.run("demo", env={"FAKE": "exit"})  # it has the skill
                for ms in HELD_MS:
                    self._drive(servers, nodes, ms)

    def _drive(self, servers, nodes, held_ms):
        """Each node has as many clients as slots, which wait for each answer."""
        env = {"FAKE": "sleep", "FAKE_DATA": str(held_ms)} if held_ms else {"FAKE": "exit"}
        times, over = [], time.monotonic() + DRIVE_S

        def client(node):
            while time.monotonic() < over:
                times.extend(self._timed(lambda at: at.client.run("demo", env=env), [node]))

        threads = [threading.Thread(target=client, args=(node,)) for node in nodes * SLOTS]
        before, started = self._cpu(servers, nodes), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - started
        self.add("throughput", f"{held_ms} ms each, {len(nodes)} node{'s' * (len(nodes) > 1)}",
                 nodes=len(nodes), held_ms=held_ms, n=len(times),
                 per_second=round(len(times) / seconds, 1),
                 cpu_ms=round((self._cpu(servers, nodes) - before) / len(times) * 1e3, 2),
                 ms=summary(times))

    @staticmethod
    def _cpu(servers, nodes):
        from world import cpu_seconds
        return sum(servers.cpu_seconds()) + sum(cpu_seconds(node.pid) for node in nodes)

    @staticmethod
    def _skill(folder, name, kib):
        import stand_in
        path = stand_in.skill_folder(folder, name)
        (path / "data.bin").write_bytes(os.urandom(kib << 10))
        return path

    @staticmethod
    def _timed(step, items):
        times = []
        for item in items:
            started = time.monotonic()
            step(item)
            times.append((time.monotonic() - started) * 1e3)
        return times


PARTS = {"stream": Measure.stream, "hop": Measure.hop, "entries": Measure.entries,
         "follow": Measure.follow, "push": Measure.push, "forward": Measure.forward,
         "throughput": Measure.throughput}
TITLES = {"stream": "One stream, published with acknowledgement", "hop": "A hop",
          "entries": "Node entries, each to all that watch", "follow": "Rows",
          "memory": "Memory", "push": "Skills", "forward": "Executions that go to another node",
          "throughput": "Executions a second, at all nodes together"}


def figure(value):
    if isinstance(value, dict):
        return "/".join(number(value[p]) for p in ("p50", "p99"))
    if isinstance(value, list):
        return ", ".join(map(number, value))
    if value is None or isinstance(value, float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) else value


def markdown(rows):
    """A table for each part, in which a column is there where any row has it."""
    lines = []
    for part, title in TITLES.items():
        mine = [row for row in rows if row["part"] == part]
        names = list(dict.fromkeys(
            name for row in mine for name in row if name not in ("schema", "part", "what")))
        if mine:
            heads = ["ms p50/p99" if name == "ms" else name.replace("_", " ") for name in names]
            lines += [f"{title}:", ""] + table(["", *heads], [
                [row["what"], *(figure(row.get(name)) for name in names)] for row in mine])
    return "\n".join(lines)


def arguments(words=None):
    parser = argparse.ArgumentParser(prog="measure.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=tuple(PARTS), metavar="PART",
                        help=f"measure one part: {', '.join(PARTS)}; may repeat")
    parser.add_argument("--rows", type=int, default=100000,
                        help="keys, and executions, that a node follows (default 100000)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", metavar="DIR",
                        help="where the programs are (default build)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench-fleet",
                        metavar="DIR", help="where the results go (default build/bench-fleet)")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE",
                        help="measure nothing: show the lines of FILE")
    return parser.parse_args(words)


def measure(options):
    from world import Servers
    build = options.build.resolve()
    options.build = build
    os.environ.setdefault("SKILLVMD", str(build / "bin" / "skillvmd"))
    os.environ.setdefault("FAKE_VMM", str(build / "tests" / "fake_vmm"))
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / "measured.jsonl", "w", encoding="utf-8") as out:
        found = Measure(options, out)
        found.add("machine", "where", processors=os.cpu_count(),
                  at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                  load=round(os.getloadavg()[0], 2))
        # Each part has servers of its own: nothing of one lies in another's.
        for name in options.only or PARTS:
            with Servers() as servers:
                PARTS[name](found, servers)
    return found.rows


def main():
    options = arguments()
    if options.source:
        rows = [json.loads(line) for line in options.source.read_text().splitlines()]
    else:
        rows = measure(options)
        (options.output / "measured.md").write_text(markdown(rows))
    print(markdown(rows))


if __name__ == "__main__":
    main()
