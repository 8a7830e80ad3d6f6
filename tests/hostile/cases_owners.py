# SPDX-License-Identifier: Apache-2.0
"""Machines that are used again have one owner: a skill of a tenant's. OWNER_RUNS says how often
each of the owners here runs in turn, and as often beside the others."""

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re

from harness import check, check_equal, check_success, long_case, python_skill, shorten, wait_until
from tenants import JSON, make_tenant
from traces import TRACES

RUNS = int(os.environ.get("OWNER_RUNS") or 6)


class Owner:
    """A skill of a tenant's, run with that tenant's key."""

    def __init__(self, client, tenant, key, skill):
        self.client, self.name, self.skill = client, f"{tenant}/{skill}", skill
        self.headers = {"Authorization": f"Bearer {key}"}

    def push(self, source):
        archive = python_skill(source, name=self.skill)
        answer = self.client.request(
            "POST", "/v1/skills", archive, {**self.headers, "Content-Type": "application/zip"}
        )
        check_equal(answer.status, 201, f"a push of {self.name}: {shorten(answer.body)}")

    def run(self):
        answer = self.client.request(
            "POST", "/v1/executions", json.dumps({"skill": self.skill}), {**self.headers, **JSON}
        )
        check_equal(answer.status, 200, f"{self.name}: {shorten(answer.body)}")
        return check_success(answer.json, f"{self.name}: ")


def make_owners(daemon):
    """Two tenants with one skill in common, byte for byte, and another of the first one's."""
    owners = []
    for tenant, skills in (("a", ("traces", "other")), ("b", ("traces",))):
        key = make_tenant(daemon, tenant)
        for skill in skills:
            owners.append(Owner(daemon.client, tenant, key, skill))
            owners[-1].push(TRACES if skill == "traces" else TRACES + "\n# another one\n")
    return owners


class Traces:
    """Nobody finds anything of anybody's, and no two numbers are equal."""

    def __init__(self):
        self.numbers = set()
        self.machines = collections.Counter()

    def look(self, owner, result):
        report = result["output"]
        self.machines[result["machine"]] += 1
        check_equal(
            (report["marker"], report["tmp"], report["env"], report["processes"], report["sandbox"]),
            (False, [], None, [], ["files"]),
            f"what {owner.name} finds",
        )
        for value in report["random"]:
            check(value not in self.numbers, f"{owner.name}: {value} came before")
            self.numbers.add(value)


def reads(daemon):
    """How often each machine's process read, once all of them wait, and none is there that makes a
    snapshot: its VMM does for each time that the guest tells of a queue, and a guest that waits
    has nothing to tell."""
    wait_until(
        lambda: daemon.parked()
        == daemon.metrics("skillvm_machines")[""]
        == len(daemon.machines()),
        300,
        "all machines wait",
    )
    found = {}
    for pid in daemon.machines():
        try:
            text = pathlib.Path(f"/proc/{pid}/io").read_text()
            found[pid] = int(re.search(r"^syscr: (\d+)$", text, re.M).group(1))
        except OSError:
            continue
    return found


@long_case
def owners_never_meet(world):
    daemon = world.copy_of_snapshots("owners", ["--max-running", "4"], kept=4)
    daemon.start()
    try:
        owners = make_owners(daemon)
        seen = Traces()
        owner_of = {}
        turns = owners * RUNS
        random.Random(RUNS).shuffle(turns)
        for owner in turns:
            before = reads(daemon)
            result = owner.run()
            seen.look(owner, result)
            after = reads(daemon)
            # One that is exchanged at this moment had not been at work, or cannot tell.
            if result["machine"] == "reused" and before.keys() <= after.keys():
                ran = [pid for pid in before if after.get(pid, before[pid]) != before[pid]]
                check_equal(len(ran), 1, f"machines at work for {owner.name}")
                had = owner_of.setdefault(ran[0], owner.name)
                check_equal(had, owner.name, f"whose machine {ran[0]} is that {owner.name} had")
        check(seen.machines["reused"] >= len(turns) // 2, f"machines were {dict(seen.machines)}")
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            together = [(owner, pool.submit(owner.run)) for owner in turns]
            for owner, running in together:
                seen.look(owner, running.result())
        print(f"{2 * len(turns)} runs of {len(owners)} owners, machines {dict(seen.machines)}")
    finally:
        daemon.stop()
