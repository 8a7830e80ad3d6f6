# SPDX-License-Identifier: Apache-2.0
"""What docs/syscalls.md says of Linux is what a skill finds."""

import pathlib

import promises
from archives import zip_entry
from harness import Skipped, case, check, skill_zip

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "syscalls.md"
SKILL = ROOT / "tests" / "calls" / "skill"


def archive():
    program = SKILL / "guest-calls"
    if not program.exists():
        raise Skipped("guest-calls is not built")
    files = {path.name: path.read_bytes() for path in SKILL.iterdir() if path != program}
    return skill_zip({**files, zip_entry("guest-calls", 0o100755): program.read_bytes()})


@case
def linux_gives_a_skill_what_is_promised(world):
    found = world.client.run_ok(archive())["output"]
    wrong = promises.differences(promises.read(PAGE), found)
    check(not wrong, "docs/syscalls.md: " + "; ".join(wrong))
    print(f"{len(found)} probes ended as promised", flush=True)
