# SPDX-License-Identifier: Apache-2.0
"""What docs/security.md says of the sources: the system calls of each filter, and the lines of code that
a guest reaches; and of what cases_taken.py shows, the layers that deny a VMM each thing alone. It also looks
at the rows of the 20 categories, whose outcomes a run makes.

    security_page.py RULES --check     fails where the page says something else; RULES: seccomp_rules
    security_page.py RULES --write     puts what is so into the page
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "security.md"
sys.path[:0] = [str(ROOT / "tests" / "hostile" / "categories"), str(ROOT / "tests" / "hostile")]
sys.dont_write_bytecode = True

import table  # noqa: E402
import taken_table  # noqa: E402

PHASES = {
    "once": "runs one guest",
    "reusable": "may be reset",
    "boot": "boots, saves, records; no skill's code",
}
VMM_LINES_MAX = 3000
CALLS_MAX = {"main": 25, "vcpu": 20}
SLACK = 300
# What is entered with something of a guest's in hand, and what of it is entered so.
REACHED = {
    "the VMM": (
        ("vmm/vcpu.c", "exits of the vCPU"),
        ("vmm/arch/x86_64/platform.c", "those of the processor's"),
        ("vmm/machine.c", "which device"),
        ("vmm/memory.[ch]", "guest addresses"),
        ("vmm/virtio/*.[ch]", "transport, queues, block, vsock"),
    ),
    "the daemon": (
        ("api/daemon/machine/guest_decoder.[ch]", "frames"),
        ("api/daemon/machine/guest.c", "what each frame does"),
        ("api/daemon/machine/guest_drain.c", "streams at the end"),
        ("base/bytes.[ch]", "fields of frames"),
        ("base/utf8.c", "texts"),
        ("api/skill/artifacts.c", "files and sessions"),
        ("api/skill/tar.c", "their streams"),
        ("api/skill/name*.c", "their names"),
        ("api/json/json_scan.c", "`output.json`"),
    ),
    "the daemon, where a skill has a network": (
        ("api/daemon/egress/reachable.c", "questions"),
        ("api/daemon/egress/egress.c", "connections"),
        ("api/daemon/egress/stream.c", "bytes"),
    ),
}


def marks(what):
    return f"<!-- {what}: made by tests/security_page.py -->\n", f"<!-- end of {what} -->"


def calls_rows(rules):
    """The table of filters, from what seccomp_rules says."""
    text = subprocess.run([rules, "--calls"], check=True, capture_output=True, text=True).stdout
    rows = ["| a machine that | thread | calls | |", "|---|---|---|---|"]
    for phase, thread, names in re.findall(r"^(\w+) (\w+): (.*)$", text, re.M):
        if phase in PHASES:
            calls = list(dict.fromkeys(names.split()))
            if len(calls) > CALLS_MAX[thread]:
                sys.exit(f"{thread} of a machine that {PHASES[phase]}: more than {CALLS_MAX[thread]} calls")
            listed = ", ".join(f"`{name}`" for name in calls)
            rows.append(f"| {PHASES[phase]} | {thread} | {len(calls)} | {listed} |")
    return rows


def count_lines(path):
    """Those that are neither empty nor comment."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return sum(bool(line.strip()) for line in text.splitlines())


def reached(room):
    """Lines of a room's files, and how the page names these."""
    total, names = 0, []
    for pattern, what in REACHED[room]:
        paths = sorted(ROOT.glob(pattern))
        if not paths:
            raise ValueError(f"no file is called {pattern}")
        total += sum(map(count_lines, paths))
        names.append(f"`{pattern}` ({what})")
    return total, ", ".join(names)


def lines_rows(text):
    """The table of lines, by hundreds; what text has already stays while it is so, give or take a few."""
    rows = ["| where | lines, at most | files |", "|---|---|---|"]
    for room in REACHED:
        total, names = reached(room)
        found = re.search(rf"^\| {room} \| ([0-9,]+) \|", text, re.M)
        told = int(found[1].replace(",", "")) if found else 0
        most = told if total <= told < total + SLACK else -(-total // 100) * 100
        rows.append(f"| {room} | {most:,} | {names} |")
    return rows


def taken_rows():
    """The table of what a VMM tries that was taken over."""
    rows = ["| what it tries | layers that deny it alone |", "|---|---|"]
    for attempt, does in taken_table.ATTEMPTS.items():
        why = taken_table.SOLE.get(attempt)
        layers = ", ".join(taken_table.layers_against(attempt))
        rows.append(f"| {does} | {layers}{f'; {why}' if why else ''} |")
    return rows


def replaced(text, what, rows):
    begin, end = marks(what)
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no place for {what}")
    return head + begin + "\n".join(rows) + "\n" + end + tail


def main(rules, action):
    text = PAGE.read_text()
    made = replaced(replaced(text, "calls", calls_rows(rules)), "lines", lines_rows(text))
    made = replaced(made, "taken", taken_rows())
    if reached("the VMM")[0] > VMM_LINES_MAX:
        sys.exit(f"a guest reaches more than {VMM_LINES_MAX} lines of the VMM")
    if action == "--write":
        PAGE.write_text(made)
    elif made != text:
        wrong = next(line for line in made.splitlines() if line not in text.splitlines())
        sys.exit(f"docs/security.md lacks this row; security_page.py --write puts it there: {wrong}")
    table.told(made)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("--check", "--write"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
