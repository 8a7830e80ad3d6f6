# SPDX-License-Identifier: Apache-2.0
"""What docs/syscalls.md promises of each probe, and what differs from it.

    promises.py PAGE SKILL

runs the probes on this machine and fails when the page and they do not have the same names: how they
end is a guest's to show (tests/e2e/inside/cases_linux.py).
"""

import json
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

ROW = re.compile(r"^\| (`.*`) \| ([^|]*) \|([^|]*)\|$")
VERDICT = re.compile(r"^(?:works|(denied|absent): (\S.*))$")


class Promise(NamedTuple):
    line: int
    verdict: str
    ending: str


def read(page):
    """Promises by name. ValueError names a line that is none, has no reason, or comes twice."""
    promises = {}
    for number, line in enumerate(pathlib.Path(page).read_text().splitlines(), 1):
        row = ROW.match(line)
        if not row:
            continue
        names, verdict, why = row.groups()
        match = VERDICT.match(verdict.strip())
        if not match:
            raise ValueError(f"line {number}: neither works, denied: … nor absent: …: {verdict}")
        if match[1] and not why.strip():
            raise ValueError(f"line {number}: {match[1]} for no reason")
        for name in re.findall("`([^`]+)`", names):
            if name in promises:
                raise ValueError(f"line {number}: `{name}` is in line {promises[name].line} too")
            promises[name] = Promise(number, verdict.strip(), match[2] or "works")
    return promises


def differences(promises, found):
    """One text for each probe that did not end as promised."""
    texts = [
        f"line {promise.line}: `{name}` {promise.verdict}, but it ended with {found.get(name)!r}"
        for name, promise in promises.items()
        if found.get(name) != promise.ending
    ]
    return texts + [f"`{name}` has no line" for name in found if name not in promises]


def main():
    page, skill = sys.argv[1:]
    promises = read(page)
    run = subprocess.run([sys.executable, skill], check=True, stdout=subprocess.PIPE)
    found = json.loads(run.stdout)
    wrong = [f"`{name}` has no line" for name in found if name not in promises]
    wrong += [f"line {promise.line}: no probe is called `{name}`"
              for name, promise in promises.items() if name not in found]
    # What every Linux has must work on this one: the probe itself is wrong otherwise.
    wrong += [f"`{name}` ended with {ending!r} on this machine" for name, ending in found.items()
              if ending.startswith(("not so", "signal", "not over", "status"))]
    print("\n".join(wrong) or f"{len(found)} probes, each with its line in {page}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
