# SPDX-License-Identifier: Apache-2.0
"""Many executions of every outcome from several clients: nothing is lost, nothing happens twice.

First everything is kept: each answer has its row, each row its answer, the counters equal the
rows. Then retention has little room: rows, objects and disk shrink to it and stay there while
executions go on. All the while the daemon's memory stays flat; its descriptors and threads are in the
end what they were in the beginning.

    mixed.py [--executions N] [--clients N] [--seed S] [--any-memory]
"""

import argparse
import collections
import http.client
import json
import os
import random
import signal
import statistics
import sys
import threading
import time

import checked
import stand_in

BROKEN = (OSError, http.client.HTTPException)
OF_A_MACHINE = 3  # descriptors: its socket, its process, its standard error
ROOM = 2 << 20  # bytes that results and artifacts may take in the second half

# FAKE, FAKE_DATA, the status it ends with, how often.
OUTCOMES = [
    ("", "", "success", 20), ("files", "", "success", 15), ("stdout", "[1]", "success", 5),
    ("exit", "0", "success", 5), ("exit", "7", "failed", 10), ("signal", "11", "failed", 5),
    ("oom", "", "failed", 4), ("timeout", "", "timeout", 8), ("flood", "", "success", 1),
    ("die", "", "failed", 6), ("vmm-failed", "", "failed", 3), ("close", "", "failed", 3),
    ("hostile-type", "", "failed", 3), ("hostile-files", "", "failed", 2),
    ("ticks", "", "cancelled", 6),
]
REFUSALS = [
    ({"skill": "nobody"}, 404), ({"skill": "demo", "timeout": -1}, 400), ({"skill": 1}, 400),
    ({"skill": "demo", "files": ["file_" + "0" * 32]}, 400),
]


class Work:
    """How many are still to do, and what came of the others. One lock for all of it."""

    def __init__(self, executions):
        self.lock = threading.Lock()
        self.left = executions
        self.statuses = {}  # id -> the status it must have
        self.refused = 0
        self.overloaded = 0
        self.problems = []
        self.peak = [0, 0, 0]
        self.low = None

    def take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def note(self, identity, status):
        with self.lock:
            if identity in self.statuses:
                self.problems.append(f"{identity} was given twice")
            self.statuses[identity] = status

    def problem(self, text):
        with self.lock:
            self.problems.append(text)


class Client(threading.Thread):
    def __init__(self, name, daemon, work):
        super().__init__()
        self.random = random.Random(name)
        self.socket = daemon.socket
        self.work = work

    def run(self):
        while self.work.take():
            try:
                if self.random.random() < 0.05:
                    self.be_refused()
                else:
                    self.execute()
            except BROKEN as error:
                self.work.problem(f"the daemon did not answer: {error}")

    def post(self, body):
        """An answer that is not about how much is going on."""
        while True:
            status, text = checked.request(self.socket, "POST", "/v1/executions", body)
            if status != 429:
                return status, json.loads(text)
            with self.work.lock:
                self.work.overloaded += 1
            time.sleep(self.random.uniform(0.001, 0.05))

    def be_refused(self):
        body, expected = self.random.choice(REFUSALS)
        status, _ = self.post(body)
        if status != expected:
            self.work.problem(f"{body} was answered with {status}")
        with self.work.lock:
            self.work.refused += 1

    def execute(self):
        kind, data, expected, _ = self.random.choices(OUTCOMES, [o[3] for o in OUTCOMES])[0]
        body = {"skill": "demo", "timeout": 30, "env": {"FAKE": kind, "FAKE_DATA": data}}
        if self.random.random() < 0.05:
            body["version"], expected = "99", "failed"
        body["async"] = expected == "cancelled" or self.random.random() < 0.3
        status, answer = self.post(body)
        if status not in (200, 202):
            self.work.problem(f"{kind} was answered with {status} {answer}")
            return
        identity = answer["execution_id"]
        self.work.note(identity, expected)
        if status == 200 and answer["status"] != expected:
            self.work.problem(f"{kind} ended as {answer['status']}: {answer['error']}")
        if expected == "cancelled":
            self.cancel(identity)

    def cancel(self, identity):
        time.sleep(self.random.uniform(0, 0.1))
        status, _ = checked.request(self.socket, "DELETE", f"/v1/executions/{identity}")
        if status != 202:
            self.work.problem(f"cancelling {identity} was answered with {status}")


class Watcher(threading.Thread):
    """Looks at the process and its disk while it works."""

    def __init__(self, daemon, store):
        super().__init__()
        self.daemon_of_test = daemon
        self.store = store
        self.samples = []
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(0.1):
            try:
                figures = checked.process_figures(self.daemon_of_test.process.pid)
                self.samples.append((*figures, self.store.disk_bytes()))
            except OSError:
                pass

    def end(self):
        self.done.set()
        self.join()
        return self.samples


def work_off(name, count, clients, daemon, store):
    """Runs so many executions to their end. The work and what was seen of the process."""
    work = Work(count)
    before = at_rest(daemon)
    watcher = Watcher(daemon, store)
    threads = [Client(f"{name}/{i}", daemon, work) for i in range(clients)]
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    quiet = checked.wait_until(lambda: not store.query(
        "SELECT 1 FROM executions WHERE finished_ns IS NULL LIMIT 1"), 60)
    if not quiet:
        work.problem("there are executions that do not end")
    samples = watcher.end()
    after = at_rest(daemon, before)
    if not not_more(after, before):
        work.problem(f"{before} descriptors and threads at rest became {after}")
    return work, samples


