# SPDX-License-Identifier: Apache-2.0
"""A daemon with `isolation: strict`, as root and as an ordinary user: its machines have all layers
of the jail, and it says by name which is missing where it does not start."""

import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import shutil
import subprocess

from cases_limits import CGROUPS, PIDS_MAX, folders_in, own_cgroup
from harness import Skipped, case, check, check_equal, check_in, joins, long_case, python_skill
from jail_client import memory_max

# vmm/jail/jail.h
CELLS = 1024
FIRST_OF_ROOT = 1879048192
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
# Of the software host (images/softhost/root/etc): with ranges of user and group ids, and without.
ORDINARY, WITHOUT_IDS = "skillvm", "nobody"
MAX_NAMESPACES = pathlib.Path("/proc/sys/user/max_user_namespaces")
KVM = pathlib.Path("/dev/kvm")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def cgroup_of(pid):
    return CGROUPS / pathlib.Path(f"/proc/{pid}/cgroup").read_text().strip().partition("::/")[2]


def ids_of(pid, name):
    """Real, effective, saved and of the file system: of "Uid" or "Gid"."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return re.search(rf"^{name}:[ \t]*(.*)$", status, re.M)[1].split()


def check_ids(machines, name, first):
    """That each has one of the range, which no other has."""
    found = set()
    for pid in machines:
        (own,) = set(ids_of(pid, name))
        check(first <= int(own) < first + CELLS, f"{name} of a machine: {own}")
        found.add(own)
    check_equal(len(found), len(machines), f"different {name}")


def check_room(daemon, machines):
    """That each machine has no namespace of the daemon's, and an empty root."""
    for pid in machines:
        shared = [name for name in NAMESPACES
                  if os.stat(f"/proc/{pid}/ns/{name}").st_ino
                  == os.stat(f"/proc/{daemon.pid}/ns/{name}").st_ino]
        check_equal(shared, [], "namespaces of the daemon's")
        check_equal(os.listdir(f"/proc/{pid}/root"), [], "its root folder")
        check_equal(ids_of(pid, "Groups"), [], "its groups")


def check_cells(daemon, machines, folder):
    """That each machine of a daemon is in a cell of its own, with limits."""
    cells = {cgroup_of(pid) for pid in machines}
    check_equal((len(cells), {cell.parent for cell in cells}),
                (len(machines), {folder / "skillvm-machines"}), "cells")
    (memory,) = {path.stat().st_size for path in daemon.data.glob("snapshots/*/memory")}
    for cell in cells:
        most = int((cell / "memory.max").read_text())
        check_equal(most, memory_max(memory, daemon.data), "memory.max")
        check(int((cell / "memory.peak").read_text()) < most, "memory.peak")
        check_equal((cell / "memory.swap.max").read_text(), "0\n", "memory.swap.max")
        check_equal((cell / "memory.oom.group").read_text(), "1\n", "memory.oom.group")
        check_equal((cell / "pids.max").read_text(), f"{PIDS_MAX}\n", "pids.max")
        check_equal((cell / "cpu.max").read_text(), "150000 100000\n", "cpu.max")
        check_equal((cell / "cpu.weight").read_text(), "6400\n", "cpu.weight")
    for share in (folder / "skillvm-daemon", folder / "skillvm-machines"):
        check_equal((share / "cpu.weight").read_text(), "100\n", f"cpu.weight of {share.name}")


def strict_settings(world, name):
    path = world.root / f"{name}.yaml"
    path.write_text("isolation: strict\n")
    return ["--config", str(path)]


def check_runs(daemon, folder, first_user, first_group):
    """That a fresh and a reused machine run a skill, in all layers."""
    client, skill = daemon.client, python_skill("print(1)")
    for fresh in (True, False, False):
        check_equal(client.run_ok(skill, fresh=fresh)["stdout"], "1\n", "run")

    def check_machines(machines):
        check_ids(machines, "Uid", first_user)
        check_ids(machines, "Gid", first_group)
        check_room(daemon, machines)
        check_cells(daemon, machines, folder)

    # One that is being made would end with the jail, and so would the run that waits for it.
    daemon.look_at_waiting(check_machines)


def refusal(world, cgroup, user, before=lambda: None):
    """What a strict daemon says that does not start there."""
    join = joins(cgroup, user)

    def prepare():
        before()
        join()

    done = subprocess.run(
        [world.daemon.program, *strict_settings(world, "refused"), "--share", world.share]
        + ["--socket", "/tmp/refused.sock", "--data", "/tmp/refused"],
        preexec_fn=prepare, capture_output=True, text=True, timeout=60,
    )
    shutil.rmtree("/tmp/refused", ignore_errors=True)
    check(done.returncode not in (0, None), f"it started: {done.stderr}")
    return done.stderr


def check_keeps_others_out(world, daemon, folder, user):
    """That no other daemon begins in its cgroup, which would end its machines."""
    client = daemon.client
    waits = python_skill("import time\nprint(1, flush=True)\ntime.sleep(600)")
    with client.events(waits, timeout=600) as events:
        check(any(event == "stdout" for event, _, _ in events), "it runs")
        check_in("layer 'limits' is missing: the cgroup of the daemon is another daemon's",
                 refusal(world, folder / "skillvm-daemon", user), "the other says")
        for running in client.get("/v1/executions?status=running").json["executions"]:
            client.request("DELETE", f"/v1/executions/{running['execution_id']}")
        ends = [data["status"] for event, data, _ in events if event == "result"]
    check_equal(ends, ["cancelled"], "how what ran in its machine ended")


