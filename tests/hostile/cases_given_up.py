# SPDX-License-Identifier: Apache-2.0
"""What a machine's process kept, as its kernel shows it while a guest waits in it.

That each of these holds is tests/unit/vmm_harden.c's; here that the real program asks for all.
"""

import os
import pathlib
import re

from harness import Skipped, case, check, check_equal, python_skill, wait_until

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
FIRST_USER = 1879048192  # vmm/jail/jail.h

LIMITS = {
    "Max core file size": "0",
    "Max data size": "0",
    "Max locked memory": "0",
    "Max file size": "0",
}


def fields(path):
    return dict(
        line.split(":", 1) for line in pathlib.Path(path).read_text().splitlines() if ":" in line
    )


def check_given_up(machines):
    for pid in machines:
        # Later kernels have one of KVM's own there.
        threads = [
            thread
            for thread in pathlib.Path(f"/proc/{pid}/task").iterdir()
            if not (thread / "comm").read_text().startswith("kvm-nx-lpage")
        ]
        check_equal(len(threads), 2, "threads")
        for thread in threads:
            status = {key: value.strip() for key, value in fields(thread / "status").items()}
            for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                check_equal(int(status[key], 16), 0, key)
            check_equal(status["NoNewPrivs"], "1", "no new privileges")
            check_equal((status["Seccomp"], status["Seccomp_filters"]), ("2", "1"), "filters")
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        for name, want in LIMITS.items():
            check_equal(re.search(rf"^{name} +(\S+) +(\S+)", limits, re.M).groups(),
                        (want, want), name)
        files = int(re.search(r"^Max open files +\S+ +(\d+)", limits, re.M)[1])
        check(files < 24, f"it may have {files} descriptors")
        # Of a snapshot it has nothing open; a machine waits without a skill's disk.
        open_files = {os.path.basename(os.readlink(fd)) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        check(not open_files & {"state", "memory", "working-set", "proc", "kvm"}, f"it has {open_files}")
        score = pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text()
        check_equal(score, "1000\n", "oom_score_adj")
        if os.geteuid() == 0:
            check_equal(pathlib.Path(f"/proc/{pid}/environ").read_bytes(), b"", "environment")


@case
def machines_have_given_up_what_they_do_not_need(world):
    world.client.run(python_skill("print(1)"))
    world.daemon.look_at_waiting(check_given_up)


def check_users(machines):
    users = set()
    for pid in machines:
        proc = pathlib.Path(f"/proc/{pid}")
        for name in NAMESPACES:
            check(os.readlink(proc / "ns" / name) != os.readlink(f"/proc/self/ns/{name}"),
                  f"the {name} namespace is its own")
        check_equal(os.listdir(proc / "root"), [], "its root folder")
        check_equal(os.readlink(proc / "cwd"), "/", "its folder")
        status = fields(proc / "status")
        user, group = set(status["Uid"].split()), set(status["Gid"].split())
        check_equal((len(user), user), (1, group), "user and group")
        check_equal(status["Groups"].split(), [], "groups")
        users |= user
    check_equal(len(users), len(machines), "users")
    check(all(FIRST_USER <= int(user) < FIRST_USER + 1024 for user in users), str(users))


@case
def each_machine_is_a_user_of_its_own_in_an_empty_room(world):
    if os.geteuid() != 0:
        raise Skipped("only root can look")
    world.client.run(python_skill("print(1)"))
    wait_until(lambda: len(world.daemon.machines()) > 1, 60, "there are several")
    world.daemon.look_at_waiting(check_users)


@case
def machines_outlive_neither_the_process_that_starts_them_nor_it_them(world):
    world.client.run(python_skill("print(1)"))
    # One that is being made would end with it, and so would the run that waits for that.
    world.daemon.look_at_waiting(lambda _: None)
    world.daemon.kill_jail()
    check_equal(world.client.run_ok(python_skill("print(2)"))["stdout"], "2\n", "the next run")


@case
def machines_that_are_never_reset_run_with_less(world):
    """They have the shortest filter, and KVM holds their guests to their CPUID: an execution without a skill's
    disk, and one with it."""
    settings = world.root / "once.yaml"
    settings.write_text("machines:\n  parked: 0\n")
    daemon = world.copy_of_snapshots("once", ["--config", str(settings)])
    daemon.start()
    script = "import os, time\nprint(time.time() > 1e9, len(os.urandom(8)), time.sleep(0.1))"
    body = python_skill(script, name="once", front="version: 1.0.0\n")
    answer = daemon.client.request("POST", "/v1/skills", body, {"Content-Type": "application/zip"})
    check_equal(answer.status, 201, "the push")
    for result in (daemon.client.run_ok(body), daemon.client.run_ok(skill="once")):
        check_equal((result["stdout"], result["machine"]), ("True 8 None\n", "fresh"), "the run")
    check_equal(daemon.metrics("skillvm_machine_takes_total")['kind="started"'], 2, "machines for one run each")
    check_equal(daemon.stop(), 0, "its exit status")
