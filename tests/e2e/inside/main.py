# SPDX-License-Identifier: Apache-2.0
"""Runs the cases that must see the daemon's own machine: its processes, files and memory.

It runs where KVM works, as root: in a software host or on a machine with KVM. Prints one line
per case (ok, FAIL or skip) and `inside: done` at the end.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = (HERE, HERE.parent.parent / "hostile", HERE.parent.parent / "calls")
sys.path[:0] = map(str, FOLDERS)
sys.dont_write_bytecode = True

import harness  # noqa: E402
import runner  # noqa: E402

SUITES = {
    "e2e": (
        "cases_result",
        "cases_isolation",
        "cases_misbehaviour",
        "cases_interpreter",
        "cases_edges",
        "cases_lifetime",
        "cases_linux",
        "cases_network",
        "cases_node",
        "cases_profiles",
        "cases_disk",
        "cases_egress",
        "cases_fleet",
    ),
    "hostile": (
        "cases_guest",
        "cases_caller",
        "cases_machine",
        "cases_relay",
        "cases_given_up",
        "cases_limits",
        "cases_neighbours",
        "cases_floods",
        "cases_strict",
        "cases_taken",
        "cases_categories",
        "cases_damage",
        "cases_owners",
        "cases_skill_resets",
        "cases_reset",
        "cases_programs",
        "cases_greedy",
        "cases_trail",
        "cases_siege",
    ),
}
# What another processor or kernel of the host may change: the machine, and what its guest can do.
MACHINE = {
    "cases_isolation",
    "cases_misbehaviour",
    "cases_lifetime",
    "cases_linux",
    "cases_owners",
    "cases_profiles",
    "cases_disk",
    "cases_skill_resets",
    "cases_guest",
    "cases_machine",
    "cases_given_up",
    "cases_limits",
    "cases_strict",
    "cases_taken",
    "cases_reset",
    "cases_programs",
    "cases_greedy",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of skillvmd")
    parser.add_argument("--share", required=True, help="folder of vmlinux and the images")
    parser.add_argument("--scratch", default="/tmp", help="where data directories are made")
    parser.add_argument("--suite", choices=[*SUITES, "all"], default="all")
    parser.add_argument("--machine", action="store_true", help="only the cases of the machine")
    parser.add_argument("--only", action="append", help="run the cases whose name matches")
    parser.add_argument("--long", action="store_true", help="those that take long, too")
    parser.add_argument("--emulated", action="store_true", help="the host's processor is emulated")
    options = parser.parse_args()

    files = {path.stem for folder in FOLDERS for path in folder.glob("cases_*.py")}
    if files != {module for modules in SUITES.values() for module in modules}:
        sys.exit(f"the cases of SUITES are not those of the folders: {sorted(files)}")
    for suite, modules in SUITES.items():
        if options.suite in (suite, "all"):
            for module in modules:
                if not options.machine or module in MACHINE:
                    __import__(module)
    if options.suite == "e2e":
        # Guests here do as they are told, on a machine that may be slow.
        harness.Daemon.common = ("--grace", "30")
    world = harness.World(options.bin, options.share, options.scratch)
    try:
        wanted = [case for case in harness.CASES if runner.is_wanted(case, options.only, options.long)]
        failures = runner.run_cases(world, wanted, sys.stdout, options.emulated)
    finally:
        world.finish()
    print("inside: done", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
