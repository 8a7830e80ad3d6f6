# SPDX-License-Identifier: Apache-2.0
"""Measures in the machine that it runs in: the software host, or one with KVM. Prints what it has
so far as one JSON object a line, each a host of schema.json; bench/run.py takes the last.

    inside.py PLAN        PLAN: a JSON object: kind, runs, parts (keys of PARTS), peers (of
                          theirs), and the paths programs, share, bench, lane, scratch,
                          peers_folder
"""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import peers
import skillvm
from counts import Counting
from daemon import Daemon

CLIENTS = (1, 2, 4, 8)
PROFILE_S = 600  # for the snapshot of a profile, where everything is emulated
OVER_TIME = 20  # parts of the longest lane, to see whether it slows down
WARM = 2
DENSE = 8
COUNTED = 3
PEER_BUDGET_S = {"counting": 3, "soft": 20, "native": 20}

# What an execution finds. "fresh": nothing is kept, every one restores a machine. "parked": it
# asks for a machine that nobody used, and one waits. "reused": the default.
NOTHING_KEPT = {"SKILLVM_MACHINES_REUSE": "never", "SKILLVM_MACHINES_PARKED": "0",
                "SKILLVM_SNAPSHOTS_KEPT": "0"}


LAYERS = ("namespaces", "root", "users", "limits")  # of skillvm-jail
PARTS = {"executions": ("nothing_kept", "kept"), "memory": ("running", "parked"),
         "peers": ("others",), "crowd": ("crowd",), "images": ("images",), "jail": ("jail",)}


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def summary(values):
    if not values:
        return None
    ordered = sorted(values)

    def at(percent):
        return round(ordered[min(int(percent / 100 * len(ordered)), len(ordered) - 1)], 4)

    return {"n": len(ordered), "min": at(0), "p50": at(50), "p90": at(90), "p99": at(99),
            "max": at(100), "mean": round(statistics.fmean(ordered), 4)}


