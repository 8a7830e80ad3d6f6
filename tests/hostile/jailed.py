# SPDX-License-Identifier: Apache-2.0
"""Machines of tests/hostile/guest that skillvm-jail starts, as it does for the daemon: the process that is
shipped, in all layers, with the limits that it has there, and without a console. What the guest says is read from
its memory.

Who starts them takes the daemon's place, in a cgroup in which there is nobody else (cases_limits.py).
"""

import math
import os
import pathlib
import re
import select
import struct
import subprocess
import time

import jail_client
from reset_driver import MEMORY_MIB, Broken, Machine, Trial

CGROUPS = pathlib.Path("/sys/fs/cgroup")
# As tests/hostile/guest/lib.c has it: then the number of bytes, and the last so many of them.
SAID, SAID_BYTES = b"said by a guest\0", 1 << 16
# How often it is looked at.
LOOK_S = 0.005


class Child:
    """A child that another process has made: of subprocess.Popen what is asked of a machine's."""

    def __init__(self, pid):
        self.pid, self.status = pid, None

    def wait(self, timeout=math.inf):
        until = time.monotonic() + timeout
        while self.status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                raise subprocess.TimeoutExpired("skillvm-vmm", timeout)
            else:
                time.sleep(0.005)
        return self.status

    def kill(self):
        if self.status is None:
            os.kill(self.pid, 9)


class Said:
    """Where in a guest's memory it says what it says, and how much it had said when it was saved."""

    def __init__(self, memory):
        data = memory.read_bytes()
        self.at = data.index(SAID) + len(SAID)
        (self.n,) = struct.unpack_from("<Q", data, self.at)


class Jailed(Machine):
    """One in a cell of a jail in which there is no other."""

    def __init__(self, jail, cell, said, files):
        self.jail, self.cell, self.said, self.heard = jail, cell, said, said.n
        self.memory, self.is_awake = None, False
        self.memory_max = jail_client.memory_max(MEMORY_MIB << 20, files["memory"].parent)
        super().__init__("skillvm-vmm", "restore", files, ["--reusable"])
        path = pathlib.Path(f"/proc/{self.process.pid}/cgroup").read_text().strip().partition("::/")[2]
        self.cgroup = CGROUPS / path

    def begin(self, command, fds):
        given = {name: fd for name, fd in fds.items() if name != "console"}
        numbers = jail_client.GIVEN_FDS | {name: fd for fd, name in enumerate(given, jail_client.FIRST_FD)}
        for name, number in numbers.items():
            command += [f"--{name}-fd", number]
        self.log, log = jail_client.make_log()
        pid, error = self.jail.start(self.cell, self.memory_max, command, [log, *given.values()])
        os.close(log)
        if error:
            raise OSError(error, "a machine could not be started")
        return Child(pid)

    def open_memory(self):
        """That of its process, which maps the snapshot's."""
        maps = pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()
        for begin, end, offset in re.findall(r"^(\w+)-(\w+) rw\S* (\w+) .*/memory$", maps, re.M):
            at = int(begin, 16) + self.said.at - int(offset, 16)
            if int(begin, 16) <= at < int(end, 16):
                self.memory, self.at = os.open(f"/proc/{self.process.pid}/mem", os.O_RDONLY), at
                return
        raise Broken(f"no memory of a guest in {maps}")

    def listen(self):
        """Whether the guest has said something. Nothing is read of one that has ended."""
        if self.memory is None:
            self.open_memory()
        (n,) = struct.unpack("<Q", os.pread(self.memory, 8, self.at) or bytes(8))
        if not n or n == self.heard:
            return False
        if not 0 < n - self.heard <= SAID_BYTES:
            raise Broken(f"of what the guest says {self.heard} bytes became {n}")
        begin, end = self.heard % SAID_BYTES, n % SAID_BYTES
        for start, stop in ((begin, end),) if begin < end else ((begin, SAID_BYTES), (0, end)):
            self._hear(os.pread(self.memory, stop - start, self.at + 8 + start))
        self.heard = n
        return True

    def drain(self):
        """What it said last went with its memory."""

    def pump(self, wait):
        until, heard = time.monotonic() + wait, False
        while True:
            ready, _, _ = select.select([self.control], [], [], min(wait, LOOK_S))
            if ready:
                self._read_event()
            elif self.is_awake:
                heard = self.listen()
            if ready or heard or time.monotonic() >= until:
                return ready or heard

    def wait_event(self, kind):
        """For that of a start or of a reset."""
        self.is_awake = False
        found = super().wait_event(kind)
        # What was said before a reset is not there any more.
        self.is_awake, self.heard, self.text = True, self.said.n, b""
        self.lines.clear()
        return found

    def complaint(self):
        """On its standard error."""
        try:
            return os.read(self.log, jail_client.LOG_BYTES).decode(errors="replace")
        except BlockingIOError:
            return ""

    def peak(self):
        """Bytes of the host's that it has had at most."""
        return int((self.cgroup / "memory.peak").read_text())

    def close(self):
        status = super().close()
        if complaint := self.complaint():
            print(f"the VMM said: {complaint}", flush=True)
        os.close(self.log)
        if self.memory is not None:
            os.close(self.memory)
        if self.jail.look(self.cell):
            print(f"memory ended it, of which it may have {self.memory_max} bytes", flush=True)
        return status


class JailedTrial(Trial):
    """A trial whose machines are started by a jail, where one is given."""

    def __init__(self, vmm, guest, scratch, seed=1, jail=None):
        super().__init__(vmm, guest, scratch, seed)
        self.jail, self.cell, self.said = jail, 0, None

    def restore(self, files, more):
        if not self.jail:
            return super().restore(files, more)
        self.said = self.said or Said(files["memory"])
        return Jailed(self.jail, self.cell, self.said, files)

    def checked(self):
        """What differs, but for the serial port that a machine of the daemon's has not."""
        return [line for line in super().checked() if not (self.jail and line.startswith("differs serial "))]
