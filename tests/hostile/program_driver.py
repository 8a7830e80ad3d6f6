# SPDX-License-Identifier: Apache-2.0
"""Has the guest of tests/hostile/guest run generated programs against its devices.

Every machine is restored from one snapshot and runs a batch of programs, one seed after the other;
a program that ends its machine must do so with a cause that the VMM names, and the next seed runs
in a new one. After a batch the machine is reset, and the VMM compares it with its snapshot. What a
program may not change is looked at after each batch: the VMM's memory, descriptors and threads.

With a jail of jail_client.py the machines are started by that, and the guest alone compares.

As a program: program_driver.py --vmm FILE --guest FILE [--programs N] [--seed N] [--scratch DIR].
One line for each failure, then the totals.
"""

import argparse
import collections
import os
import pathlib
import re
import struct
import sys
import tempfile
import time

from jailed import JailedTrial
from reset_driver import MEMORY_MIB, Broken, Ended

MAGIC = 0x736D6172676F7270
BATCH = 128
# Of what a machine's process has beside its guest's memory.
OVERHEAD_KIB = 8 * 1024
# A program takes milliseconds; the machine may be an emulated one, on a busy computer.
PROGRAM_S = 60
SECTOR = 512
MARK = re.compile(r"@([0-9a-f]{2})$")
PROGRESS_S = 60
# Nothing is learned from more.
FAILURES_MAX = 20