class Bench:
    def __init__(self, plan):
        self.plan = plan
        self.runs = plan["runs"]
        # Short, as all names below it: a path of microsandbox's sockets has little room.
        self.work = Path(tempfile.mkdtemp(prefix="b", dir=plan["scratch"]))
        # From memory, not from where the bench lies: that may be another machine's disk.
        self.skills = shutil.copytree(Path(plan["bench"]) / "skills", self.work / "skills")
        self.lane_program = shutil.copy(plan["lane"], self.work / "lane")
        self.executions, self.counts, self.density, self.peers = [], [], [], []
        self.alone = {"problem": None, "boot_ms": {}, "restore_ms": {}, "bytes": {}}
        self.pooled = False
        self.problems = []

    def stage(self, name, step):
        """What one step could not do is told, and the others go on."""
        try:
            step()
        except (OSError, RuntimeError, ValueError, skillvm.APIError,
                subprocess.SubprocessError) as error:
            say(f"{name}: {error!r}")
            self.problems.append(f"{name}: {error!r}")
        self.tell()

    def tell(self):
        print(json.dumps(self.result()), flush=True)

    def daemon(self, name, settings, alone=True):
        return Daemon(self.plan["programs"], self.plan["share"], self.work / name, settings, alone)

    def lane(self, arguments):
        """One lane: (what it printed or None, what it complained of or None)."""
        done = subprocess.run([self.lane_program, *arguments], capture_output=True, text=True,
                              errors="replace", check=False)
        problem = done.stderr.strip()[-1000:] or f"lane: status {done.returncode}"
        try:
            printed = json.loads(done.stdout)
        except ValueError:
            printed = None
        return printed, problem if done.returncode != 0 else None

    def execute(self, daemon, body, runs, clients=1, fetch=None, parked=0):
        arguments = ["--socket", daemon.socket, "--body", json.dumps(body), "--runs", str(runs),
                     "--clients", str(clients)]
        for line in daemon.settled(parked):
            arguments += ["--settled", line]
        return self.lane(arguments + (["--fetch", fetch] if fetch else []))

    def measure(self, daemon, state, skill, clients=1, runs=None, fetch=None):
        """A row of `executions`. Serial lanes have WARM runs before them that do not count."""
        body = {"skill": skill, **({"fresh": True} if state == "parked" else {})}
        runs = runs or self.runs
        say(f"{skill}, {state}, {clients} at once, {runs} runs")
        daemon.settle()
        self.execute(daemon, body, WARM, fetch=fetch)
        if state == "fresh" or clients > 1:
            printed, problem = self.execute(daemon, body, runs, clients, fetch)
        else:
            printed, problem = self.one_by_one(daemon, body, runs, fetch, int(state == "parked"))
        row = {"skill": skill, "machine": state, "clients": clients, "runs": runs,
               "failed": printed["failed"] if printed else runs, "problem": problem,
               "machines": {}, "response_ms": None, "cycle_ms": None, "per_second": None,
               "phases_ms": {}, "daemon_ms": None, "over_time": []}
        samples = [s for s in printed["samples"] if "phases_ms" in s] if printed else []
        if samples:
            self.fill(row, samples, printed["settled_at"], runs)
        if samples and state == "reused" and clients == 1:
            # One after another: each waits for the reset of the one before.
            in_turn, trouble = self.execute(daemon, body, runs, fetch=fetch)
            row["problem"] = problem or trouble
            if in_turn:
                row["cycle_ms"] = round(in_turn["settled_at"] / runs, 4)
                row["per_second"] = round(runs / in_turn["settled_at"] * 1000, 3)
        if fetch and any(s["bytes"] < 1 << 20 for s in samples):
            row["problem"] = f"{fetch} is too short"
        self.executions.append(row)

    def one_by_one(self, daemon, body, runs, fetch, parked):
        """Each execution after all is quiet, so that a machine that is ready waits for it."""
        samples, failed, problem, at = [], 0, None, 0
        for _ in range(runs):
            daemon.settle(parked)
            # The one that it takes is replaced behind the answer, and that is its doing. Not as
            # many as there were: the daemon keeps fewer of them when fewer are taken.
            printed, trouble = self.execute(daemon, body, 1, fetch=fetch, parked=parked)
            problem = problem or trouble
            if printed:
                failed += printed["failed"]
                samples += [{**s, "at": at + s["at"]} for s in printed["samples"]]
                at += printed["settled_at"]
        return {"failed": failed, "settled_at": at, "samples": samples}, problem

    @staticmethod
    def fill(row, samples, settled_at, runs):
        ends = sorted(s["at"] + s["ms"] for s in samples)
        row["response_ms"] = summary([s["ms"] for s in samples])
        # What goes on behind the answers belongs to them: the time until it was over.
        row["cycle_ms"] = round(settled_at / runs, 4)
        row["per_second"] = round(len(samples) / settled_at * 1000, 3)
        for phase in samples[0]["phases_ms"]:
            row["phases_ms"][phase] = summary(
                [s["phases_ms"][phase] for s in samples if phase in s["phases_ms"]])
        # What the daemon adds to its machine; waiting is its doing too.
        row["daemon_ms"] = summary(
            [s["ms"] - sum(ms for phase, ms in s["phases_ms"].items() if phase != "queue")
             for s in samples])
        for sample in samples:
            had = sample["machine"] or "not told"
            row["machines"][had] = row["machines"].get(had, 0) + 1
        if len(samples) >= 4 * OVER_TIME:
            part = ends[-1] / OVER_TIME
            counts = [0] * OVER_TIME
            for end in ends:
                counts[min(int(end / part), OVER_TIME - 1)] += 1
            row["over_time"] = [{"until_ms": round(part * (i + 1), 3),
                                 "per_second": round(n / part * 1000, 3)}
                                for i, n in enumerate(counts)]

    def throughput(self, daemon, state):
        for clients in CLIENTS[1:]:
            self.measure(daemon, state, "hello", clients,
                         self.runs * (5 if clients == CLIENTS[-1] else 1))

    def count(self, daemon, state, skill="hello"):
        """What one execution costs the kernel, with what goes on behind its answer."""
        body = {"skill": skill, **({"fresh": True} if state == "parked" else {})}
        row = {"skill": skill, "machine": state, "runs": COUNTED, "problem": None, "median": None,
               "exits_by_reason": {}, "vmm_system_calls_by_number": {}}
        say(f"counts of {skill}, {state}")
        try:
            with Counting() as counting:
                seen = []
                self.execute(daemon, body, WARM)
                for _ in range(COUNTED):
                    parked = int(state == "parked")
                    daemon.settle(parked)
                    counting.reset()
                    _, problem = self.execute(daemon, body, 1, parked=parked)
                    seen.append(counting.read())
                    row["problem"] = row["problem"] or problem
            row["median"] = {name: statistics.median_low(s[name] for s in seen)
                             for name, value in seen[0].items() if isinstance(value, int)}
            middle = sorted(seen, key=lambda s: s["exits"])[len(seen) // 2]
            for name in ("exits_by_reason", "vmm_system_calls_by_number"):
                row[name] = middle[name]
        except (OSError, RuntimeError) as error:
            row["problem"] = str(error)
        self.counts.append(row)

    def weigh(self, state, pids, available):
        """Memory of machines: what each has alone, and what it shares with others."""
        sums = {"private": 0, "shared": 0}
        for pid in pids:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n"):
                name, _, rest = line.partition(":")
                kind = name.split("_")[0].lower()
                if name in ("Private_Clean", "Private_Dirty", "Shared_Clean", "Shared_Dirty"):
                    sums[kind] += int(rest.split()[0]) * 1024
        n = len(pids)
        self.density.append({
            "state": state, "machines": n,
            "private_bytes": sums["private"] // n if n else None,
            "shared_bytes": sums["shared"] // n if n else None,
            "host_bytes": (available - memory_available()) // n if n else None})

    def running(self):
        say(f"memory of {DENSE} running machines")
        settings = {**NOTHING_KEPT, "SKILLVM_LIMITS_MAX_RUNNING": str(DENSE)}
        with self.daemon("dense", settings) as daemon:
            self.pooled = daemon.setting("machines.reuse")
            client = daemon.client
            client.push_skill(self.skills / "wait")
            daemon.settle()
            available = memory_available()
            going = [client.start("wait", timeout=600) for _ in range(DENSE)]
            while not all("up" in client.logs(identity) for identity in going):
                time.sleep(0.1)
            self.weigh("running", daemon.machines(), available)
            for identity in going:
                client.cancel(identity)
            daemon.settle()

    def parked(self):
        if not self.pooled:
            return
        say(f"memory of {DENSE} parked machines")
        settings = {"SKILLVM_MACHINES_PARKED": str(DENSE), "SKILLVM_LIMITS_MAX_RUNNING": str(DENSE)}
        with self.daemon("parked", settings) as daemon:
            self.push(daemon)
            available = memory_available()
            # Machines are kept where they were wanted.
            self.execute(daemon, {"skill": "hello"}, 4 * DENSE, DENSE)
            daemon.settle()
            self.weigh("parked", daemon.machines(), available)

    def nothing_kept(self):
        with self.daemon("fresh", NOTHING_KEPT) as daemon:
            self.pooled = daemon.setting("machines.reuse")
            self.push(daemon)
            for skill, fetch in (("hello", None), ("imports", None),
                                 ("artifact", "mebibyte.bin"), ("shell", None)):
                self.measure(daemon, "fresh", skill, fetch=fetch)
            self.throughput(daemon, "fresh")
            self.count(daemon, "fresh")
            self.alone = machine.measure(self.plan["programs"], self.plan["share"], daemon.data)

    def kept(self):
        if not self.pooled:
            return
        with self.daemon("pool", {}) as daemon:
            self.push(daemon)
            self.measure(daemon, "parked", "hello")
            self.await_profile(daemon, "imports")
            for skill, fetch in (("hello", None), ("imports", None),
                                 ("artifact", "mebibyte.bin"), ("shell", None)):
                self.measure(daemon, "reused", skill, fetch=fetch)
            self.throughput(daemon, "reused")
            self.count(daemon, "parked")
            self.count(daemon, "reused")

    def crowd(self):
        """Many executions from many clients, and what the same daemon does without machines that
        are used again; a tenth of them is enough for that."""
        for state, settings, runs in (("fresh", NOTHING_KEPT, max(self.runs // 10, 1)),
                                      ("reused", {}, self.runs)):
            with self.daemon(f"crowd-{state}", settings) as daemon:
                self.pooled = daemon.setting("machines.reuse")
                self.push(daemon)
                self.measure(daemon, state, "hello", CLIENTS[-1], runs)

    def images(self):
        """A skill in Node and one that needs pandas, beside a hello of the same daemon."""
        skills = ("hello", "hello-node", "pandas")
        with self.daemon("images", {}) as daemon:
            self.pooled = daemon.setting("machines.reuse")
            self.push(daemon, skills)
            for skill in skills:
                if skill == "pandas":
                    self.await_profile(daemon, skill)
                self.measure(daemon, "reused", skill)

    def jail(self):
        """What the layers of skillvm-jail cost: beside the same daemon without any, and without
        limits for each machine, where somebody else is in its cgroup and all machines share its limits."""
        bare = self.work / "bare-jail"
        bare.write_text(f'#!/bin/sh\nexec {self.plan["programs"]}/skillvm-jail "$@" --layers 0\n')
        bare.chmod(0o755)
        for without, alone, more, missing in (("", True, {}, ()),
                                              (", no jail", True, {"SKILLVM_JAIL": str(bare)}, LAYERS),
                                              (", no limits", False, {}, LAYERS[-1:])):
            for state, settings in (("fresh", NOTHING_KEPT), ("reused", {})):
                with self.daemon(f"jail-{state}{without[-6:]}".replace(" ", "-"), settings | more,
                                 alone) as daemon:
                    said = daemon.client.ready()["checks"]["isolation"]
                    if tuple(layer for layer in LAYERS if layer in said) != missing:
                        raise RuntimeError(f"the layers of a daemon{without}: {said}")
                    self.pooled = daemon.setting("machines.reuse")
                    self.push(daemon, ("hello",))
                    self.measure(daemon, state, "hello")
                    self.executions[-1]["machine"] += without

    def await_profile(self, daemon, skill):
        """Runs it until it begins from the snapshot that is made for its imports."""
        deadline = time.monotonic() + PROFILE_S
        while not (profile := daemon.client.run(skill).raw.get("profile")):
            if profile is None or time.monotonic() > deadline:
                raise RuntimeError(f"{skill} has no profile")
            time.sleep(1)

    def push(self, daemon, skills=("hello", "imports", "artifact", "shell")):
        for skill in skills:
            daemon.client.push_skill(self.skills / skill)

    def others(self):
        budget_s = PEER_BUDGET_S[self.plan["kind"]]

        def lane(command):
            began = time.monotonic()
            self.lane(["--runs", "1", "--", *command])
            once = max(time.monotonic() - began, 1e-3)
            runs = max(3, min(self.runs, int(budget_s / once)))
            printed, problem = self.lane(["--runs", str(runs), "--", *command])
            good = [s["ms"] for s in printed["samples"]] if printed and not problem else []
            return summary(good), problem

        place = peers.Place(self.work / "p", self.skills, self.plan["share"],
                            self.plan["peers_folder"])
        # A peer that never ends shall not take what was measured before it.
        for row in peers.measure(place, self.plan["kind"], self.plan["peers"], lane):
            if row not in self.peers:
                self.peers.append(row)
            self.tell()

    def result(self):
        return {"kind": self.plan["kind"], "problem": "; ".join(self.problems) or None,
                "kernel": platform.release(), "cpu": cpu_model(),
                "cpus": os.cpu_count(), "pooled": self.pooled, "executions": self.executions,
                "counts": self.counts, "density": self.density, "machine_alone": self.alone,
                "peers": self.peers}


def memory_available():
    for line in Path("/proc/meminfo").read_text().split("\n"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo does not tell what is available")


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().split("\n"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main():
    # What this program was started with is nothing that a peer should have.
    os.environ.pop("PYTHONPATH", None)
    bench = Bench(json.loads(sys.argv[1]))
    try:
        for part in bench.plan["parts"]:
            for name in PARTS[part]:
                bench.stage(name.replace("_", " "), getattr(bench, name))
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    main()