def check_strict(world, daemon, folder, first_user, first_group, user=None):
    """Also when it was killed and is started again, and when what starts its machines was killed."""
    daemon.options += ["--max-running", "2"]
    for own in (folder, folder / "skillvm-daemon"):
        daemon.kill()
        daemon.start(cgroup=own, user=user)
        check_equal(daemon.client.get("/ready").json["checks"]["isolation"], "ok", "layers")
        check_equal(cgroup_of(daemon.pid), folder / "skillvm-daemon", "its cgroup")
        check_runs(daemon, folder, first_user, first_group)
        check_keeps_others_out(world, daemon, folder, user)
        daemon.kill_jail()
        check_runs(daemon, folder, first_user, first_group)
    check_equal(daemon.stop(), 0, "its exit status")
    check_equal(folders_in(folder), [], "cgroups that it left")


@case
def strict_has_all_layers_as_root(world):
    with own_cgroup("strict") as folder:
        daemon = world.copy_of_snapshots("strict", strict_settings(world, "strict"))
        check_strict(world, daemon, folder, FIRST_OF_ROOT, FIRST_OF_ROOT)


def user_of_the_host(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise Skipped(f"the host has no user {name}") from None


def first_of(path, user):
    """The first id of its range."""
    found = re.search(rf"^{user.pw_name}:(\d+):", pathlib.Path(path).read_text(), re.M)
    return int(found[1])


@contextlib.contextmanager
def reachable(*paths):
    """For others to pass: a folder of the tests, and /dev/kvm by its group."""
    modes = {path: path.stat() for path in paths}
    try:
        for path in paths:
            path.chmod(0o711)
        yield
    finally:
        for path, before in modes.items():
            path.chmod(before.st_mode)


@contextlib.contextmanager
def kvm_by_its_group():
    before = KVM.stat()
    shutil.chown(KVM, group="kvm")
    KVM.chmod(0o660)
    try:
        yield
    finally:
        KVM.chmod(before.st_mode)
        os.chown(KVM, before.st_uid, before.st_gid)


@contextlib.contextmanager
def delegated_cgroup(name, user):
    """As systemd delegates one: the user's, with the files by which processes are moved."""
    with own_cgroup(name) as folder:
        for path in (folder, *(folder / f"cgroup.{n}" for n in ("procs", "threads", "subtree_control"))):
            shutil.chown(path, user.pw_uid, user.pw_gid)
        yield folder


@long_case
def strict_has_all_layers_as_an_ordinary_user(world):
    """Who may open /dev/kvm, has ranges of ids, newuidmap, and a cgroup that is delegated."""
    user = user_of_the_host(ORDINARY)
    daemon = world.copy_of_snapshots("ordinary", strict_settings(world, "ordinary"))
    for path in (daemon.data, *daemon.data.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid)
    daemon.log.touch()
    with delegated_cgroup("ordinary", user) as folder, reachable(world.root), kvm_by_its_group():
        check_strict(world, daemon, folder, first_of("/etc/subuid", user),
                     first_of("/etc/subgid", user), user)


def hides(path):
    """For a child: an empty folder lies over it."""
    libc = ctypes.CDLL(None, use_errno=True)
    check_equal(libc.unshare(CLONE_NEWNS), 0, "a mount namespace")
    check_equal(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), 0, "private mounts")
    check_equal(libc.mount(b"none", path.encode(), b"tmpfs", 0, None), 0, "an empty folder")


@contextlib.contextmanager
def no_user_namespaces():
    before = MAX_NAMESPACES.read_text()
    MAX_NAMESPACES.write_text("0")
    try:
        yield
    finally:
        MAX_NAMESPACES.write_text(before)


@case
def strict_says_what_an_ordinary_user_lacks(world):
    user, without_ids = user_of_the_host(ORDINARY), user_of_the_host(WITHOUT_IDS)

    def check_lacks(text, user, before=lambda: None, folder_of=lambda delegated: delegated):
        # A cgroup that a daemon has begun in has others below it.
        with delegated_cgroup("lacks", user) as folder:
            check_in(f"layer {text}", refusal(world, folder_of(folder), user, before), "it says")

    def without_controllers(folder):
        (folder / "bare").mkdir()
        shutil.chown(folder / "bare" / "cgroup.procs", user.pw_uid)
        return folder / "bare"

    with reachable(world.root):
        with no_user_namespaces():
            check_lacks("'namespaces' is missing: a user namespace: No space left on device", user)
        check_lacks("'users' is missing: /etc/subuid has no 1024 user ids for this user", without_ids)
        check_lacks("'users' is missing: newuidmap and newgidmap (package uidmap): No such file",
                    user, before=lambda: hides("/usr/bin"))
        check_lacks("'limits' is missing: the cgroup of the daemon: Permission denied", user,
                    folder_of=lambda _: None)
        check_lacks("'limits' is missing: the cgroup of the daemon has not cpu, memory and pids",
                    user, folder_of=without_controllers)


@case
def strict_says_who_else_is_in_its_cgroup(world):
    """Others there would be without the limits that it gives itself: it says so, and ends."""
    with own_cgroup("shared") as folder:
        other = subprocess.Popen(["sleep", "1000"], preexec_fn=joins(folder))
        said = refusal(world, folder, None)
        other.kill()
        other.wait()
        check_in("layer 'limits' is missing: the daemon is not alone in its cgroup", said, "it says")
