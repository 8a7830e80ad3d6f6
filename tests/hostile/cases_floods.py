# SPDX-License-Identifier: Apache-2.0
"""A tenant that takes all it can get of one thing, and how long another one's executions take
beside it and alone: the slowest of a hundred but one, or of few the slowest tenth.

What a flood does to everybody is the host's affair: one processor in software stands still for a second
now and then, and a bare python3 of root's takes up to four times as long. That runs in turns with the
executions, and these may be slowed down by no more than twice as much, or twice.

FLOOD_RUNS: how many of each there are beside each flood.
"""

import collections
import contextlib
import http.client
import itertools
import math
import multiprocessing
import os
import subprocess
import sys
import time

from cases_limits import own_cgroup
from harness import Client, UnixConnection, bash_skill, check, check_equal, long_case, python_skill, wait_until
from tenants import Tenant

RUNS = int(os.environ.get("FLOOD_RUNS") or 10)
# In percent, and how many times as long it may be as alone where a bare process is as fast as alone.
RANK = 99 if RUNS >= 100 else 90
TIMES = 2
ROUNDS = 5
CONNECTIONS = 512 if RUNS >= 100 else 128
# A tenant may have so many at once; it wants as many more as there are slots.
SLOTS, AT_ONCE = 4, 2
KEPT = 4
IMPORTS = ("asyncio", "csv", "decimal", "email.message", "hashlib", "http.client", "sqlite3", "statistics",
           "unittest", "xml.etree.ElementTree")
FOREVER = 600
# Who is not served for as long is flooded, whatever the others' time.
PATIENCE = 120
BARE = [sys.executable, "-I", "-S", "-c", "print('hello')"]

SKILLS = {
    "processor": bash_skill("while :; do :; done"),
    "memory": python_skill(
        "while True:\n"
        "    held = bytearray(64 << 20)\n"
        "    for at in range(0, len(held), 4096):\n"
        "        held[at] = 1\n"
    ),
    "fork": bash_skill("while :; do (:) & done"),
    "disk": python_skill(
        "while True:\n"
        '    with open("/sandbox/out/f", "wb") as file:\n'
        "        for _ in range(32):\n"
        "            file.write(bytes(1 << 20))\n"
    ),
    "log": python_skill('while True:\n    print("x" * 1000)\n'),
    "artifacts": python_skill('open("/sandbox/out/f", "wb").write(__import__("os").urandom(16 << 20))\n'),
    "resets": python_skill("pass"),
}


def executions_of(tenant, name):
    """More than may be at work; what has ended begins again."""
    skill = tenant.push(SKILLS[name])
    places = collections.deque(tenant.start(skill, FOREVER) for _ in range(AT_ONCE + SLOTS))
    while True:
        for _ in range(AT_ONCE):
            if tenant.ask("GET", places[0]).json["status"] not in ("accepted", "running"):
                places[0] = tenant.start(skill, FOREVER)
            places.rotate()
        yield
        time.sleep(0.02)


def connections(tenant, _):
    """So many are open, and each asks again as soon as its turn is; who is closed comes back."""
    held = [UnixConnection(tenant.client.path, FOREVER) for _ in range(CONNECTIONS)]
    while True:
        for connection in held:
            try:
                connection.request("GET", "/v1/skills", headers=tenant.headers)
                answer = connection.getresponse()
                answer.read()
                check_equal(answer.status, 200, "one of them")
            except (OSError, http.client.HTTPException):
                connection.close()
        yield


def snapshots(tenant, _):
    """Skills whose imports no other had, each used until it is worth a snapshot of its own."""
    for n, modules in enumerate(itertools.cycle(itertools.combinations(IMPORTS, 3))):
        source = f"import {', '.join(modules)}\nprint({n})"
        skill = tenant.push(python_skill(source, name=f"skill-{n}"))
        for _ in range(3):
            tenant.run(skill)
            yield


FLOODS = {**dict.fromkeys(SKILLS, executions_of), "connections": connections, "snapshots": snapshots}


