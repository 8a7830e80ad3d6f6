# SPDX-License-Identifier: Apache-2.0
"""Many hostile executions in a row: skills, guests that are the attacker's, timeouts, cancels and
machines that are killed. What the host has more of afterwards is their trail: processes, user ids,
namespaces, mounts, cgroups, files, descriptors, IPC, keys, memory.

HOSTILE_EXECUTIONS: how many; HOSTILE_SEED repeats a sequence.
"""

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import random
import re
import signal
import time

from cases_guest import TRICKS, with_output
from cases_limits import CGROUPS, folders_in, own_cgroup
from cases_machine import ARCHIVE, BREACHES, TARS, check_image, install_image
from harness import (
    bash_skill,
    check,
    check_equal,
    long_case,
    parent_of,
    processes,
    python_skill,
    wait_until,
)

EXECUTIONS = int(os.environ.get("HOSTILE_EXECUTIONS") or 16)
SLOTS = 3
DAEMON_KIB_MAX, JAIL_KIB_MAX, KERNEL_KIB_MAX = 4096, 512, 32768
SETTINGS = """isolation: strict
grace: 4s
limits: {max_running: %d, max_queued: 1000}
machines: {parked: %d}
retention: {executions_age: 1s, interval: 500ms}
"""
GUESTS = BREACHES + TARS + """reboot halt panic fail fail-long exit-odd after-done connect-out
serial flood-logs empty-frames silence""".split()
BRIEF = {"timeout": 1}
SMALL = {"timeout": 5, "limits": {"memory": "64Mi"}}
# Each with what else its request says.
SKILLS = {
    "endless": (python_skill("while True: pass"), BRIEF),
    "stopped": (python_skill("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"), BRIEF),
    "bomb": (bash_skill("bomb() { bomb | bomb & }; bomb; while :; do :; done"), BRIEF),
    "flood": (bash_skill("yes out & yes err >&2 & wait"), BRIEF),
    "memory": (python_skill("held = []\nwhile True: held.append(bytearray(8 << 20))"), SMALL),
    "shared memory": (bash_skill("head -c 300M /dev/zero >/dev/shm/fill"), SMALL),
    "everybody": (python_skill("import os\nos.kill(-1, 9)"), {}),
    "abort": (python_skill("import os\nos.abort()"), {}),
    "ipc": (
        python_skill(
            "import ctypes, os\n"
            "libc = ctypes.CDLL(None)\n"
            "for n in range(20):\n"
            "    libc.shmget(n, 1 << 20, 0o1666)\n"
            "    libc.msgget(n, 0o1666)\n"
            "    libc.semget(n, 1, 0o1666)\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    os.execvp('sleep', ['sleep', '600'])"
        ),
        {},
    ),
    "odd files": (bash_skill(TRICKS), {}),
    "a link as output": (with_output("ln -s /etc/passwd output.json"), {}),
    "a pipe as output": (with_output("mkfifo output.json"), {}),
    "big files": (
        python_skill(
            "for n in range(8): open(f'/sandbox/out/files/{n}', 'wb').write(bytes(1 << 20))"
        ),
        {},
    ),
}
CUT = python_skill("import time\nprint(1, flush=True)\ntime.sleep(600)")


