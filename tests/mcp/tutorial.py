#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/tutorial.md in one shell, as its reader does.

    tutorial.py ROOT [--times]

Every block of sh is run in turn in a folder that looks like a checkout; where a block of output
follows, standard output has to be that. The programs are found by PATH, the daemon by
SKILLVM_SOCKET. --times prints how long each block took, beside its first line.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

END = "--- end of block "
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def blocks(text):
    """(commands, output or None), in turn."""
    found = []
    for kind, body in FENCE.findall(text):
        if kind == "sh":
            found.append([body, None])
        elif kind == "output":
            found[-1][1] = body
    return found


def main(root, times):
    with open(os.path.join(root, "docs", "tutorial.md")) as file:
        todo = blocks(file.read())
    # The programs under test are those in PATH, and not those of the checkout.
    script = "set -eu\n"
    for commands, _ in todo:
        script += commands.replace('eval "$(./dev shell-env)"', "true") + f"echo '{END}'$EPOCHREALTIME\n"
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("dev", "examples"):
            os.symlink(os.path.join(root, name), os.path.join(folder, name))
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, text=True, check=False
        )
    # What each showed, and when it ended.
    shown = re.split(END + r"(\d+\.\d+)\n", done.stdout)
    ends = [begin, *map(float, shown[1::2])]
    shown = shown[::2]
    for at, (commands, expected) in enumerate(todo):
        if at + 1 >= len(shown):
            sys.exit(f"this failed with status {done.returncode}:\n{commands}{shown[-1]}")
        if times:
            print(f"{ends[at + 1] - ends[at]:7.1f} s  {commands.splitlines()[0]}")
        if expected is not None and shown[at] != expected:
            sys.exit(f"of this:\n{commands}expected:\n{expected}but it was:\n{shown[at]}")
    print(f"{len(todo)} blocks of commands")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), "--times" in sys.argv[2:])
