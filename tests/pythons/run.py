# SPDX-License-Identifier: Apache-2.0
"""Runs Python's own test suite in guests and, for comparison, on this machine.

    run.py --build DIR [--more | --only MODULE…] [--keep DIR]

Debian's libpython3.11-testsuite is packed and handed to a skill as an input file; the skill runs parts of
it (tests/pythons/skill). What passes here as an unprivileged user must pass in a guest: each test that
does not is a difference, and has a line in docs/syscalls.md or fails its module. A line without a
difference fails too, and a number of tests there that is far off. Long modules are cut by their classes, so that each execution ends in time.

--more runs others than the usual modules. One line for each module, `ok`, `FAIL` or `skip`, and the totals;
--keep keeps the reports. Exit status: 0 all passed, 1 some failed, 77 nothing could run.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "syscalls.md"
SUITE = pathlib.Path("/usr/lib/python3.11/test")
NOBODY = 65534

# What an interpreter asks of its operating system, and what skills use most; those that were compared. --only
# takes any.
MODULES = """
    test_os test_posix test_fcntl test_resource test_select test_mmap test_pty test_fileio test_glob
    test_shutil test_tempfile test_time test_locale
    test_json test_pathlib test_signal test_selectors test_hashlib test_gzip test_httpservers test_tarfile
    test_csv test_ssl test_queue test_struct
""".split()

# Those that take longer, and what is further from the operating system.
MORE = """
    test_subprocess test_socket test_poll test_epoll test_wait3 test_wait4 test_fork1 test_pwd test_grp
    test_stat test_genericpath test_posixpath test_platform test_openpty test_threadsignals test_atexit
    test_filecmp
    test_file test_fileinput test_univnewlines test_unicode_file test_unicode_file_functions
    test_dbm test_dbm_dumb test_dbm_ndbm
    test_zipimport test_pkgutil test_py_compile test_sys test_sysconfig test_utf8_mode
    test_popen test_pipes test_getpass test_netrc test_mimetypes test_syslog test_readline test_sched
    test_memoryio test_thread test_threading test_threading_local test_smtplib test_urllib2_localnet test_wsgiref
    test_hmac test_secrets test_random test_uuid test_ipaddress test_shelve test_zlib
    test_textwrap test_configparser test_html test_htmlparser test_sax test_xml_etree test_traceback
    test_re test_calendar test_largefile
""".split()

# An execution is given so much work that it should take this long in a software host, where a second of
# this machine's is about so many.
TARGET_S = 200
SLOWER = 20
START_S = 20
LIMIT_S = 550

ROW = re.compile(r"^\| `(test\.\S+)` \| (\S.*) \|$")
NUMBER = re.compile(r"^The modules, about ([\d,]+) tests, are ", re.MULTILINE)


class Skip(Exception):
    """Nothing can run; the text says why."""


def pack(path):
    def wanted(member):
        parts = pathlib.PurePath(member.name).parts
        return None if {"__pycache__", "decimaltestdata", "test_tools"} & set(parts) else member

    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        archive.add(SUITE, "test", filter=wanted)


class Host:
    """This machine, as a user without privileges like a skill's."""

    def __init__(self, work):
        self.work = work

    def run(self, units):
        # Where nobody else's files are, and for the user alone.
        place = pathlib.Path(tempfile.mkdtemp(prefix="pythons-"))
        user = {}
        if os.geteuid() == 0:
            os.chown(place, NOBODY, NOBODY)
            user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        shutil.copy(HERE / "skill" / "main.py", place)
        shutil.copy(self.work / "in" / "suite.tar.gz", place)
        output = place / "output.json"
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(place),
            "SUITE_PLACE": str(place),
            "SANDBOX_INPUT_DIR": f"{place}/",
            "SANDBOX_OUTPUT": str(output),
        }
        try:
            subprocess.run(
                ["/usr/bin/python3.11", "main.py"],
                input=json.dumps({"seconds": LIMIT_S, "units": units}).encode(),
                env=environment,
                cwd=place,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                check=True,
                **user,
            )
            return json.loads(output.read_text())
        finally:
            shutil.rmtree(place, ignore_errors=True)


