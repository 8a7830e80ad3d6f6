# SPDX-License-Identifier: Apache-2.0
"""What a machine takes of the host whose guest is the attacker's from its kernel up and takes all that it can: each
page of its memory, its vCPU without a pause, and the thread of its devices, which has data both ways.

The guest is tests/hostile/guest (take-all), its machine the one that is shipped, started by skillvm-jail as for
the daemon.
"""

import contextlib
import multiprocessing
import os
import pathlib
import re
import select
import shutil
import time

import jail_client
from cases_limits import CPU_MAX, MIB, own_cgroup, words
from cases_neighbours import share_of, usage
from cases_programs import Asks, check_unchanged, state_of
from cases_reset import scratch_of
from harness import case, check, check_equal, joins, wait_until
from jailed import JailedTrial
from reset_driver import MEMORY_MIB

# Of its bytes so many are on their way at a time; a guest that is sent more than it has taken loses its connection.
ON_THE_WAY = 32768
CHUNK = bytes(4096)
# How long they are measured, by their own time; that of the first one with data both ways.
PERIODS, SHARED_S = 20, 5
# Of the processors of two with the same weight, and what a period more or less makes of it.
HALF, SLACK = 0.5, 1.2


class Taker(JailedTrial):
    """Two machines: one that takes all, and beside it one whose vCPU spins."""

    def begin(self, cell, attack):
        self.cell = cell
        self.start()
        self.attack([found for found in self.attacks if found.name == attack], True, 0)
        return self.machine

    def pass_data(self, stream):
        """To the guest and back, as much as goes now. How many bytes came back."""
        readable, writable, _ = select.select([stream], [stream] if self.sent < ON_THE_WAY else [], [], 0.05)
        if writable:
            self.sent += stream.send(CHUNK)
        came = len(stream.recv(1 << 16)) if readable else 0
        self.sent -= came
        return came


def pin(pid):
    """All threads of a machine to one processor, so that those of two share it."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {min(os.sched_getaffinity(0))})


def take(link, scratch, bin_dir, cgroup):
    """Has machines take all, in a process that is alone in its cgroup, until it is told to go on: with the first one
    alone, then with both. It says each time how much data came back."""
    joins(cgroup)()
    with contextlib.closing(jail_client.Jail(bin_dir / "skillvm-jail", bin_dir / "skillvm-vmm")) as jail:
        check_equal(jail.layers, jail_client.ALL, "layers of the jail")
        taker = Taker(bin_dir / "skillvm-vmm", scratch / "hostile-guest", scratch, jail=jail)
        taker.save()
        first = taker.begin(0, "take-all")
        taker.sent, came = 0, 0
        first.stream.setblocking(False)
        machines = [first]
        for _ in range(2):
            link.send(came)
            while not link.poll():
                came += taker.pass_data(first.stream)
            link.recv()
            if len(machines) == 1:
                machines.append(taker.begin(1, "spin"))
                for machine in machines:
                    pin(machine.process.pid)
        link.send(came)
        for machine in machines:
            machine.pump(0)
            check(not machine.problem, f"its machine: {machine.problem}")
            check_equal(machine.close(), 0, "how it ended")
        link.send("over")


@contextlib.contextmanager
def takers(world, cgroup):
    """The other end of take's link."""
    ours, theirs = multiprocessing.Pipe()
    scratch = scratch_of(world, "greedy")
    process = multiprocessing.Process(target=take, args=(theirs, scratch, pathlib.Path(world.bin_dir), cgroup))
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()
        shutil.rmtree(scratch)


def available():
    return int(re.search(r"MemAvailable: *(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10


def check_memory(cell):
    """That it has all of its guest's memory, and with all that it costs the host never came to its limit."""
    peak, most = (int((cell / f"memory.{name}").read_text()) for name in ("peak", "max"))
    guest = MEMORY_MIB * MIB
    check(guest <= peak <= most, f"{cell.name} had {peak} bytes of {most}")
    events = words(cell / "memory.events")
    check_equal([events[name] for name in ("max", "oom", "oom_kill")], ["0", "0", "0"], "times at its limit")
    print(f"greedy: {peak / MIB:.1f} MiB for a guest of {MEMORY_MIB} MiB; {most >> 20} MiB is its limit", flush=True)


def check_processors(cell):
    """That alone it has no more of them than one machine may."""
    def periods():
        return int(words(cell / "cpu.stat")["nr_periods"])

    began, then, before = time.monotonic(), periods(), usage(cell)
    wait_until(lambda: periods() >= then + PERIODS, 240, "some periods have gone")
    had = (usage(cell) - before) / 1e6 / (time.monotonic() - began)
    print(f"greedy: {had:.2f} processors alone; {CPU_MAX} is its limit", flush=True)
    check(had < CPU_MAX * SLACK, f"it had {had:.2f} processors")


@case
def a_guest_that_takes_all_has_its_limits(world):
    daemon = world.daemon
    before, kept_kib, free = state_of(daemon), daemon.rss_kib(), available()
    with own_cgroup("greedy") as folder, Asks(daemon) as beside, takers(world, folder) as link:
        cell = folder / "skillvm-machines" / "0"
        link.recv()
        check_processors(cell)
        check_memory(cell)
        link.send("both")
        came = link.recv()
        check(came > ON_THE_WAY, f"{came} bytes came back")
        share = share_of(cell, SHARED_S)
        print(f"greedy: {came} bytes came back; {share:.2f} of the processor beside another machine", flush=True)
        check(share < HALF * SLACK, f"it had {share:.2f} of the processor that it shares")
        check_memory(cell)
        most = 2 * int((cell / "memory.max").read_text())
        check(free - available() < most, f"of the host's memory {free - available()} bytes are gone")
        link.send("end")
        check(link.recv() >= came, "bytes that came back")
        check_equal(link.recv(), "over", "their end")
    check(not beside.problem, f"the daemon beside them: {beside.problem}")
    check(beside.asked["executions"] > 0, f"of the daemon only {dict(beside.asked)}")
    check_unchanged(daemon, before, kept_kib)
