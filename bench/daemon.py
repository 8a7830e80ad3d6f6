# SPDX-License-Identifier: Apache-2.0
"""A skillvmd of a measurement's own, and what /metrics and /proc say of it and its machines."""

import os
import re
import subprocess
import time
from pathlib import Path

import skillvm

# Below it a softhost's and a service's are.
CGROUPS = Path("/sys/fs/cgroup/skillvm")
FRESH = 'skillvm_machines_parked{kind="fresh"}'
USED = 'skillvm_machines_parked{kind="used"}'


class Daemon:
    """Runs from `with` to its end; `settings` are variables of its environment. Machines of one
    that is not alone in its cgroup have no limits of their own."""

    def __init__(self, programs, share, folder, settings=None, alone=True):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True)
        self.socket = str(self.folder / "sock")
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.command = [f"{programs}/skillvmd", "--socket", self.socket, "--data", str(self.data),
                        "--share", str(share), "--grace", "30", "--log-level", "warn"]
        self.environment = {**os.environ, **(settings or {})}
        self.client = skillvm.Client(self.socket)
        self.process, self.alone, self.other = None, alone, None

    def _cgroup(self):
        """As a service it has one of its own, where this process may make one; or None."""
        folder = CGROUPS / f"{self.folder.name}-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            return None
        return folder / "cgroup.procs"

    def __enter__(self):
        cgroup = self._cgroup()
        join = cgroup and (lambda: cgroup.write_text("0"))
        if not self.alone:
            self.other = subprocess.Popen(["sleep", "infinity"], preexec_fn=join)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stderr=log,
                                            preexec_fn=join)
        while not self._ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"skillvmd ended with {self.process.returncode}: {self.said()}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        for process in (self.process, self.other):
            if process:
                process.terminate()
                process.wait()

    def _ready(self):
        try:
            return self.client.ready().get("status") == "ready"
        except skillvm.APIError:
            return False

    def said(self):
        return self.log.read_text(errors="replace")[-2000:]

    def setting(self, name):
        """Does this daemon know the setting?"""
        text = subprocess.run([*self.command, "--print-config"], env=self.environment, check=True,
                              capture_output=True, text=True).stdout
        section, key = name.split(".")
        return re.search(rf"^{section}:\n(?:[ #].*\n)*? +{key}:", text, re.M) is not None

    def metrics(self):
        """Name with labels -> value."""
        with self.client._call("GET", "/metrics") as answer:
            lines = answer.read().decode().split("\n")
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def settled(self, parked=0):
        """Metrics by which nothing goes on behind the answers any more, in the form that lane has:
        machines that neither wait nor run are being made or ended. parked: so many that nobody
        used shall wait."""
        lines = ["skillvm_executions_running", "skillvm_executions_queued", "skillvm_machines_behind",
                 f"skillvm_machines {FRESH} {USED}"]
        if parked:
            lines.append(f"{FRESH} {parked}")
        names = self.metrics()
        # Of a daemon that keeps no machines, what there is.
        known = [" ".join(n for n in line.split() if n in names or n.isdigit()) for line in lines]
        return [line for line in known if line]

    def settle(self, parked=0):
        """Waits until it is so, two minutes at most."""
        lines = self.settled(parked)
        deadline = time.monotonic() + 120
        while True:
            now = self.metrics()
            if all(is_sum(now, line.split()) for line in lines):
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"not settled: {now}")
            time.sleep(0.01)

    def resident_kib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+)", status)[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def machines(self):
        """Process ids of its machines."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for file in children for pid in file.read_text().split()
                if _name(pid) == "skillvm-vmm"]


def is_sum(metrics, names):
    """As lane has it: the first is the sum of the others, or at least a number among them."""
    first, *rest = [float(n) if n.isdigit() else metrics[n] for n in names]
    return first >= sum(rest) if any(n.isdigit() for n in names) else first == sum(rest)


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None
