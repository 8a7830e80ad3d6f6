# SPDX-License-Identifier: Apache-2.0
"""Snapshots that hold what skills import: made behind the first run, seen by no script."""

from harness import check, check_equal, check_reused, long_case, python_skill, wait_until

SOURCE = """
import csv, decimal, json, sqlite3, statistics, sys
import xml.etree.ElementTree as tree
from asyncio import run

async def main():
    connection = sqlite3.connect(":memory:")
    return connection.execute("SELECT 40 + 2").fetchone()[0]

print(json.dumps({
    "main": sorted(n for n in globals() if not n.startswith("_")),
    "answer": run(main()),
    "mean": statistics.mean([1, 2, 6]),
    "sum": str(decimal.Decimal("0.1") + decimal.Decimal("0.2")),
    "xml": tree.fromstring("<a b='c'/>").get("b"),
    "argv": len(sys.argv),
    "rows": list(csv.reader(["a,b"])),
}))
"""
MODULES = {"decimal", "sqlite3", "statistics", "xml.etree.ElementTree", "asyncio"}


@long_case
def a_profile_is_there_from_the_second_run_on(world):
    daemon = world.copy_of_snapshots("profiles", kept=4)
    daemon.start()
    try:
        skill = python_skill(SOURCE, name="imports")
        first = daemon.client.run_ok(skill)
        check_equal(first["profile"], "", "the profile of the first run")
        wait_until(lambda: daemon.metrics("skillvm_snapshots_kept")[""] == 1, 120, "the snapshot")
        second = daemon.client.run_ok(skill)
        check_equal(set(second["profile"].split("+")), MODULES, "the profile of the second run")
        check(second["snapshot"] != first["snapshot"], "both runs began from one snapshot")
        check_equal(second["stdout"], first["stdout"], "what the script printed")
        check_equal(second["machine"], "fresh", "its machine")
        check_reused(lambda: daemon.client.run_ok(skill), "the third run")
        # Another skill with these imports has it at once.
        other = daemon.client.run_ok(python_skill(SOURCE + "\n# another one\n", name="other"))
        check_equal(set(other["profile"].split("+")), MODULES, "the other's profile")
        # And so has a daemon that starts with it on disk, once it has read it.
        daemon.stop()
        daemon.start()
        daemon.client.run_ok(skill)
        wait_until(lambda: daemon.metrics("skillvm_snapshots_kept")[""] == 1, 120, "the snapshot")
        check_equal(daemon.metrics("skillvm_snapshots_made_total")['result="ok"'], 0, "made anew")
        check_equal(daemon.client.run_ok(skill)["profile"], second["profile"], "after a restart")
    finally:
        daemon.stop()
