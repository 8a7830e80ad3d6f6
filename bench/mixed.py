# SPDX-License-Identifier: Apache-2.0
"""Executions of every outcome from several clients, in real machines: inside the software host.

    mixed.py BIN SHARE DATA N CLIENTS

Every accepted execution must be there once, with the status it must have; counters must equal
rows; the daemon must not grow; nothing may be left. One line for every hundred, then the sums.
"""

import collections
import http.client
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import skillvm
from daemon import Daemon

SCRIPT = """
import json, os, sys, time
what = json.loads(os.environ["SANDBOX_INPUT"])["what"]
print("doing", what, flush=True)
if what == "fail":
    sys.exit(3)
if what == "signal":
    os.kill(os.getpid(), 11)
if what == "memory":
    held = bytearray(200 << 20)
if what in ("timeout", "cancel"):
    time.sleep(60)
if what == "files":
    for i in range(3):
        with open(os.path.join(os.environ["SANDBOX_FILES_DIR"], f"{i}.txt"), "w") as f:
            f.write("x" * 1000 * i)
print(json.dumps({"did": what}))
"""
# What, how often, the request besides it, the status it ends with.
OUTCOMES = [
    ("plain", 50, {}, "success"), ("files", 20, {}, "success"), ("fail", 12, {}, "failed"),
    ("signal", 5, {}, "failed"), ("memory", 3, {"limits": {"memory": "64Mi"}}, "failed"),
    ("timeout", 3, {"timeout": 1}, "timeout"), ("cancel", 5, {}, "cancelled"),
    ("version", 2, {"version": "99"}, "failed"),
]


class Soak:
    def __init__(self, client, count):
        self.client = client
        self.lock = threading.Lock()
        self.left = self.count = count
        self.expected = {}  # id -> status
        self.problems = []
        self.busy = 0

    def take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def note(self, identity, status):
        with self.lock:
            if identity in self.expected:
                self.problems.append(f"{identity} was given twice")
            self.expected[identity] = status

    def work(self, seed):
        chance = random.Random(seed)
        while self.take():
            what, _, more, status = chance.choices(OUTCOMES, [o[1] for o in OUTCOMES])[0]
            while True:
                try:
                    self.one(what, more, status, chance)
                    break
                except skillvm.APIError as error:
                    if error.status != 429:
                        self.problems.append(f"{what}: {error.status} {error}")
                        break
                    self.busy += 1
                    time.sleep(error.retry_after or 1)
                except (OSError, ValueError, http.client.HTTPException) as error:
                    self.problems.append(f"{what}: {error!r}")
                    break

    def one(self, what, more, status, chance):
        if what == "cancel" or chance.random() < 0.2:
            identity = self.client.start("mixed", input={"what": what}, **more)
            self.note(identity, status)
            if what == "cancel":
                time.sleep(chance.random())
                self.client.cancel(identity)
            return
        result = self.client.run("mixed", input={"what": what}, **more)
        self.note(result.execution_id, status)
        if result.status != status:
            self.problems.append(f"{what} ended as {result.status}: {result.error}")
        if what == "files" and len(result.files) != 3:
            self.problems.append(f"{result.execution_id} has the files {result.files}")


def counters(daemon):
    counts = collections.Counter()
    for name, value in daemon.metrics().items():
        if name.startswith("skillvm_executions_total{"):
            counts[name.split('status="')[1].split('"')[0]] += int(value)
    return +counts


def report(soak, daemon, began):
    last, samples = 0, []
    while True:
        done = len(soak.expected)
        if done // 100 > last // 100 or soak.left <= -soak.clients:
            last = done
            samples.append((daemon.resident_kib(), daemon.descriptors()))
            print(f"{done:6} {time.monotonic() - began:6.0f} s  {samples[-1][0]} KiB, "
                  f"{samples[-1][1]} descriptors, {soak.busy} times busy, "
                  f"{len(soak.problems)} problems", flush=True)
        if soak.left <= -soak.clients:
            return samples
        time.sleep(0.5)


def check(soak, daemon):
    client = daemon.client
    rows = {row["execution_id"]: row["status"] for row in client.executions(page=200)}
    if rows.keys() != soak.expected.keys():
        soak.problems.append(f"{len(soak.expected)} were accepted, {len(rows)} are there")
    for identity, status in soak.expected.items():
        if rows.get(identity) != status:
            soak.problems.append(f"{identity} is {rows.get(identity)} and not {status}")
    if counters(daemon) != collections.Counter(rows.values()):
        soak.problems.append(f"counters {counters(daemon)}, rows {collections.Counter(rows.values())}")
    return collections.Counter(rows.values())


def main():
    programs, share, data, count, clients = sys.argv[1:]
    with Daemon(programs, share, os.path.join(data, "mixed")) as daemon:
        good = run(daemon, int(count), int(clients))
    sys.exit(0 if good else 1)


def run(daemon, count, clients):
    client = daemon.client
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "SKILL.md").write_text(
            "---\nname: mixed\nversion: \"1\"\ndescription: Does what it is told.\n---\n")
        Path(folder, "main.py").write_text(SCRIPT)
        client.push_skill(folder)
    soak = Soak(client, count)
    soak.clients = clients
    threads = [threading.Thread(target=soak.work, args=(seed,)) for seed in range(soak.clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    samples = report(soak, daemon, began)
    for thread in threads:
        thread.join()
    # With nothing that runs, waits or goes on behind the answers, what is left was lost.
    daemon.settle()
    sums = check(soak, daemon)
    left = [path.name for path in (daemon.data / "tmp").iterdir()]
    if left:
        soak.problems.append(f"left behind: {left}")
    third = len(samples) // 3
    print(json.dumps({"executions": sum(sums.values()), "by_status": sums,
                      "seconds": round(time.monotonic() - began),
                      "kib": [s[0] for s in samples][::max(third // 3, 1)],
                      "descriptors_at_end": daemon.descriptors()}))
    for problem in soak.problems[:20]:
        print("problem:", problem)
    return not soak.problems


main()
