# SPDX-License-Identifier: Apache-2.0
"""Runs cases one after the other, a line for each."""

import pathlib
import re
import sys
import time
import traceback

from harness import Costly, Failed, Skipped


def run_case(world, function):
    """What came of it once: ok, FAIL, costly or skip, why, and what it cost the daemon."""
    cost = ""
    try:
        if world.daemon.process is None or world.daemon.process.poll() is not None:
            world.daemon.start()
        before = world.daemon.cost()
        function(world)
        world.check_clean()
        if "hostile" in pathlib.Path(function.__code__.co_filename).parts:
            cost = world.daemon.check_cost(before, getattr(function, "share", 0.5))
    except Skipped as reason:
        return "skip", f": {reason}", cost
    except Costly as problem:
        return "costly", f": {problem}", cost
    except Failed as problem:
        return "FAIL", f": {problem}", cost
    except Exception as problem:  # a broken case must not hide the others
        traceback.print_exc(file=sys.stderr)
        return "FAIL", f": {type(problem).__name__}: {problem}", cost
    return "ok", "", cost


def is_wanted(function, names, long):
    name = function.__name__
    if getattr(function, "asked", False):
        return name in (names or ())
    if names:
        return any(re.fullmatch(pattern, name) for pattern in names)
    return long or not getattr(function, "long", False)


def run_cases(world, functions, out, emulated=False):
    """One line per case. The number of failures.

    An emulated host stops a guest that does nothing wrong now and then, one of some thousands. So
    there, once, a case that fails and in which one stopped is begun again, and a line says so. And
    what others of the machine take of the processors while the daemon computes counts there as the
    daemon's: where it was too much it is looked at again, as one that spins does so each time.
    """
    failures = 0
    spare = emulated
    for function in functions:
        name = function.__name__
        for last in (not emulated, True):
            start = time.monotonic()
            since = len(world.daemons)
            stopped = world.stopped_guests()
            word, why, cost = run_case(world, function)
            if word == "costly":
                word = "FAIL" if last else "again"
            elif word == "FAIL" and not last and spare and world.stopped_guests() > stopped:
                word, spare = "again", False
            failures += word == "FAIL"
            line = f"{word} {name}{why} ({time.monotonic() - start:.1f} s{cost})"
            print(line.replace("\n", " "), file=out, flush=True)
            if word in ("FAIL", "again"):
                world.print_state(since)
            world.end_daemons(since)
            if word != "again":
                break
    return failures
