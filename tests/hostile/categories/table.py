# SPDX-License-Identifier: Apache-2.0
"""The categories, and their table in docs/security.md, made of what a run of them said.

    table.py --write PAGE < OUTPUT     puts the results of OUTPUT into the page's table
    table.py --check PAGE              fails where the page's rows are not those of the categories
"""

import argparse
import pathlib
import re
import sys
from collections import namedtuple

BEGIN = "<!-- categories: made by tests/hostile/categories/table.py -->"
END = "<!-- end of categories -->"
SANDBOXES = ("skillvm", "python3", "bubblewrap", "crun")
OUTCOMES = ("blocked", "open")

# ends: how a run of its program may end, beside by itself ("exit 0"). limits: what a skill is limited to.
Category = namedtuple("Category", "group title tries canary ends limits", defaults=((), {}))

CATEGORIES = {
    "passwd": Category(
        "files", "passwd", "reads the accounts", "an account with a secret in its name",
    ),
    "ssh_keys": Category(
        "files", "ssh keys", "reads the keys of every home", "a key in the home of an account",
    ),
    "tmp": Category(
        "files", "/tmp", "searches the folders for temporary files", "a file in `/tmp`",
    ),
    "traversal": Category(
        "files", "traversal", "goes up by `..`, `/proc` and links, into the daemon's objects, "
        "into another tenant's session by its name", "a file; another tenant's file, skill and session",
    ),
    "listing": Category("files", "listing", "lists folders", "a folder of secret names"),
    "http": Category(
        "network", "HTTP", "asks servers of the host's, and by vsock",
        "a web server and a port, which note each contact",
    ),
    "dns": Category("network", "DNS", "asks for a name", "a DNS server, which notes each question"),
    "listen": Category(
        "network", "listen", "waits at a port of all addresses",
        "the port, which the host tries to connect to", ("stopped",),
    ),
    "system": Category(
        "process", "system", "runs commands of the host's", "a program that notes each run",
    ),
    "subprocess": Category("process", "subprocess", "the same without a shell", "the same"),
    "list": Category("process", "list", "looks for processes", "a process with a secret name"),
    "kill": Category("process", "kill", "ends a process by its number", "the same, which must live"),
    "memory": Category(
        "resources", "memory", "takes 1 GiB, in a skill whose limit is 64 MiB",
        "the host's available memory, which may fall by 512 MiB", ("stopped", "out of memory"),
        {"memory": "64Mi"},
    ),
    "fork": Category(
        "resources", "fork", "starts 300 processes",
        "the number of the host's processes, which may grow by 200", ("stopped",),
    ),
    "cpu": Category(
        "resources", "CPU", "starts processes that never wait, 16 for each processor",
        "a process that wants a processor, and must get 30 % of it", ("stopped",),
    ),
    "import": Category("code", "import", "imports a module of the host's", "that module"),
    "eval": Category("code", "eval", "evaluates code that reads a file", "that file"),
    "builtins": Category(
        "code", "builtins", "finds `open` and `popen` by other names", "the same",
    ),
    "env": Category(
        "leakage", "env", "reads the environments of all processes",
        "a variable of the daemon's, and of who starts the others",
    ),
    "host": Category(
        "leakage", "system", "asks for the system's names", "the host's name, and the id of its boot",
    ),
}


def result_line(category, sandbox, outcome):
    """One line of a run's output; results() reads it."""
    return f"category {category}: {sandbox} {outcome}"


def results(text):
    """{category: {sandbox: outcome}} of a run's output."""
    found = {}
    for category, sandbox, outcome in re.findall(r"category (\w+): (\w+) (\w+)", text):
        found.setdefault(category, {})[sandbox] = outcome
    return found


def rows(found):
    """The table's lines."""
    lines = [
        "| | it tries | the host's canary | " + " | ".join(SANDBOXES) + " |",
        "|---|---|---|" + "---|" * len(SANDBOXES),
    ]
    for name, c in CATEGORIES.items():
        outcomes = [found.get(name, {}).get(sandbox, "–") for sandbox in SANDBOXES]
        lines.append(f"| {c.group}: {c.title} | {c.tries} | {c.canary} | " + " | ".join(outcomes) + " |")
    return lines


def between(text):
    """What stands between the marks of a page, and what before and after."""
    head, begin, rest = text.partition(BEGIN + "\n")
    body, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no place for the table of categories")
    return head + begin, body, end + tail


def told(text):
    """{category: {sandbox: outcome}} as a page has it. ValueError where a row is not one of ours."""
    lines = between(text)[1].splitlines()
    found = {}
    for name, line in zip(CATEGORIES, lines[2:]):
        cells = line.split(" | ")[-len(SANDBOXES):]
        found[name] = dict(zip(SANDBOXES, (cell.rstrip(" |") for cell in cells)))
    for line, expected in zip(lines, rows(found)):
        if line != expected:
            raise ValueError(f"the page has the row {line!r} where the categories make {expected!r}")
    if len(lines) != len(CATEGORIES) + 2:
        raise ValueError(f"the page has {len(lines) - 2} rows for {len(CATEGORIES)} categories")
    for name, outcomes in found.items():
        for sandbox, outcome in outcomes.items():
            if outcome not in OUTCOMES:
                raise ValueError(f"the page says {outcome!r} of {name} and {sandbox}")
    return found


def differences(page, found):
    """What a page says and a run did not find; of sandboxes that the run did not try nothing."""
    said = told(page)
    return [
        f"{name}: {sandbox} is {outcome}, and the page says {said[name][sandbox]}"
        for name, outcomes in found.items()
        for sandbox, outcome in outcomes.items()
        if said[name][sandbox] != outcome
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    options = parser.parse_args()
    if options.check:
        told(options.check.read_text())
    if options.write:
        head, _, tail = between(options.write.read_text())
        table = "\n".join(rows(results(sys.stdin.read())))
        options.write.write_text(f"{head}{table}\n{tail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