@contextlib.contextmanager
def flood(tenant, name):
    """In a process of its own, so that it takes no time of who measures."""
    begun = multiprocessing.Event()

    def work():
        for _ in FLOODS[name](tenant, name):
            begun.set()

    process = multiprocessing.Process(target=work, daemon=True)
    process.start()
    try:
        wait_until(lambda: begun.is_set() or not process.is_alive(), 120, f"a flood of {name}")
        yield
        check(process.is_alive(), f"the flood of {name} goes on")
    finally:
        process.kill()
        process.join()


def is_over(daemon, tenant):
    """The flood before, which is cancelled each time: a last one may still have been on its way."""
    for execution in tenant.ask("GET", "/v1/executions?status=running").json["executions"]:
        tenant.ask("DELETE", f"/v1/executions/{execution['execution_id']}")
    return len(daemon.machines()) == daemon.parked()


def milliseconds(function):
    begin = time.monotonic()
    function()
    return (time.monotonic() - begin) * 1000


def measure(victim, skill, runs):
    """Of executions and of bare processes, in turns."""
    pairs = [
        (
            milliseconds(lambda: victim.run(skill)),
            milliseconds(lambda: subprocess.run(BARE, stdout=subprocess.DEVNULL, check=True)),
        )
        for _ in range(runs)
    ]
    return [sorted(found) for found in zip(*pairs)]


def percentile(found, rank):
    """Of times that are sorted: so many percent of them are no longer."""
    return found[math.ceil(len(found) * rank / 100) - 1]


def told(found):
    p50, p90, p99 = (percentile(found, rank) for rank in (50, 90, 99))
    return f"p50 {p50:.0f} ms, p90 {p90:.0f} ms, p99 {p99:.0f} ms, max {found[-1]:.0f} ms"


def is_making(daemon):
    """A snapshot: it lies with what is temporary, and for longer than all else."""
    before = set(daemon.leftovers())
    time.sleep(0.5)
    return before & set(daemon.leftovers())


def is_bearable(victim, skill, name, alone):
    """Beside the flood of this name. Where few are too slow more are measured, and all of them count: what stood
    still for seconds is then one of many."""
    beside = [[], []]
    for _ in range(ROUNDS):
        beside = [sorted(found + more) for found, more in zip(beside, measure(victim, skill, RUNS))]
        ratio, bare = (
            percentile(now, RANK) / percentile(before, RANK) for now, before in zip(beside, alone)
        )
        print(f"beside {name}: {told(beside[0])} of {len(beside[0])}, p{RANK} {ratio:.1f} times; of a bare process "
              f"{bare:.1f} times", flush=True)
        if ratio <= TIMES * max(bare, 1):
            return True
    return False


@long_case
def floods_leave_a_neighbour_its_time(world):
    with own_cgroup("floods") as folder:
        daemon = world.copy_of_snapshots("floods", ["--max-running", str(SLOTS)], kept=KEPT)
        daemon.start(cgroup=folder)
        victim = Tenant(daemon, "victim")
        victim.client = Client(daemon.socket, PATIENCE)
        hostile = Tenant(daemon, "hostile", max_running=AT_ONCE)
        skill = victim.push(python_skill('print("hello")', name="hello"))
        for _ in range(5):
            victim.run(skill)
        alone = measure(victim, skill, RUNS * 2)
        print(f"alone: {told(alone[0])}; a bare process {told(alone[1])}", flush=True)
        slow = []
        for name in FLOODS:
            wait_until(lambda: is_over(daemon, hostile), 60, "machines are over")
            with flood(hostile, name):
                if name == "snapshots":
                    wait_until(lambda: is_making(daemon), 120, "a snapshot is being made")
                if not is_bearable(victim, skill, name, alone):
                    slow.append(name)
        check_equal(slow, [], f"what slows another tenant's p{RANK} down more than {TIMES} times as much as a bare process's")
        check_equal(daemon.stop(), 0, "its exit status")
