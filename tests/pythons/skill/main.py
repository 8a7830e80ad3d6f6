# SPDX-License-Identifier: Apache-2.0
"""Runs parts of Python's own test suite, each in an interpreter of its own, and reports what became of
each test: "passed", "skipped: …" or "failed: …". The same on the host and in a guest."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree

PLACE = pathlib.Path(os.environ.get("SUITE_PLACE", "/tmp"))
TEXT_MAX = 400
LEAST_S = 60
# Whose tests have interpreters import the suite itself: without this variable these are isolated, and find only
# a suite that is installed. test_4_daemon_threads waits for its threads, which have failed, for good.
SUITE_IN_CHILDREN = {"test_threading"}


def unpack():
    """The library's own test package has the suite's tools, and the archive has all of both."""
    library = PLACE / "library"
    with tarfile.open(os.environ["SANDBOX_INPUT_DIR"] + "suite.tar.gz") as archive:
        archive.extractall(library)
    return library


def outcome(case):
    for kind in ("failure", "error", "skipped"):
        found = case.find(kind)
        if found is not None:
            word = "skipped" if kind == "skipped" else "failed"
            text = (found.get("message") or found.text or "").strip()
            return f"{word}: {text[-TEXT_MAX:]}"
    return "passed"


def read(path):
    """Outcome and seconds of each test; the worst outcome of one that was run several times."""
    tests = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name, new = case.get("name"), outcome(case)
        if name not in tests or new.startswith("failed"):
            tests[name] = [new, float(case.get("time", 0))]
    return tests


def run(unit, limit_s, library):
    report = PLACE / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "test", "--junit-xml", str(report), unit["module"]]
    for name in unit.get("classes") or ():
        command += ["-m", name]
    environment = {**os.environ, "PYTHONPATH": str(library), "TMPDIR": str(PLACE)}
    if unit["module"] in SUITE_IN_CHILDREN:
        environment["PYTHONHOME"] = sys.base_prefix
    started = time.monotonic()
    with open(PLACE / "log", "w+b") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT,
                                   cwd=PLACE, start_new_session=True)
        try:
            process.wait(limit_s)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    return {
        "status": "late" if late else process.returncode,
        "seconds": round(time.monotonic() - started, 1),
        "tests": read(report) if report.exists() else {},
        "log": text[-4 * TEXT_MAX:],
    }


def run_all(units, library, until):
    """What there is no more time for is not begun, but for the first."""
    for number, unit in enumerate(units):
        left = until - time.monotonic()
        if number and left < LEAST_S:
            yield {"status": "not begun", "seconds": 0, "tests": {}, "log": ""}
        else:
            yield run(unit, left, library)


def main():
    asked = json.load(sys.stdin)
    until = time.monotonic() + asked["seconds"]
    # A shell's background job ignores it, and so would the suite's interpreters.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    library = unpack()
    with open(os.environ["SANDBOX_OUTPUT"], "w") as out:
        json.dump(list(run_all(asked["units"], library, until)), out)


if __name__ == "__main__":
    main()
