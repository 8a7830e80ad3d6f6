# SPDX-License-Identifier: Apache-2.0
"""Resets a machine whose guest is tests/hostile/guest, through the VMM's control socket.

The guest is booted and saved at its quiet point, and restored; from then on it is reset, again
and again, and in between it is told what harm to do. After each reset it looks at itself, and
a VMM that verifies (skillvm-vmm-verify) compares the machine with its snapshot and fails at
the first difference. A guest that ended its machine gets a new one. With `fresh` every run has
a new machine: what differs then is no fault of the reset.

As a program: reset_driver.py --vmm FILE --guest FILE [--resets N] [--seed N] [--fresh]
[--only ATTACK]… [--scratch DIR] [--msrs] [--verbose]. One line for each failure, then the totals.
"""

import argparse
import collections
import os
import pathlib
import random
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

VERSION = 2
SNAPSHOT, QUIT, RESET = 1, 2, 3
RESUMED, CONNECTED, SAVED, EXITED, FAILED, WAS_RESET = 1, 2, 3, 4, 5, 6
MEMORY_MIB = 32
CHAIN_MAX = 6
# An emulated machine on a busy one.
TIMEOUT = 180


def runs_in_emulator():
    """QEMU stands below, which must not be asked for everything: see the guest's header."""
    vendor = pathlib.Path("/sys/class/dmi/id/sys_vendor")
    return vendor.exists() and vendor.read_text().strip() == "QEMU"


class Broken(Exception):
    """The machine failed, or did not do what it must; the text says what."""


class Ended(Exception):
    """The guest ended its machine; the text says how."""


