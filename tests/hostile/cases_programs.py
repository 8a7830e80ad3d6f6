# SPDX-License-Identifier: Apache-2.0
"""Programs made from seeds drive every device of a machine; all that ends is that machine.

The guest is tests/hostile/guest, which has them from tests/hostile/programs.h. HOSTILE_PROGRAMS
says how many, HOSTILE_SEED from which seed on.
"""

import os
import random
import shutil

from cases_reset import scratch_of
from harness import case, check
from program_driver import Programs

PROGRAMS = int(os.environ.get("HOSTILE_PROGRAMS") or 10000)


@case
def programs_end_only_their_machine(world):
    # Another sequence each time; the log says which.
    seed = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"programs: HOSTILE_SEED={seed}", flush=True)
    scratch = scratch_of(world, "programs")
    programs = Programs(scratch / "skillvm-vmm-verify", scratch / "hostile-guest", scratch, seed)
    programs.save()
    seconds = programs.run_programs(PROGRAMS)
    shutil.rmtree(scratch)
    for cause, count in programs.causes.most_common():
        print(f"programs: {count} ended by: {cause}", flush=True)
    rate = PROGRAMS / seconds
    print(f"programs: {dict(programs.counts)}, {rate:.0f} a second", flush=True)
    failures = [f"{'; '.join(found[:2])}" for _, found in programs.failures]
    check(not failures, f"{len(failures)} batches, HOSTILE_SEED={seed}: {failures[:5]}")
    # Or they did nothing: one in about a hundred ends its machine.
    check(programs.causes.total() >= PROGRAMS // 400, f"only {programs.causes}")
