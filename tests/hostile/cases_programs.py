# SPDX-License-Identifier: Apache-2.0
"""Programs made from seeds drive every device of a machine; all that ends is that machine.

The guest is tests/hostile/guest, which has them from tests/hostile/programs.h. Most run in the VMM that
compares each machine with its snapshot, the others in the one that is shipped, in the jail and beside a daemon
that is at work. HOSTILE_PROGRAMS says how many, HOSTILE_SEED from which seed on; many are run by a driver
for each processor.
"""

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import random
import shutil
import time

import jail_client
from cases_limits import own_cgroup
from cases_reset import scratch_of
from harness import Beside, Failed, case, check, check_equal, joins, python_skill, wait_until
from program_driver import BATCH, Programs

PROGRAMS = int(os.environ.get("HOSTILE_PROGRAMS") or 5000)
# A batch that is to be seen again is run by both.
JAILED = PROGRAMS * 3 // 10 if PROGRAMS > BATCH else PROGRAMS
VERIFIED = PROGRAMS - JAILED or PROGRAMS
# From so many on the time to make another snapshot is small.
MANY = 100000
# What the daemon beside them may keep, and how long its health may take on a processor that all of them share.
KEPT_KIB_MAX, HEALTH_S = 4096, 30
HELLO = python_skill("print(1)")
# One execution for so many questions.
QUESTIONS, PAUSE_S = 10, 0.5


def run(scratch, seed, n, vmm, jail=None, cgroup=None):
    """What became of programs seed … seed + n - 1. In a process of its own, which is alone in the cgroup."""
    with contextlib.ExitStack() as stack:
        if jail:
            joins(cgroup)()
            jail = stack.enter_context(contextlib.closing(jail_client.Jail(jail, vmm)))
            check_equal(jail.layers, jail_client.ALL, "layers of the jail")
        programs = Programs(vmm, scratch / "hostile-guest", scratch, seed, jail)
        programs.save()
        programs.run_programs(n)
    shutil.rmtree(scratch)
    return programs.causes, programs.counts, programs.failures


def run_all(n, begin_of):
    """n programs, by begin_of(driver), which gives a scratch folder and what run takes behind the number. Another
    sequence each time; the log says which."""
    seed = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"programs: HOSTILE_SEED={seed}", flush=True)
    drivers = os.cpu_count() if n >= MANY else 1
    causes, counts, failures, peak_kib = collections.Counter(), collections.Counter(), [], 0
    begin = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(drivers) as pool:
        ends = [n * i // drivers for i in range(drivers + 1)]
        parts = []
        for i in range(drivers):
            scratch, *more = begin_of(i)
            parts.append(pool.submit(run, scratch, seed + ends[i], ends[i + 1] - ends[i], *more))
        for part in parts:
            found = part.result()
            causes += found[0]
            peak_kib = max(peak_kib, found[1].pop("peak KiB", 0))
            counts += found[1]
            failures += found[2]
    for cause, count in causes.most_common():
        print(f"programs: {count} ended by: {cause}", flush=True)
    rate = n / (time.monotonic() - begin)
    print(f"programs: {dict(counts)}, {rate:.0f} a second", flush=True)
    if peak_kib:
        print(f"programs: a machine's cgroup had {peak_kib} KiB at most", flush=True)
    failures = [f"{'; '.join(found[:2])}" for _, found in failures]
    check(not failures, f"{len(failures)} batches, HOSTILE_SEED={seed}: {failures[:5]}")
    # Or they did nothing: one in about a hundred ends its machine.
    check(causes.total() >= n // 400, f"only {causes}")


@case
def programs_end_only_their_machine(world):
    def begin_of(i):
        scratch = scratch_of(world, f"programs-{i}")
        return scratch, scratch / "skillvm-vmm-verify"

    run_all(VERIFIED, begin_of)


class Asks(Beside):
    """Somebody who has a daemon's health told and executions run, as long as it lasts."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon, self.asked, self.problem = daemon, collections.Counter(), None

    def ask(self, n):
        begin = time.monotonic()
        check_equal(self.daemon.client.get("/health").status, 200, "health")
        self.asked["slowest answer, ms"] = max(self.asked["slowest answer, ms"],
                                               int((time.monotonic() - begin) * 1000))
        self.asked["answers"] += 1
        if n % QUESTIONS == 0:
            check_equal(self.daemon.client.run_ok(HELLO)["stdout"], "1\n", "an execution's output")
            self.asked["executions"] += 1

    def run(self):
        n = 0
        try:
            while not self.over.wait(PAUSE_S if n else 0):
                self.ask(n)
                n += 1
        except (OSError, Failed) as problem:
            self.problem = problem


def state_of(daemon):
    """Descriptors and threads, when it does nothing."""
    return daemon.descriptors(), daemon.threads()


def check_unchanged(daemon, before, kept_kib):
    wait_until(lambda: all(now <= then for now, then in zip(state_of(daemon), before)), 60,
               f"the daemon has no more descriptors and threads than {before}")
    more_kib = daemon.rss_kib() - kept_kib
    check(more_kib <= KEPT_KIB_MAX, f"the daemon has {more_kib} KiB more")
    return more_kib


@case
def programs_in_the_jail_end_only_their_machine(world):
    """Nor is a daemon beside them, with its machines, any the worse."""
    daemon, bin_dir = world.daemon, pathlib.Path(world.bin_dir)
    with contextlib.ExitStack() as stack:
        cgroups = []

        def begin_of(i):
            cgroups.append(stack.enter_context(own_cgroup(f"programs-{i}")))
            return (scratch_of(world, f"jailed-{i}"), bin_dir / "skillvm-vmm", bin_dir / "skillvm-jail",
                    cgroups[-1])

        # What is there once, from the first one on.
        daemon.client.run_ok(HELLO)
        world.check_clean()
        before, kept_kib, machines = state_of(daemon), daemon.rss_kib(), daemon.metrics("skillvm_vmm_deaths_total")
        with Asks(daemon) as beside:
            run_all(JAILED, begin_of)
        check(not beside.problem, f"the daemon beside them: {beside.problem}")
        check(beside.asked["executions"] > 0, f"of the daemon only {dict(beside.asked)}")
        check(beside.asked["slowest answer, ms"] <= HEALTH_S * 1000, f"{dict(beside.asked)}")
        died = {cause: n for cause, n in daemon.metrics("skillvm_vmm_deaths_total").items()
                if n != machines.get(cause, 0) and cause != 'cause="killed"'}
        check_equal(died, {}, "machines of the daemon's that ended by themselves")
        more_kib = check_unchanged(daemon, before, kept_kib)
        print(f"programs: the daemon beside them: {dict(beside.asked)}, {more_kib:+d} KiB", flush=True)
        for cgroup in cgroups:
            wait_until(lambda: "populated 0" in (cgroup / "cgroup.events").read_text(), 20, "all of them ended")
