# SPDX-License-Identifier: Apache-2.0
"""A VMM that was taken over: an attacker's code in the real process, jailed, restored and hardened.

tests/hostile/taken_driver.py has it try each thing with all layers and with none, in machines that are used
again, of one execution, and that boot; and, in the case that takes long, with each layer left out and alone.
"""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

from cases_limits import own_cgroup
from cases_reset import scratch_of
from harness import Skipped, case, check, check_equal, joins, long_case, shorten
from reset_driver import Trial
from taken_table import ALONE, denied_with, layers_against, layers_against_booting

SYS_LANDLOCK_CREATE_RULESET, ONLY_ITS_VERSION = 444, 1
HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent / "hostile-guest"


def run_driver(world, *each):
    """{layers: {attempt: [how, effects]}}"""
    if not (BUILT / "skillvm-vmm-taken").exists():
        raise Skipped("skillvm-vmm-taken is not built")
    snapshot = scratch_of(world, "taken")
    shutil.copy(BUILT / "skillvm-vmm-taken", snapshot)
    Trial(snapshot / "skillvm-vmm-verify", snapshot / "hostile-guest", snapshot).save()
    # Others may come to where a way is open to all.
    world.root.chmod(0o755)
    host = world.root / "taken.host"
    host.mkdir()
    out, log = world.root / "taken.out", world.root / "taken.log"
    # No pipes: what a driver that fails leaves running would hold them.
    with own_cgroup("taken") as folder, out.open("w") as out_file, log.open("w") as log_file:
        done = subprocess.run(
            [sys.executable, "-B", HERE / "taken_driver.py", os.path.join(world.bin_dir, "skillvm-jail")]
            + [snapshot / "skillvm-vmm-taken", snapshot, host, *each],
            preexec_fn=joins(folder), stdout=out_file, stderr=log_file,
        )
    print(log.read_text(), flush=True)
    check_equal(done.returncode, 0, f"the driver: {shorten(log.read_text()[-2000:], 2000)}")
    shutil.rmtree(snapshot)
    shutil.rmtree(host)
    return json.loads(out.read_text())


def check_denied(found):
    """That nothing shows in the host, and that there was something to deny."""
    for attempt, (how, effects) in found["none"].items():
        check(effects, f"{attempt} proves nothing: without any layer it came to {how}")
    for layers in ("all", "all, vCPU", "once", "once, vCPU", "boot", "boot, vCPU"):
        for attempt, (how, effects) in found[layers].items():
            check(how != 0 and not effects, f"{attempt} with {layers} layers: {how}, {effects}")


def check_left_out(found):
    """That without a layer just that is done against which it stands alone."""
    for layers in found:
        scope, is_without, layer = layers.rpartition("without ")
        against = layers_against_booting if scope == "boot " else layers_against
        for attempt, (how, effects) in found[layers].items() if is_without else ():
            sole = against(attempt) == [layer]
            check_equal(bool(effects), sole, f"{attempt} {layers}: {how}, {effects}; that it is done")


def check_alone(found):
    """That each layer, while the others do nothing, denies what it is said to and no more: the rest is done."""
    alone = {name.removesuffix(" alone"): run for name, run in found.items() if name.endswith(" alone")}
    check_equal(sorted(alone), sorted(ALONE), "the layers that were left alone")
    landlock = ctypes.CDLL(None).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, ONLY_ITS_VERSION)
    for layer, run in alone.items():
        expected = denied_with(layer, landlock)
        denied = {attempt for attempt, (_, effects) in run.items() if not effects}
        print(f"  {layer} alone:", *(f"{attempt} ({run[attempt][0]})" for attempt in run if attempt in denied),
              flush=True)
        check(denied >= expected, f"{layer} alone lets it do {sorted(expected - denied)}")
        check(denied <= expected, f"{layer} alone denies it {sorted(denied - expected)}, too")


def print_ends(found, layers):
    for attempt, (how, _) in found[layers].items():
        print(f"  {layers}: {attempt}: {how}", flush=True)


@case
def a_vmm_that_was_taken_over_has_gained_nothing(world):
    found = run_driver(world)
    print_ends(found, "all")
    check_denied(found)


@long_case
def each_layer_of_a_vmm_denies_what_it_is_said_to(world):
    """Left out, and alone."""
    found = run_driver(world, "each")
    print_ends(found, "without filter")
    check_denied(found)
    check_left_out(found)
    check_alone(found)


@case
def the_vmm_that_is_shipped_leaves_no_layer_out(world):
    """What a test's VMM takes for layers is a wrong command line to it, and in neither is the other's."""
    shipped = pathlib.Path(world.bin_dir, "skillvm-vmm")
    done = subprocess.run([shipped, "31", "restore"], capture_output=True, check=False)
    check_equal(done.returncode, 2, "its exit status")
    check(b"unexpected 'restore'" in done.stderr, "it says what it does not know")
    check(b"read-machine" in (BUILT / "skillvm-vmm-taken").read_bytes(), "the test's has attempts")
    check(b"read-machine" not in shipped.read_bytes(), "the shipped one has none")
