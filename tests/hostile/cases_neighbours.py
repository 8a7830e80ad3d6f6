# SPDX-License-Identifier: Apache-2.0
"""A tenant whose machines take all that they can, and another one next to it."""

import contextlib

from cases_limits import own_cgroup, words
from cases_strict import cgroup_of
from harness import bash_skill, case, check, check_equal, wait_until
from tenants import Tenant

# How many machines the one who takes all has, and what the other one gets of the processors when
# one has the same as all of the others, and when each machine has the same.
MANY = 2
ITS_SHARE, A_MACHINES_SHARE = 1 / 2, 1 / (MANY + 1)
WHOLE = 6400  # JAIL_WEIGHT of vmm/jail/jail.h
FOREVER = 3000
SPINS = bash_skill("while :; do :; done", name="spins")


class Runs:
    """A tenant's executions that end when they are cancelled."""

    def __init__(self, daemon, name):
        self.tenant = Tenant(daemon, name)
        self.skill, self.places = self.tenant.push(SPINS), []

    def start(self):
        self.places.append(self.tenant.start(self.skill, FOREVER))

    def cancel(self):
        answer = self.tenant.ask("DELETE", self.places.pop())
        check_equal(answer.status, 202, "cancelled")


def weights(daemon):
    """Of the cgroups of machines; nothing while one of them ends."""
    with contextlib.suppress(OSError):
        return sorted(int((cgroup_of(pid) / "cpu.weight").read_text()) for pid in daemon.machines())


def wait_for_weights(daemon, expected):
    wait_until(lambda: weights(daemon) == expected, 60, f"weights of {expected}")


def usage(cell):
    return int(words(cell / "cpu.stat")["usage_usec"])


def share_of(cell, seconds):
    """What one of the cgroups of machines gets while they all take so much."""
    every = cell.parent
    own, all_of_them = usage(cell), usage(every)
    wait_until(lambda: usage(every) >= all_of_them + seconds * 1e6, 240, "they took their time")
    return (usage(cell) - own) / (usage(every) - all_of_them)


@case
def tenants_share_by_tenant_and_not_by_machine(world):
    with own_cgroup("neighbours") as folder:
        daemon = world.copy_of_snapshots("neighbours", ["--max-running", str(MANY + 1)])
        daemon.environment["SKILLVM_MACHINES_PARKED"] = "0"
        daemon.start(cgroup=folder)
        one, many = Runs(daemon, "one"), Runs(daemon, "many")
        one.start()
        wait_for_weights(daemon, [WHOLE])
        (cell,) = {cgroup_of(pid) for pid in daemon.machines()}
        for expected in ([WHOLE, WHOLE], [WHOLE // 2, WHOLE // 2, WHOLE]):
            many.start()
            wait_for_weights(daemon, expected)
        share = share_of(cell, 15)
        print(f"    {share:.2f} of the processors, beside {MANY} machines of another tenant")
        check(share > (ITS_SHARE + A_MACHINES_SHARE) / 2, f"its share was {share:.2f}")
        # Those that are left have what was another's, and who comes to its cell has all again.
        for expected in ([WHOLE, WHOLE], [WHOLE]):
            many.cancel()
            wait_for_weights(daemon, expected)
        cells = [path for path in folder.glob("skillvm-machines/*") if path.name.isdigit()]
        wait_until(lambda: {(path / "cpu.weight").read_text() for path in cells} == {f"{WHOLE}\n"}, 60,
                   f"all cells have {WHOLE}")
        one.cancel()
        check_equal(daemon.stop(), 0, "its exit status")
