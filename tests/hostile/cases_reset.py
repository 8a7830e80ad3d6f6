# SPDX-License-Identifier: Apache-2.0
"""A machine is put back to its snapshot after every harm that a guest of ours can do it.

The guest is tests/hostile/guest, without Linux; what resets it is the VMM itself, built so that
it compares the machine with its snapshot after each reset. HOSTILE_RESETS says how often.
"""

import os
import pathlib
import random
import shutil

from harness import Skipped, case, check, check_equal
from reset_driver import Broken, Trial

BUILT = pathlib.Path(__file__).resolve().parents[1] / "hostile-guest"
# Each attack by itself, and as many runs of several.
RESETS = int(os.environ.get("HOSTILE_RESETS") or 100)


def scratch_of(world, name):
    """A folder with the verifying VMM and the guest, where they can be executed."""
    scratch = world.root / name
    scratch.mkdir()
    for program in ("skillvm-vmm-verify", "hostile-guest"):
        if not (BUILT / program).exists():
            raise Skipped(f"{program} is not built")
        shutil.copy(BUILT / program, scratch)
    return scratch


def trial(world, name, seed):
    scratch = scratch_of(world, name)
    return Trial(scratch / "skillvm-vmm-verify", scratch / "hostile-guest", scratch, seed)


def finish(trial):
    shutil.rmtree(trial.dir)
    failures = [f"{where}: {'; '.join(found[:2])}" for where, found in trial.failures]
    check(not failures, f"{len(failures)} of {sum(trial.counts.values())}: {failures[:5]}")


@case
def resets_after_hostile_guests(world):
    # Another sequence each time; the log says which.
    seed = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"resets: HOSTILE_SEED={seed}", flush=True)
    resets = trial(world, "resets", seed)
    resets.save()
    resets.run(RESETS)
    print(f"resets: {dict(resets.counts)}", flush=True)
    check(resets.counts["resets"] >= RESETS * 3 // 4, f"only {dict(resets.counts)}")
    finish(resets)


@case
def resets_in_a_hurry(world):
    hurried = trial(world, "hurried", 1)
    hurried.save()
    hurried.hurry(100)
    finish(hurried)


@case
def a_machine_for_one_run_is_not_reset(world):
    once = trial(world, "once", 1)
    once.fresh = True
    once.save()
    once.start()
    try:
        once.machine.reset()
    except Broken as refused:
        print(f"refused: {refused}", flush=True)
    else:
        check(False, "a machine restored without --reusable was reset")
    check_equal(once.machine.close(), 1, "status of the VMM")
    finish(once)


@case
def a_guest_that_ended_is_not_reset(world):
    ended = trial(world, "ended", 1)
    ended.save()
    names = ["triple-fault", "bad-root"]
    ended.run(2 * len(names), names)
    check_equal(ended.counts["ended"], 2 * len(names), "machines that ended")
    check_equal(ended.counts["resets"], 0, "resets")
    finish(ended)
