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

from harness import Failed, Skipped, case, check, check_equal, check_in, joins, long_case, python_skill, wait_until
from jail_client import LIMITS

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = {"cpu", "memory", "pids"}
MIB = 1 << 20
# vmm/jail/limits.c
PIDS_MAX = 16
CPU_MAX = 1.5
# What a host that is short of memory has left.
LEFT = 80 * MIB

CLIENT = pathlib.Path(__file__).with_name("jail_client.py")


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


def folders_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def words(path):
    return dict(line.split() for line in path.read_text().splitlines())


@contextlib.contextmanager
def shell_in_place_of_a_machine(world, memory, script, options=(), layers=15):
    """The cgroup of its cell, and the process that started it, whose lines say how it went."""
    shell = shutil.which("busybox")
    if not shell:
        raise Skipped("there is no busybox, which needs no library")
    with own_cgroup("shell") as folder:
        starter = subprocess.Popen(
            [sys.executable, CLIENT, *options, os.path.join(world.bin_dir, "skillvm-jail"), shell]
            + [str(memory), "sh", "-c", script],
            preexec_fn=joins(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        try:
            check_equal(starter.stdout.readline(), f"layers {layers}\n", "layers of the jail")
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
        print(file=starter.stdin, flush=True)
        # With that its cgroup has gone: the next one's counts from 0.
        check_equal(starter.stdout.readline(), "memory 1\n", "it was ended for its memory")
        check(not cell.exists(), "its cgroup is there")


def held_by(folder):
    """What those in a cgroup hold: all that the kernel cannot just drop."""
    found = words(folder / "memory.stat")
    dropped = sum(int(found[name]) for name in ("active_file", "inactive_file", "slab_reclaimable"))
    return int((folder / "memory.current").read_text()) - dropped


def run_to_its_end(daemon, source, printed=lambda: None):
    """The result, after printed() at its first line."""
    with daemon.client.events(python_skill(source), timeout=600) as events:
        for event, data, _ in events:
            if event == "stdout":
                printed()
            if event == "result":
                return data
    raise Failed("it ended without a result")


@contextlib.contextmanager
def daemon_with_limits(world, name):
    """With its cgroup, and none of its machines. In the end its cells are as they should."""
    with own_cgroup(name) as folder:
        daemon = world.copy_of_snapshots(name)
        daemon.environment["SKILLVM_MACHINES_PARKED"] = "0"
        daemon.start(cgroup=folder)
        yield daemon, folder
        # The next one in the cell has what it may have.
        check_equal(daemon.client.run_ok(python_skill("print(1)"))["stdout"], "1\n", "stdout")
        check_equal(daemon.stop(), 0, "its exit status")
        check_equal(folders_in(folder), [], "cgroups that it left")


def check_told(daemon, result, why, cause):
    check_equal(result["status"], "failed", "status")
    check_equal(result["error"], f"{why}: the microVM's process ended (while the skill ran)", "error")
    check_equal(daemon.metrics("skillvm_vmm_deaths_total")[f'cause="{cause}"'], 1.0, "deaths")
    check_in(f"ended={cause}", daemon.log_tail(), "its log")


@case
def an_execution_is_told_that_its_machine_took_too_much(world):
    """Less than it has is made its limit, which is where one comes to that grows."""
    with daemon_with_limits(world, "told") as (daemon, folder):
        had = []

        def shrink():
            (cell,) = (path for path in (folder / "skillvm-machines").glob("[0-9]*")
                       if (path / "cgroup.procs").read_text())
            had.append(int((cell / "memory.max").read_text()) // MIB)
            (cell / "memory.max").write_text(str(MIB))

        result = run_to_its_end(daemon, "import time\nprint(1, flush=True)\ntime.sleep(600)", shrink)
        check_told(daemon, result, f"the machine took more of the host's memory than the {had[0]} MiB that it "
                   "may have", "memory_over")


@long_case
def an_execution_is_told_that_the_host_was_short_of_memory(world):
    """As others leave it too little, the cgroup above does: enough for its machine, but not for what its skill
    takes within its own limit. The machine goes, and not the daemon."""
    with daemon_with_limits(world, "short") as (daemon, folder):
        (folder / "memory.max").write_text(str(held_by(folder) + LEFT))
        result = run_to_its_end(daemon, f"import time\nheld = b'x' * {2 * LEFT}\ntime.sleep(600)")
        check_told(daemon, result, "the host was short of memory and ended the machine", "memory_short")
        check(int(words(folder / "memory.events.local")["oom"]) > 0, "that was the limit")


@case
def a_taken_over_machine_has_its_share_of_the_processors(world):
    # A shell that cannot fork ends; the first one does not. No "&", for which it opens /dev/null.
    forever = "while :; do :; done"
    bombs = f"({' | '.join([forever] * (PIDS_MAX + 4))}); {forever}"
    with shell_in_place_of_a_machine(world, 32 * MIB, bombs) as (cell, _):
        def processes():
            return int((cell / "pids.current").read_text())

        # By its cgroup or as its user: what could start no more has ended.
        wait_until(lambda: processes() >= PIDS_MAX - 1, 240, "it has all that it may")
        began, before = time.monotonic(), words(cell / "cpu.stat")
        wait_until(lambda: int(words(cell / "cpu.stat")["nr_periods"])
                   >= int(before["nr_periods"]) + 30, 240, "thirty periods have gone")
        check(processes() <= PIDS_MAX, "processes")
        took = int(words(cell / "cpu.stat")["usage_usec"]) - int(before["usage_usec"])
        share = took / 1e6 / (time.monotonic() - began)
        # A period that had begun is counted whole.
        check(share < CPU_MAX * 1.2, f"it had {share:.2f} processors")


def fill_a_cell(world, **started):
    """With as many as there may be, who are left behind: the next one is started all the same."""
    forever = "while :; do :; done"
    # Once the machine has gone, and one more than it had. A shell that cannot fork ends, but for its trap.
    fills = f"while kill -0 $$; do :; done; trap '{forever}' EXIT; {' | '.join([forever] + ['read x'] * PIDS_MAX)}"
    ends = f"({fills}) | kill -9 $$"
    with shell_in_place_of_a_machine(world, 32 * MIB, ends, **started) as (cell, starter):
        check_equal(starter.stdout.readline(), f"ended {int(signal.SIGKILL)}\n", "its end")
        wait_until(lambda: int((cell / "pids.current").read_text()) == PIDS_MAX, 240, "it is full")
        left = (cell / "cgroup.procs").read_text().split()
        print("\n", file=starter.stdin, flush=True)
        check_equal(starter.stdout.readline(), "memory 0\n", "it was not ended for its memory")
        check_equal(starter.stdout.readline().split()[2:], ["0"], "error of the next one")
        check(not {*left} & {*(cell / "cgroup.procs").read_text().split()}, "they are still there")


@case
def a_taken_over_machine_does_not_fill_its_cell_for_the_next_one(world):
    fill_a_cell(world)
    # Of the user of all others.
    fill_a_cell(world, options=["--alone"], layers=LIMITS)


@case
def no_machine_outlives_what_started_it(world):
    """Without a PID namespace, as in the unit. It would have no limits any more."""
    spins = shell_in_place_of_a_machine(
        world, 32 * MIB, "while :; do :; done", options=["--restart"], layers=LIMITS
    )
    with spins as (_, starter):
        check_equal(starter.stdout.readline(), f"layers {LIMITS}\n", "layers of the next jail")
        check_equal(starter.stdout.readline(), f"ended {int(signal.SIGKILL)}\n", "its end")
