# SPDX-License-Identifier: Apache-2.0
"""What a machine may take of the host where the daemon has a cgroup of its own.

That of a machine which was taken over is tried with a shell in its place, started by the real
skillvm-jail: it takes memory, processes and processor time until it is kept from more.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from harness import Skipped, case, check, check_equal, joins, python_skill, wait_until

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = {"cpu", "memory", "pids"}
MIB = 1 << 20
# api/daemon/machine/vm.h, vmm/jail/limits.c
OVERHEAD = 64 * MIB
PIDS_MAX = 16
CPU_MAX = 1.5

# Is the daemon of a jail: it starts one machine, says its number and how it ended.
STARTER = r"""
import os, socket, struct, subprocess, sys
jail, program, memory, *arguments = sys.argv[1:]
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
machine = os.open(program, os.O_RDONLY)
subprocess.Popen([jail, "--socket-fd", str(theirs.fileno()), "--program-fd", str(machine)]
                 + ["--layers", "15"], pass_fds=(theirs.fileno(), machine))
theirs.close()
version, layers = struct.unpack_from("=II", ours.recv(4096))
print("layers", layers, flush=True)
text = b"".join(a.encode() + b"\0" for a in arguments)
request = struct.pack("=IIQ1024s", version, 0, int(memory), text)
socket.send_fds(ours, [request], [os.open("/dev/null", os.O_RDWR)])
pid, error = struct.unpack("=ii", ours.recv(64))
print("started", pid, error, flush=True)
_, status = os.waitpid(pid, 0)
print("ended", status, flush=True)
"""


def parent_cgroup():
    """One below which others may have the controllers."""
    for folder in (CGROUPS / "skillvm", CGROUPS):
        with contextlib.suppress(OSError):
            if CONTROLLERS <= set((folder / "cgroup.subtree_control").read_text().split()):
                return folder
    raise Skipped("there is no cgroup v2 with cpu, memory and pids for others")


def remove(folder):
    for path in sorted(folder.rglob("*/"), reverse=True):
        if path.is_dir():
            path.rmdir()
    folder.rmdir()


@contextlib.contextmanager
def own_cgroup(name):
    """A new one, which is empty of processes and removed in the end."""
    if os.geteuid() != 0:
        raise Skipped("only root makes cgroups")
    folder = parent_cgroup() / f"test-{name}-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        (folder / "cgroup.kill").write_text("1")
        wait_until(lambda: "populated 0" in (folder / "cgroup.events").read_text(), 20,
                   "the cgroup is empty")
        remove(folder)


def words(path):
    return dict(line.split() for line in path.read_text().splitlines())


@contextlib.contextmanager
def shell_in_place_of_a_machine(world, memory, script):
    """The cgroup of its cell, and the process that started it, whose lines say how it went."""
    shell = shutil.which("busybox")
    if not shell:
        raise Skipped("there is no busybox, which needs no library")
    with own_cgroup("shell") as folder:
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER, os.path.join(world.bin_dir, "skillvm-jail"), shell]
            + [str(memory), "sh", "-c", script],
            preexec_fn=joins(folder), stdout=subprocess.PIPE, text=True,
        )
        try:
            check_equal(starter.stdout.readline(), "layers 15\n", "layers of the jail")
            pid, error = starter.stdout.readline().split()[1:]
            check_equal(error, "0", f"error of process {pid}")
            yield folder / "skillvm-machines" / "0", starter
        finally:
            starter.kill()
            starter.communicate()


@case
def a_taken_over_machine_has_its_memory_and_no_more(world):
    grows = "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done"
    with shell_in_place_of_a_machine(world, 32 * MIB, grows) as (cell, starter):
        check_equal(starter.stdout.readline(), f"ended {int(signal.SIGKILL)}\n", "its end")
        check(int(words(cell / "memory.events")["oom_kill"]) > 0, "it was ended for its memory")
        peak = int((cell / "memory.peak").read_text())
        check(16 * MIB < peak <= 32 * MIB, f"it had {peak} bytes")


@case
def a_taken_over_machine_has_its_share_of_the_processors(world):
    # A shell that cannot fork ends; the first one does not.
    bombs = "(while :; do (while :; do :; done) & done); while :; do :; done"
    with shell_in_place_of_a_machine(world, 32 * MIB, bombs) as (cell, _):
        wait_until(lambda: int(words(cell / "pids.events")["max"]) > 0, 240,
                   "it is kept from having more processes")
        check(int((cell / "pids.current").read_text()) <= PIDS_MAX, "processes")
        began, before = time.monotonic(), words(cell / "cpu.stat")
        wait_until(lambda: int(words(cell / "cpu.stat")["nr_periods"])
                   >= int(before["nr_periods"]) + 30, 240, "thirty periods have gone")
        took = int(words(cell / "cpu.stat")["usage_usec"]) - int(before["usage_usec"])
        share = took / 1e6 / (time.monotonic() - began)
        # A period that had begun is counted whole.
        check(share < CPU_MAX * 1.2, f"it had {share:.2f} processors")


def cells_of(machines):
    """The folders of the cgroups of the processes of machines."""
    paths = [pathlib.Path(f"/proc/{pid}/cgroup").read_text().strip() for pid in machines]
    return {CGROUPS / path.partition("::/")[2] for path in paths}


def check_cells(daemon, folder):
    """That each machine of a daemon is in a cell of its own, with limits."""
    machines = daemon.machines()
    cells = cells_of(machines)
    check_equal((len(cells), {cell.parent for cell in cells}),
                (len(machines), {folder / "skillvm-machines"}), "cells")
    (memory,) = {path.stat().st_size for path in daemon.data.glob("snapshots/*/memory")}
    in_memory = subprocess.run(["stat", "-fc", "%T", daemon.data], capture_output=True,
                               text=True, check=True).stdout == "tmpfs\n"
    for cell in cells:
        most = int((cell / "memory.max").read_text())
        check_equal(most, memory * (2 if in_memory else 1) + OVERHEAD, "memory.max")
        check(int((cell / "memory.peak").read_text()) < most, "memory.peak")
        check_equal((cell / "memory.swap.max").read_text(), "0\n", "memory.swap.max")
        check_equal((cell / "memory.oom.group").read_text(), "1\n", "memory.oom.group")
        check_equal((cell / "pids.max").read_text(), f"{PIDS_MAX}\n", "pids.max")
        check_equal((cell / "cpu.max").read_text(), "150000 100000\n", "cpu.max")
        check_equal((cell / "cpu.weight").read_text(), "100\n", "cpu.weight")
    return cells


@case
def a_strict_daemon_has_its_machines_in_cgroups(world):
    """Also when it is started again, and when what starts its machines was killed."""
    with own_cgroup("strict") as folder:
        daemon = world.copy_of_snapshots("strict")
        settings = world.root / "strict.yaml"
        settings.write_text("isolation: strict\n")
        daemon.options += ["--config", str(settings), "--max-running", "2"]
        for own in (folder, folder / "skillvm-daemon"):
            daemon.start(cgroup=own)
            check_equal(daemon.client.get("/ready").json["checks"]["isolation"], "ok", "layers")
            check_equal(pathlib.Path(f"/proc/{daemon.pid}/cgroup").read_text().strip(),
                        f"0::/{(folder / 'skillvm-daemon').relative_to(CGROUPS)}", "its cgroup")
            check_equal(daemon.client.run_ok(python_skill("print(1)"))["stdout"], "1\n", "run")
            # One that is being made would end with the jail, and so would the run that waits for it.
            wait_until(lambda: 0 < len(daemon.machines()) == daemon.parked(), 20, "all wait")
            check_cells(daemon, folder)
            daemon.kill_jail()
            check_equal(daemon.client.run_ok(python_skill("print(2)"))["stdout"], "2\n", "run")
            wait_until(daemon.machines, 20, "a machine waits")
            check_cells(daemon, folder)
            check_equal(daemon.stop(), 0, "its exit status")


@case
def a_strict_daemon_is_alone_in_its_cgroup(world):
    """Others there would be without the limits that it gives itself: it says so, and ends."""
    with own_cgroup("shared") as folder:
        other = subprocess.Popen(["sleep", "1000"], preexec_fn=joins(folder))
        settings = world.root / "shared.yaml"
        settings.write_text("isolation: strict\n")
        done = subprocess.run(
            [world.daemon.program, "--config", str(settings), "--share", world.share]
            + ["--socket", str(world.root / "shared.sock"), "--data", str(world.root / "shared")],
            preexec_fn=joins(folder), capture_output=True, text=True, timeout=60,
        )
        other.kill()
        other.wait()
        check(done.returncode not in (0, None), "it started")
        check("layer 'limits' is missing: the daemon is not alone in its cgroup" in done.stderr,
              done.stderr)
