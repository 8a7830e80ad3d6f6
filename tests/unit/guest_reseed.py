#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy's generator is given new numbers when a warm zygote is told what to run, before the script.

guest_reseed.py [--interpreter FILE] ZYGOTE-DIRECTORY

NumPy itself is not needed: a package of its name stands in, which counts.
"""
import argparse
import os
import sys
import tempfile
import types

sys.dont_write_bytecode = True
import guest_zygote

STAND_IN = """
import os
seeds = []
def seed():
    seeds.append(os.environ.get("SKILL_NAME"))
"""
SCRIPT = """
import sys
from numpy import random
print("seeds", random.seeds)
"""


def seeds(options, scratch, warm):
    script = os.path.join(scratch, "script.py")
    with open(script, "w", encoding="utf-8") as out:
        out.write(SCRIPT)
    with_stand_in = types.SimpleNamespace(
        interpreter=options.interpreter, zygote=f"{options.zygote}:{os.path.join(scratch, 'site')}"
    )
    # A plain start would not find the stand-in, which is in the zygote's variables alone.
    probe = guest_zygote.Probe(script)
    return guest_zygote.run_zygote(probe, os.path.join(scratch, "skill"), with_stand_in, warm)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--interpreter", metavar="FILE", default=guest_zygote.PYTHON)
    parser.add_argument("zygote", type=os.path.abspath)
    options = parser.parse_args()
    if not os.path.exists(guest_zygote.PYTHON):
        print(f"skipped: no {guest_zygote.PYTHON}")
        return 77
    if not os.path.exists("/proc/self/fd/3"):
        os.dup2(os.open("/dev/null", os.O_RDONLY), 3)
    with tempfile.TemporaryDirectory() as scratch:
        os.makedirs(os.path.join(scratch, "site/numpy"))
        open(os.path.join(scratch, "site/numpy/__init__.py"), "w").close()
        with open(os.path.join(scratch, "site/numpy/random.py"), "w", encoding="utf-8") as out:
            out.write(STAND_IN)
        # Once, before the script's own variables are there; a cold one seeds itself.
        wanted = {("numpy.random",): b"seeds [None]\n", (): b"seeds []\n"}
        got = {warm: seeds(options, scratch, list(warm)) for warm in wanted}
    failed = [warm for warm in wanted if got[warm] != (0, wanted[warm], b"")]
    for warm in failed:
        print(f"FAILED warm {warm}: {got[warm]}, not {wanted[warm]}")
    print(f"{len(wanted)} starts, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
