# SPDX-License-Identifier: Apache-2.0
"""Snapshots that hold what skills import: made behind the first run, seen by no script."""

from harness import case, check, check_equal, python_skill, wait_until

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


@case
def a_profile_is_there_from_the_second_run_on(world):
    skill = python_skill(SOURCE, name="imports")
    kept = world.daemon.metrics("skillvm_snapshots_kept")[""]
    first = world.client.run_ok(skill)
    check_equal(first["profile"], "", "the profile of the first run")
    wait_until(lambda: world.daemon.metrics("skillvm_snapshots_kept")[""] > kept, 120, "the snapshot")
    second = world.client.run_ok(skill)
    check_equal(set(second["profile"].split("+")), MODULES, "the profile of the second run")
    check(second["snapshot"] != first["snapshot"], "both runs began from one snapshot")
    check_equal(second["stdout"], first["stdout"], "what the script printed")
    check_equal(second["machine"], "fresh", "its machine")
    check_equal(world.client.run_ok(skill)["machine"], "reused", "the machine of the third run")


@case
def another_skill_with_these_imports_has_it_at_once(world):
    skill = python_skill(SOURCE, name="imports")
    kept = world.daemon.metrics("skillvm_snapshots_kept")[""]
    if world.client.run_ok(skill)["profile"] == "":
        wait_until(lambda: world.daemon.metrics("skillvm_snapshots_kept")[""] > kept, 120,
                   "the snapshot")
    other = world.client.run_ok(python_skill(SOURCE + "\n# another one\n", name="other"))
    check_equal(set(other["profile"].split("+")), MODULES, "the other's profile")