def process_facts(pid):
    """What no program may change of its VMM: descriptors, threads; and its own memory in KiB. The numbers
    of the descriptors are those that were free here when it began."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    numbers = dict(re.findall(r"^(\w+):\s+(\d+)", status, re.M))
    descriptors = sorted(
        re.sub(r"\d+", "N", os.readlink(f"/proc/{pid}/fd/{fd}"))
        for fd in os.listdir(f"/proc/{pid}/fd")
    )
    return (descriptors, numbers["Threads"]), int(numbers.get("RssAnon", 0))


class Programs(JailedTrial):
    """The guest's snapshot, and machines that run programs."""

    def __init__(self, vmm, guest, scratch, seed, jail=None):
        super().__init__(vmm, guest, scratch, seed, jail)
        self.seed = seed
        self.causes = collections.Counter()
        self.write_command(0, 0)
        self.facts = None
        # Of the batch that runs: its first seed, the place of the last one begun, and when.
        self.first, self.place, self.begun = 0, -1, 0

    def write_command(self, first, n):
        """Into the disk's first sector, which the guest reads when it wakes."""
        command = struct.pack("<QQII", MAGIC, first, n, self.gentle)
        with self.disk.open("r+b") as disk:
            disk.write(command.ljust(SECTOR, b"\0"))

    def wake(self, first, n):
        """A machine at its quiet point that goes on with these programs."""
        self.write_command(first, n)
        try:
            self.renew(f"reset before program {first}")
        except Ended as problem:
            # What the last program left was found after it was over.
            self.ended_by(problem)
            self.renew("")
        self.first, self.place, self.begun = first, -1, time.monotonic()

    def host(self, turn, way):
        """What the host's end of the stream does meanwhile. False when it is closed."""
        stream = self.machine.stream
        stream.setblocking(False)
        try:
            if way == 1:
                stream.send(bytes([turn % 251]) * 3000)
            elif way == 2 and turn == 5:
                stream.close()
                return False
            elif way == 3 and turn == 3:
                stream.shutdown(turn % 3)
            self.counts["bytes"] += len(stream.recv(1 << 16))
        except OSError:
            pass
        return True

    def take_lines(self):
        """True when the guest says that the batch is over."""
        while self.machine.lines:
            line = self.machine.lines.popleft()
            if mark := MARK.search(line):
                self.place = (int(mark[1], 16) - self.first) % 256
                self.begun = time.monotonic()
            elif line.endswith("end"):
                # Behind what the last program said itself.
                return True
            elif line.startswith("lost "):
                raise Broken(f"program {self.first + self.place}: {line}")
        return False

    def batch(self, first, n):
        """Runs programs first … first + n - 1. How many of them took place."""
        self.wake(first, n)
        machine, way, turn, is_open = self.machine, self.random.randrange(6), 0, True
        while not self.take_lines():
            if machine.problem:
                return self.ended_by(machine.problem)
            if time.monotonic() - self.begun > PROGRAM_S:
                raise Broken(f"program {first + self.place}: not over after {PROGRAM_S} s")
            # The host's end is read when the guest has nothing to say, and now and then.
            ready = machine.pump(0.005)
            if is_open and (not ready or turn % 16 == 0):
                is_open = self.host(turn, way)
            turn += 1
        self.look()
        return n

    def ended_by(self, problem):
        """A program ended its machine: the VMM must have said why, and ended in order."""
        machine = self.machine
        machine.drain()
        self.take_lines()
        where = f"program {self.first + self.place}"
        if not isinstance(problem, Ended) or not str(problem):
            raise Broken(f"{where}: {problem}")
        status = machine.close()
        self.machine = None
        too_late = str(problem).startswith("no reset of a guest that ended")
        if status != (1 if too_late else 0):
            raise Broken(f"{where}: the VMM ended with status {status} after: {problem}")
        self.causes[re.sub(r"0x[0-9a-f]+|\d+", "N", str(problem))] += 1
        # What is seen of one without a console may be a program or more behind.
        return max(self.place, 0) + 1

    def look(self):
        where = f"programs {self.first} to {self.first + self.place}"
        try:
            facts, rss_kib = process_facts(self.machine.process.pid)
        except OSError:
            # It ended, and what comes next says how.
            return
        # One that ends has none any more. All others have the same.
        self.facts = self.facts or facts
        if facts[0] and facts != self.facts:
            # Or it is about to end, one thread after the other, and says so.
            while self.machine.pump(10):
                if self.machine.problem:
                    return
            raise Broken(f"{where}: of the VMM {self.facts} became {facts}")
        if rss_kib > MEMORY_MIB * 1024 + OVERHEAD_KIB:
            raise Broken(f"{where}: the VMM has {rss_kib} KiB")
        if self.jail:
            self.counts["peak KiB"] = max(self.counts["peak KiB"], self.machine.peak() >> 10)

    def kill_machine(self):
        if self.machine:
            self.machine.process.kill()
            self.end_machine()

    def run_programs(self, n):
        """n programs. A failure is kept with the seed that shows it again, and ends its machine."""
        files = set(os.listdir(self.dir))
        # How it is without any.
        self.batch(0, 0)
        begin = said = time.monotonic()
        seed, end = self.seed, self.seed + n
        while seed < end and len(self.failures) < FAILURES_MAX:
            size = min(BATCH, end - seed)
            try:
                seed += self.batch(seed, size)
            except Broken as problem:
                again = f"again with HOSTILE_SEED={seed} HOSTILE_PROGRAMS={size}"
                self.fail("programs", [str(problem), again])
                self.kill_machine()
                seed += size
            if time.monotonic() - said > PROGRESS_S:
                said = time.monotonic()
                rate = (seed - self.seed) / (said - begin)
                print(f"programs: {seed - self.seed} of {n}, {rate:.0f} a second", flush=True)
        self.end_machine()
        if left := set(os.listdir(self.dir)) - files:
            self.fail("programs", [f"files left: {sorted(left)}"])
        self.counts["programs"] = seed - self.seed
        return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vmm", required=True)
    parser.add_argument("--guest", required=True)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        programs = Programs(options.vmm, options.guest, scratch, options.seed)
        programs.save()
        seconds = programs.run_programs(options.programs)
    for cause, count in programs.causes.most_common():
        print(f"{count:6} {cause}")
    counts = dict(programs.counts)
    print(f"{len(programs.failures)} failures, {seconds:.1f} s: {counts}")
    return 1 if programs.failures else 0


if __name__ == "__main__":
    sys.exit(main())