def not_more(figures, bound):
    return all(figure <= most for figure, most in zip(figures, bound))


def at_rest(daemon, bound=(1 << 30, 1 << 30)):
    """
    The descriptors and threads of a daemon whose machines all wait, without what those take: not
    above the bound, if that comes to be. At work they are another number each time.
    """
    def rests():
        nonlocal figures
        waiting = checked.machines(daemon.socket, "_parked{.*}")
        _, descriptors, threads = checked.process_figures(daemon.process.pid)
        figures = (descriptors - OF_A_MACHINE * waiting, threads)
        return 0 < waiting == checked.machines(daemon.socket) and not_more(figures, bound)
    figures = None
    checked.wait_until(rests, 60)
    return figures


def write_settings(daemon, room):
    path = daemon.dir / "settings.yaml"
    path.write_text(f"retention: {{executions_bytes: {room}, interval: 200ms}}\n")
    return path


def check_rows(failures, work, store, daemon):
    rows = dict(store.query("SELECT id, status FROM executions"))
    failures.unless(rows.keys() == work.statuses.keys(),
                    f"{len(work.statuses)} were acknowledged, {len(rows)} are stored")
    for identity, status in work.statuses.items():
        failures.unless(rows.get(identity) == status,
                        f"{identity} is {rows.get(identity)} and not {status}")
    failures.unless(store.statuses() == checked.counters(daemon.socket),
                    f"rows {store.statuses()}, counters {checked.counters(daemon.socket)}")


def growth(samples, slack):
    """
    How memory grew, "" where it did not: the median of the last third against that of the third
    before it. What an execution that floods holds for a moment is high and short: it says nothing
    of what is kept.
    """
    third = len(samples) // 3
    if third < 3:
        return ""
    middle = statistics.median(sample[0] for sample in samples[third:2 * third])
    last = statistics.median(sample[0] for sample in samples[2 * third:])
    return "" if last <= middle + slack else f"memory grew from {middle} to {last} KiB"


def describe(samples):
    return (f"at most {max(s[0] for s in samples) / 1024:.1f} MiB resident, "
            f"{max(s[1] for s in samples)} descriptors, {max(s[2] for s in samples)} threads, "
            f"{max(s[3] for s in samples) / (1 << 20):.1f} MiB of disk")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--executions", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--any-memory", action="store_true",
                        help="sanitizers keep what was freed: memory is not looked at")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    failures = checked.Failures()
    daemon = stand_in.Daemon("--max-running", "4", "--max-queued", "5")
    store = checked.Store(daemon.dir / "data")
    checked.request(daemon.socket, "POST", "/v1/skills", checked.skill_tar("demo", "1"),
                    kind="application/octet-stream")

    half = options.executions // 2
    begin = time.monotonic()
    work, samples = work_off(f"{options.seed}/kept", half, options.clients, daemon, store)
    seconds = time.monotonic() - begin
    for problem in work.problems:
        failures.unless(False, problem)
    check_rows(failures, work, store, daemon)
    outcomes = collections.Counter(work.statuses.values())
    print(f"{len(work.statuses)} executions in {seconds:.1f} s ({dict(outcomes)}), "
          f"{work.refused} refused, {work.overloaded} times overloaded; {describe(samples)}")
    slack = 1 << 30 if options.any_memory else 2048
    grew = [growth(samples, slack)]
    kept_disk = store.disk_bytes()

    daemon.stop(signal.SIGTERM)
    daemon.options = (*daemon.options, "--config", str(write_settings(daemon, 1 << 40)))
    daemon.start()
    write_settings(daemon, ROOM)
    daemon.process.send_signal(signal.SIGHUP)
    room_sql = "SELECT COALESCE(SUM(result_bytes + artifact_bytes), 0) FROM executions"
    fits = checked.wait_until(lambda: store.query(room_sql)[0][0] <= ROOM, 60)
    failures.unless(fits, f"retention left {store.query(room_sql)[0][0]} bytes of results")
    # What the objects and the database take beside it is bounded too.
    bound = 4 * ROOM + (8 << 20)
    shrunk = checked.wait_until(lambda: store.disk_bytes() <= bound, 60)
    failures.unless(shrunk, f"{store.disk_bytes()} bytes of disk are in use after retention")
    print(f"retention: {kept_disk / (1 << 20):.1f} MiB of disk became "
          f"{store.disk_bytes() / (1 << 20):.1f} MiB")

    work, samples = work_off(f"{options.seed}/bounded", options.executions - half,
                             options.clients, daemon, store)
    for problem in work.problems:
        failures.unless(False, problem)
    print(f"{len(work.statuses)} more with {ROOM >> 20} MiB of room: {describe(samples)}")
    # What is kept of each execution is kept each time.
    grew.append(growth(samples, slack))
    failures.unless(not all(grew), "; ".join(grew))
    failures.unless(max(s[3] for s in samples) <= 2 * bound,
                    f"the disk grew to {max(s[3] for s in samples)} bytes")
    counted = checked.counters(daemon.socket)
    failures.unless(counted == collections.Counter(work.statuses.values()),
                    f"counters {counted}, answers {collections.Counter(work.statuses.values())}")
    failures.unless(daemon.stop() == 0, "the daemon did not stop well")
    daemon.start()
    daemon.stop()
    store.check(failures)
    result = failures.report()
    if result == 0:
        daemon.close()
    else:
        print(f"the data folder is left in {daemon.dir}")
    return result


if __name__ == "__main__":
    sys.exit(main())