class Machine:
    """One VMM process: what it says on its control socket and what its guest says."""

    def __init__(self, vmm, mode, files, more=()):
        self.control, control_far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stream, stream_far = socket.socketpair()
        self.console, console_far = os.pipe()
        fds = {name: os.open(path, os.O_RDONLY) for name, path in files.items()}
        fds |= {
            "control": control_far.fileno(),
            "vsock": stream_far.fileno(),
            "console": console_far,
        }
        self.process = self.begin([str(vmm), mode, *more], fds)
        control_far.close()
        stream_far.close()
        for name, fd in fds.items():
            if name not in ("control", "vsock"):
                os.close(fd)
        self.text = b""
        self.lines = collections.deque()
        self.events = collections.deque()
        self.problem = None

    def begin(self, command, fds):
        """Its process, which is given descriptors by the names of their options."""
        for name, fd in fds.items():
            command += [f"--{name}-fd", str(fd)]
        return subprocess.Popen(command, pass_fds=list(fds.values()))

    def close(self):
        self.control.close()
        self.stream.close()
        if self.console >= 0:
            os.close(self.console)
            self.console = -1
        try:
            return self.process.wait(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Broken("the VMM did not end with its control socket") from None

    def _read_event(self):
        try:
            message = self.control.recv(4096)
        except ConnectionResetError:
            # It ended without reading the last command; what it had said before comes now.
            message = self.control.recv(4096)
        if not message:
            self.problem = self.problem or Broken(f"the VMM ended, status {self.process.wait()}")
            return
        _, kind, _, value = struct.unpack_from("<IIQQ", message)
        text = message[24:].split(b"\0")[0].decode(errors="replace")
        if kind == FAILED:
            # It had ended before the RESET came.
            too_late = text.startswith("no reset of a guest that ended")
            self.problem = Ended(text) if too_late else Broken(text)
        elif kind == EXITED:
            self.problem = Ended(text)
        else:
            self.events.append((kind, value))

    def _read_console(self):
        self._hear(os.read(self.console, 65536))

    def _hear(self, data):
        *lines, self.text = (self.text + data).split(b"\n")
        self.lines.extend(line.decode(errors="replace") for line in lines)

    def drain(self):
        """Reads the last words of a guest that ended."""
        while self.console in select.select([self.console], [], [], 0)[0]:
            before = len(self.lines)
            self._read_console()
            if len(self.lines) == before:
                break

    def pump(self, wait):
        """Reads what there is, after at most so many seconds. False: there was nothing."""
        ready, _, _ = select.select([self.control, self.console], [], [], wait)
        if self.console in ready:
            self._read_console()
        if self.control in ready:
            self._read_event()
        return ready

    def _until(self, take, what):
        end = time.monotonic() + TIMEOUT
        while True:
            found = take()
            if found is not None:
                return found
            if self.problem:
                # The guest's last words came before it.
                self.drain()
                found = take()
                if found is not None:
                    return found
                raise self.problem
            if time.monotonic() > end:
                raise Broken(f"no {what} in {TIMEOUT} s; the last line is {self.text!r}")
            self.pump(1)

    def wait_event(self, kind):
        def take():
            while self.events:
                event = self.events.popleft()
                if event[0] == kind:
                    return event[1]
            return None

        return self._until(take, f"event {kind}")

    def line(self):
        return self._until(lambda: self.lines.popleft() if self.lines else None, "line")

    def read_stream(self, n):
        """Exactly what the guest sends first on this stream."""
        data = b""
        self.stream.settimeout(TIMEOUT)
        while len(data) < n:
            try:
                piece = self.stream.recv(n - len(data))
            except TimeoutError:
                piece = b""
            if not piece:
                self.pump(1)
                raise self.problem or Broken("the guest does not answer on its stream")
            data += piece
        return data

    def reset(self, hurry=False):
        """The old stream stays open at this end until the new one is there; in a hurry it ends
        at the same time as the command comes."""
        old = self.stream
        self.stream, far = socket.socketpair()
        with old:
            try:
                socket.send_fds(self.control, [struct.pack("<IIQQ", VERSION, RESET, 0, 0)], [far.fileno()])
            except OSError as problem:
                self.pump(0)
                raise self.problem or Broken(f"RESET could not be sent: {problem}") from None
            finally:
                far.close()
            if hurry:
                old.close()
            return self.wait_event(WAS_RESET)


class Attack:
    def __init__(self, number, name, flags):
        self.number, self.name, self.flags = number, name, flags

    def has(self, *flags):
        return any(flag in self.flags for flag in flags)


class Trial:
    """The guest, its snapshot, and one machine after the other."""

    def __init__(self, vmm, guest, scratch, seed=1, fresh=False, verbose=False):
        self.vmm, self.guest, self.fresh, self.verbose = vmm, guest, fresh, verbose
        self.dir = pathlib.Path(scratch)
        self.random = random.Random(seed)
        self.gentle = runs_in_emulator()
        self.attacks = []
        self.generations = set()
        self.machine = None
        self.counts = collections.Counter()
        self.failures = []
        self.disk = self.dir / "disk"
        self.disk.write_bytes(random.Random(1).randbytes(1 << 20))

    def boot(self):
        files = {"kernel": self.guest, "image": self.disk}
        return Machine(self.vmm, "boot", files, ["--memory-mib", str(MEMORY_MIB)])

    def report_msrs(self):
        machine = self.boot()
        machine.wait_event(CONNECTED)
        machine.stream.sendall(struct.pack("<IHHQ12I", 0, 0, 0, 0, *[0] * 12))
        while (line := machine.line()) != "end":
            if line.startswith(("msr ", "lost ")):
                print(line)
        machine.close()

    def save(self):
        machine = self.boot()
        machine.wait_event(CONNECTED)
        machine.stream.close()
        while (line := machine.line()) != "ready":
            if line.startswith("lost "):
                raise Broken(line)
            if line.startswith("attack "):
                _, name, flags = line.split()
                self.attacks.append(Attack(len(self.attacks), name, flags))
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        fds = [os.open(self.dir / name, flags, 0o600) for name in ("state", "memory")]
        socket.send_fds(machine.control, [struct.pack("<IIQQ", VERSION, SNAPSHOT, 0, 0)], fds)
        for fd in fds:
            os.close(fd)
        machine.wait_event(SAVED)
        machine.close()

    def start(self):
        files = {
            "image": self.disk,
            "state": self.dir / "state",
            "memory": self.dir / "memory",
        }
        self.machine = self.restore(files, [] if self.fresh else ["--reusable"])
        self.machine.wait_event(RESUMED)
        self.counts["machines"] += 1

    def restore(self, files, more):
        return Machine(self.vmm, "restore", files, more)

    def end_machine(self):
        if self.machine:
            self.machine.close()
        self.machine = None

    def woken(self):
        """The guest woke up as it was saved; what differs, in its own words."""
        found = []
        while True:
            line = self.machine.line()
            if line.startswith("resumed "):
                break
            # What the last run still said. Only whole lines, and none after it.
            if line.startswith(("differs ", "checked ")) or "resumed" in line:
                raise Broken(f"{line!r} instead of the first line after a reset")
        generation = line.split()[1]
        if generation in self.generations:
            raise Broken(f"generation {generation} for the second time")
        self.generations.add(generation)
        return found + self.checked()

    def checked(self):
        found = []
        while not (line := self.machine.line()).startswith("checked "):
            found.append(line)
        return found

    def choose(self, n):
        """Each attack alone once, in order; from then on, chains by chance."""
        if n < len(self.attacks):
            return [self.attacks[n]]
        first = [a for a in self.attacks if not a.has("l", "f", "x")]
        chain = [self.random.choice(first)]
        middle = [a for a in first if not a.has("a")]
        chain += self.random.choices(middle, k=self.random.randrange(CHAIN_MAX - 1))
        if self.random.random() < 0.7:
            chain.append(self.random.choice([a for a in self.attacks if a.has("l", "f", "x")]))
        return chain

    def attack(self, chain, patient, check_all):
        """Tells the guest what to do and waits until it is in its last state."""
        machine = self.machine
        seed = self.random.getrandbits(63)
        numbers = [a.number for a in chain]
        command = struct.pack("<IHHQ", len(chain), check_all, self.gentle, seed)
        command += struct.pack("<12I", *numbers, *[0] * (12 - len(numbers)))
        machine.stream.sendall(command)
        echo = machine.read_stream(8)
        if echo != struct.pack("<Q", seed):
            raise Broken(f"the stream begins with {echo.hex()}, not with this run's seed")
        if check_all:
            found = self.checked()
            if found:
                raise Broken("; ".join(found))
        if not patient:
            return
        while (line := machine.line()) != "end":
            if line.startswith("lost trap"):
                # What trapped and where: lines that follow at once.
                raise Broken(f"{line}; {machine.line()}; {machine.line()}")
            if line.startswith("lost "):
                raise Broken(line)

    def renew(self, where):
        """The machine at its quiet point again: by a reset, or a new one that nobody harmed."""
        if self.machine:
            self.counts["pages"] += self.machine.reset()
            self.counts["resets"] += 1
            found = self.woken()
            if not found:
                return
            self.fail(where, found)
            self.end_machine()
        self.start()
        found = self.woken()
        if found:
            raise Broken("a new machine: " + "; ".join(found))

    def run(self, resets, only=()):
        """So many runs, each after a reset (or in a new machine). Failures are kept."""
        chains = [[a] for a in self.attacks if a.name in only]
        name = "nothing"
        for n in range(resets):
            chain = chains[n % len(chains)] if only else self.choose(n)
            before, name = name, "+".join(a.name for a in chain)
            where, blamed = f"reset {n} after {before}", before
            try:
                self.renew(where)
                where, blamed = f"run {n} of {name}", name
                if self.verbose:
                    print(where, file=sys.stderr, flush=True)
                patient = len(chain) == 1 or self.random.random() < 0.8
                self.attack(chain, patient, self.random.random() < 0.1)
                if patient and any(a.flags == "x" for a in chain):
                    # A reset must not save it.
                    raise Broken("the machine goes on")
                # Not always the same moment of what it does there.
                if self.random.random() < 0.5:
                    self.machine.pump(self.random.random() * 0.01)
                if self.machine.problem:
                    raise self.machine.problem
            except Ended as end:
                self.ended(where, blamed, end)
            except Broken as problem:
                self.fail(where, [str(problem)])
                self.machine.process.kill()
                self.end_machine()
            if self.fresh:
                self.end_machine()
        self.end_machine()

    def hurry(self, resets):
        """Resets one after the other, whatever the guest has come to; then it is in order."""
        self.start()
        for _ in range(resets):
            self.machine.reset()
            self.counts["resets"] += 1
        spin = next(a for a in self.attacks if a.name == "spin")
        self.attack([spin], False, 0)
        lines = []
        while not lines or lines[-1] != "end":
            lines.append(self.machine.line())
        # Those of earlier resets are whole, or not there.
        known = ("resumed ", "checked 0000000000000000", "run spin", "end")
        odd = [line for line in lines if not line.startswith(known)]
        if odd:
            raise Broken("; ".join(odd))
        self.end_machine()

    def ended(self, where, name, end):
        self.counts["ended"] += 1
        allowed = any(a.has("m", "x") for a in self.attacks if a.name in name.split("+"))
        if not allowed:
            self.fail(where, [f"the machine ended: {end}"])
        try:
            status = self.machine.close()
        except Broken as problem:
            self.fail(where, [str(problem)])
            status = 0
        if status != (1 if str(end).startswith("no reset") else 0):
            self.fail(where, [f"the VMM ended with status {status}"])
        self.machine = None

    def fail(self, where, found):
        self.failures.append((where, found))
        print(f"{where}: " + "; ".join(found[:6]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vmm", required=True)
    parser.add_argument("--guest", required=True)
    parser.add_argument("--resets", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="each run, on standard error")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--scratch", default=None)
    parser.add_argument("--msrs", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        trial = Trial(options.vmm, options.guest, scratch, options.seed, options.fresh,
                      options.verbose)
        if options.msrs:
            trial.report_msrs()
            return 0
        trial.save()
        begin = time.monotonic()
        trial.run(options.resets, options.only)
        seconds = time.monotonic() - begin
    counts = dict(trial.counts)
    print(f"{len(trial.failures)} failures in {options.resets} runs, {seconds:.1f} s: {counts}")
    return 1 if trial.failures else 0


if __name__ == "__main__":
    sys.exit(main())