class Guest:
    def __init__(self, build, work):
        self.skillvm, self.work = build / "bin" / "skillvm", work
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SKILLVM_")},
            "SKILLVM_DATA": str(work / "data"),
            "SKILLVM_SHARE": os.environ.get("SKILLVM_SHARE", str(build / "share" / "skillvm")),
        }

    def command(self, *arguments, **more):
        return subprocess.run(
            [self.skillvm, *map(str, arguments)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def __enter__(self):
        up = self.command("up")
        if up.returncode != 0:
            raise Skip(f"skillvm up: {up.stderr.strip()[-300:]}")
        return self

    def __exit__(self, *exception):
        self.command("down")

    def run(self, units):
        ran = self.command(
            "run", HERE / "skill", "--file", self.work / "in" / "suite.tar.gz", "--timeout", "600s",
            "--input", "-", "--json", input=json.dumps({"seconds": LIMIT_S, "units": units}),
        )
        try:
            result = json.loads(ran.stdout)
        except ValueError:
            raise RuntimeError(f"skillvm run: {ran.stderr.strip()[-300:]}") from None
        if not isinstance(result["output"], list):
            raise RuntimeError(f"{result['status']}: {result['error']} {result['stderr'][-300:]}")
        return result["output"]


def class_of(name):
    """Of a test's id; None for what is not one class's, such as setUpModule's."""
    parts = name.split(".")
    return None if "(" in name or len(parts) < 3 else parts[-2]


def cut(module, report):
    """Units of a module for guests, each with the seconds it should take there."""
    seconds = collections.Counter()
    for name, (_, taken) in report["tests"].items():
        seconds[class_of(name)] += taken
    whole = START_S + report["seconds"] * SLOWER
    if whole <= TARGET_S or set(seconds) <= {None}:
        return [({"module": module}, whole)]
    units = []
    classes, taken = [], START_S
    for name, more in seconds.most_common():
        if name is None:
            continue
        if classes and taken + more * SLOWER > TARGET_S:
            units.append(({"module": module, "classes": classes}, taken))
            classes, taken = [], START_S
        classes.append(name)
        taken += more * SLOWER
    units.append(({"module": module, "classes": classes}, taken))
    return units


def next_batch(units):
    """Takes as many as should be done in time, and at least one."""
    batch, taken = [units.popleft()], 0
    taken += batch[0][1]
    while units and taken + units[0][1] <= TARGET_S:
        batch.append(units.popleft())
        taken += batch[-1][1]
    return batch


def run_batch(guest, batch):
    """Pairs of a unit and its report; None where it is to be tried again, which one alone never is."""
    try:
        reports = guest.run([unit for unit, _ in batch])
    except RuntimeError as problem:
        # What ended all of them is known when each was alone.
        report = {"status": str(problem), "tests": {}, "seconds": 0, "log": ""}
        reports = [report if len(batch) == 1 else None] * len(batch)
    for number, ((unit, _), report) in enumerate(zip(batch, reports)):
        again = report is None or number and report["status"] in ("not begun", "late")
        yield unit, None if again else report


def promised(page):
    """Patterns of tests that differ for a reason."""
    rows = map(ROW.match, page.read_text().splitlines())
    return {row[1]: row[2] for row in rows if row}


def number_of_tests(page):
    return int(NUMBER.search(page.read_text())[1].replace(",", ""))


def differences(host, guest):
    """What passes on the host and not in the guest, by the test's id: how it ended there."""
    found = {}
    for name, (ending, _) in host.items():
        there = guest.get(name, ["did not end"])[0]
        if ending == "passed" and there != "passed":
            found[name] = there
    return found


class Verdicts:
    def __init__(self, excused):
        self.excused, self.used, self.counts = excused, set(), collections.Counter()
        self.tests = 0

    def say(self, word, text):
        self.counts[word] += 1
        print(f"{word} {text}".replace("\n", " "), flush=True)

    def module(self, module, host, guest, took):
        if not host["tests"]:
            self.say("skip", f"{module}: nothing of it ran on this machine")
            return
        self.tests += len(host["tests"])
        # A line of tests that all do not pass here, for want of a package perhaps, may still be right.
        seen = [name for name, (ending, _) in host["tests"].items() if ending == "passed"]
        self.used.update(p for p in self.excused
                         if fnmatch.filter(host["tests"], p) and not fnmatch.filter(seen, p))
        found = differences(host["tests"], guest)
        wrong = {}
        for name, ending in found.items():
            patterns = [p for p in self.excused if fnmatch.fnmatchcase(name, p)]
            self.used.update(patterns)
            if not patterns:
                wrong[name] = ending
        known = len(found) - len(wrong)
        passed = sum(ending == "passed" for ending, _ in guest.values())
        figures = f"{passed} passed, {known} differ as explained, {took:.0f} s here {host['seconds']} s"
        if wrong:
            texts = "; ".join(f"{name} {ending[-200:]}" for name, ending in sorted(wrong.items()))
            self.say("FAIL", f"{module}: {texts} ({figures})")
        else:
            self.say("ok", f"{module} ({figures})")

    def stale(self, modules):
        for pattern in sorted(set(self.excused) - self.used):
            if pattern.split(".")[1] in modules:
                self.say("FAIL", f"docs/syscalls.md: {pattern} does not differ")

    def number(self, said):
        """Of all of MODULES; packages and machines differ by a few."""
        if not self.counts["skip"] and abs(self.tests - said) > said / 20:
            self.say("FAIL", f"docs/syscalls.md: about {said:,} tests, but there are {self.tests:,}")


def compare(modules, host, guest, verdicts, keep):
    here = {m: host.run([{"module": m}])[0] for m in modules}
    units = collections.deque(pair for m in modules for pair in cut(m, here[m]))
    left = collections.Counter(unit["module"] for unit, _ in units)
    tests, took = collections.defaultdict(dict), collections.Counter()
    while units:
        for unit, report in run_batch(guest, next_batch(units)):
            module = unit["module"]
            if report is None:
                units.append((unit, TARGET_S))
                continue
            tests[module] |= report["tests"]
            took[module] += report["seconds"]
            left[module] -= 1
            if keep:
                kept = {"unit": unit, "host": here[module], "guest": report}
                (keep / f"{module}.{left[module]}.json").write_text(json.dumps(kept))
            if not left[module]:
                verdicts.module(module, here[module], tests[module], took[module])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--more", action="store_true")
    which.add_argument("--only", action="append", metavar="MODULE")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    # The daemon goes with this, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    verdicts = Verdicts(promised(PAGE))
    modules = options.only or (MORE if options.more else MODULES)
    with tempfile.TemporaryDirectory(prefix="skillvm-pythons-") as name:
        work = pathlib.Path(name)
        try:
            if not (SUITE / "test_os.py").exists():
                raise Skip("the package libpython3.11-testsuite is not installed")
            (work / "in").mkdir()
            pack(work / "in" / "suite.tar.gz")
            with Guest(options.build.resolve(), work) as guest:
                compare(modules, Host(work), guest, verdicts, options.keep)
            verdicts.stale(modules)
            if modules is MODULES:
                verdicts.number(number_of_tests(PAGE))
        except Skip as reason:
            verdicts.say("skip", f"pythons: {reason}")
    counts = verdicts.counts
    skipped = f", {counts['skip']} skipped" if counts["skip"] else ""
    print(f"{counts['ok']} passed, {counts['FAIL']} failed{skipped}")
    if counts["FAIL"]:
        return 1
    return 0 if counts["ok"] else 77


if __name__ == "__main__":
    sys.exit(main())
