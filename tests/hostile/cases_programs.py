# SPDX-License-Identifier: Apache-2.0
"""Programs made from seeds drive every device of a machine; all that ends is that machine.

The guest is tests/hostile/guest, which has them from tests/hostile/programs.h. HOSTILE_PROGRAMS
says how many, HOSTILE_SEED from which seed on; many are run by a driver for each processor.
"""

import collections
import concurrent.futures
import os
import random
import shutil
import time

from cases_reset import scratch_of
from harness import case, check
from program_driver import Programs

PROGRAMS = int(os.environ.get("HOSTILE_PROGRAMS") or 10000)


# From so many on the time to make another snapshot is small.
MANY = 100000


def run(scratch, seed, n):
    """What became of programs seed … seed + n - 1."""
    programs = Programs(scratch / "skillvm-vmm-verify", scratch / "hostile-guest", scratch, seed)
    programs.save()
    programs.run_programs(n)
    shutil.rmtree(scratch)
    return programs.causes, programs.counts, programs.failures


@case
def programs_end_only_their_machine(world):
    # Another sequence each time; the log says which.
    seed = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"programs: HOSTILE_SEED={seed}", flush=True)
    drivers = os.cpu_count() if PROGRAMS >= MANY else 1
    causes, counts, failures = collections.Counter(), collections.Counter(), []
    begin = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(drivers) as pool:
        ends = [PROGRAMS * i // drivers for i in range(drivers + 1)]
        parts = [
            pool.submit(run, scratch_of(world, f"programs-{i}"), seed + ends[i], ends[i + 1] - ends[i])
            for i in range(drivers)
        ]
        for part in parts:
            found = part.result()
            causes += found[0]
            counts += found[1]
            failures += found[2]
    for cause, count in causes.most_common():
        print(f"programs: {count} ended by: {cause}", flush=True)
    rate = PROGRAMS / (time.monotonic() - begin)
    print(f"programs: {dict(counts)}, {rate:.0f} a second", flush=True)
    failures = [f"{'; '.join(found[:2])}" for _, found in failures]
    check(not failures, f"{len(failures)} batches, HOSTILE_SEED={seed}: {failures[:5]}")
    # Or they did nothing: one in about a hundred ends its machine.
    check(causes.total() >= PROGRAMS // 400, f"only {causes}")