def text_of(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def rss_kib(pid):
    return int(re.search(r"^RssAnon:\s+(\d+)", text_of(f"/proc/{pid}/status"), re.M)[1])


def descriptors_now(pid):
    found = collections.Counter()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[re.sub(r"\d+", "N", os.readlink(f"/proc/{pid}/fd/{fd}"))] += 1
    return found


def descriptors(pid):
    """How many there are of each kind, without the numbers of those that have no name, and without
    one that is open for a moment."""
    while (found := descriptors_now(pid)) != descriptors_now(pid):
        time.sleep(0.1)
    return found


def names_below(*folders):
    return sorted(str(path) for folder in folders for path in pathlib.Path(folder).glob("**/*"))


def ancestors(pid):
    while pid:
        yield pid
        pid = parent_of(pid)


def everybody(daemon):
    """How many processes each user has by name, and how many namespaces of each kind there are:
    of all but the kernel's own, and but other daemons' machines, which may change meanwhile."""
    found, namespaces = collections.Counter(), collections.defaultdict(set)
    others = set(processes("skillvmd")) - {daemon.pid}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        above, status = set(ancestors(pid)), text_of(f"/proc/{pid}/status")
        if not status or 2 in above:
            continue
        name, user = (re.search(rf"^{field}:\t(\S+)", status, re.M)[1] for field in ("Name", "Uid"))
        if name == "skillvm-vmm" and above & others:
            continue
        found[user, name] += 1
        with contextlib.suppress(OSError):
            for kind in os.listdir(f"/proc/{pid}/ns"):
                namespaces[kind].add(os.stat(f"/proc/{pid}/ns/{kind}").st_ino)
    return dict(found), {kind: len(each) for kind, each in namespaces.items()}


class Host:
    """A strict daemon, and all that there is beside it."""

    def __init__(self, world, folder):
        self.daemon, self.folder = world.copy_of_snapshots("trail", kept=1), folder
        install_image(self.daemon)
        self.settings = world.root / "trail.yaml"
        self.settings.write_text(SETTINGS % (SLOTS, SLOTS))
        self.daemon.options += ["--config", str(self.settings)]
        self.daemon.start(cgroup=folder)
        check_image(self.daemon)

    def set_parked(self, n):
        self.settings.write_text(SETTINGS % (SLOTS, n))
        os.kill(self.daemon.pid, signal.SIGHUP)

    def is_at_rest(self):
        number = {name: self.daemon.metrics(f"skillvm_{name}")[""] for name in (
            "executions_running", "executions_queued", "machines", "machines_behind")}
        objects = os.listdir(self.daemon.data / "objects")
        return not any(number.values()) and not self.daemon.machines() and not objects

    def state(self, before=None):
        """What must be equal, what must be no more, and what may grow a little; with no machine. What was before
        is waited for: who was asked whether all is at rest may not have closed that connection."""
        self.set_parked(0)
        wait_until(self.is_at_rest, 90, "all is at rest")
        daemon = self.daemon
        if before is not None:
            wait_until(lambda: descriptors(daemon.pid) <= before, 60, f"the daemon has but {before}")
        (jail,) = (pid for pid in processes("skillvm-jail") if parent_of(pid) == daemon.pid)
        found, namespaces = everybody(daemon)
        same = {
            "processes": found,
            "namespaces": namespaces,
            "mounts": text_of("/proc/1/mounts"),
            "mounts of the jail": text_of(f"/proc/{jail}/mounts"),
            "cgroups of others": sorted(str(path) for path in CGROUPS.glob("**/")
                                        if self.folder not in (path, *path.parents)),
            "names": names_below("/tmp", "/run", "/var/tmp", "/dev", daemon.data / "tmp"),
            "objects": names_below(daemon.data / "objects", daemon.data / "snapshots"),
            "descriptors of the jail": descriptors(jail),
            "ipc": [text_of(f"/proc/sysvipc/{kind}") for kind in ("shm", "msg", "sem")],
            "keys": len(text_of("/proc/keys").splitlines()),
        }
        kernel = re.findall(r"^(?:SUnreclaim|KernelStack|PageTables|Percpu): +(\d+)",
                            text_of("/proc/meminfo"), re.M)
        cells = [path for path in (self.folder / "skillvm-machines").glob("[0-9]*")]
        grows = {
            "threads": daemon.threads(),
            "cells": len(cells),
            "dying": int(re.search(r"nr_dying_descendants (\d+)",
                                   text_of(self.folder / "cgroup.stat"))[1]),
            "daemon_kib": daemon.rss_kib(),
            "jail_kib": rss_kib(jail),
            "kernel_kib": sum(map(int, kernel)),
        }
        held = descriptors(daemon.pid)
        self.set_parked(SLOTS)
        return same, held, grows


class Hostile:
    """What is done, in the order of a seed, each of all kinds before any of them again."""

    def __init__(self, daemon, seed):
        self.daemon, self.client, self.draw = daemon, daemon.client, random.Random(seed)
        self.kinds = (
            [(self.skill, name) for name in SKILLS]
            + [(self.guest, mode) for mode in GUESTS]
            + [(self.cancel, None), (self.kill, None)] * 3
        )
        self.endings, self.guests = collections.Counter(), collections.Counter()

    def skill(self, name):
        archive, more = SKILLS[name]
        return self.client.run(archive, **more)

    def guest(self, mode):
        result = self.client.run(ARCHIVE, args=[mode], image="hostile", timeout=1)
        self.guests["ran" if result["snapshot"] else "did not"] += 1
        return result

    def cut(self, end):
        result = None
        with self.client.events(CUT, timeout=10) as events:
            for event, data, _ in events:
                if event == "stdout":
                    end(data)
                if event == "result":
                    result = data
        return result

    def cancel(self, _):
        running = "/v1/executions?status=running"
        def end(_):
            for execution in self.client.get(running).json["executions"][:1]:
                self.client.request("DELETE", f"/v1/executions/{execution['execution_id']}")
        return self.cut(end)

    def kill(self, _):
        """Some machine: who had it is told so."""
        def end(_):
            for pid in self.daemon.machines()[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return self.cut(end)

    def run(self, n):
        chosen = []
        while len(chosen) < n:
            chosen += self.draw.sample(self.kinds, len(self.kinds))
        with concurrent.futures.ThreadPoolExecutor(SLOTS) as pool:
            for result in pool.map(lambda pair: pair[0](pair[1]), chosen[:n]):
                self.endings[result["status"]] += 1


@long_case
def hostile_executions_leave_no_trail(world):
    seed = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"trail: HOSTILE_SEED={seed}", flush=True)
    with own_cgroup("trail") as folder:
        host = Host(world, folder)
        hostile = Hostile(host.daemon, seed)
        # What is there once, from the first one of its kind on.
        hostile.run(min(EXECUTIONS // 2, len(hostile.kinds)))
        before, held, sizes = host.state()
        begin = time.monotonic()
        hostile.run(EXECUTIONS)
        rate = EXECUTIONS / (time.monotonic() - begin)
        # Retention gives it back at the end of a pass.
        wait_until(lambda: host.daemon.rss_kib() - sizes["daemon_kib"] <= DAEMON_KIB_MAX, 120,
                   f"the daemon has at most {DAEMON_KIB_MAX} KiB more than {sizes['daemon_kib']}")
        after, _, later = host.state(held)
        print(f"trail: {dict(hostile.endings)}, {rate:.1f} a second; {sizes} became {later}", flush=True)
        # Some machines are killed before their guest begins.
        guests = hostile.guests
        check(guests["ran"] > guests["did not"], f"of the hostile guests {dict(guests)}")
        for name, value in before.items():
            check_equal(after[name], value, name)
        grown = {name: later[name] - size for name, size in sizes.items()}
        for name, most in (("daemon_kib", DAEMON_KIB_MAX), ("jail_kib", JAIL_KIB_MAX),
                           ("kernel_kib", KERNEL_KIB_MAX), ("cells", 4 * SLOTS), ("dying", SLOTS),
                           ("threads", SLOTS)):
            check(grown[name] <= most, f"{name} grew by {grown[name]}")
        check_equal(host.daemon.stop(), 0, "its exit status")
        check_equal(folders_in(folder), [], "cgroups that it left")
