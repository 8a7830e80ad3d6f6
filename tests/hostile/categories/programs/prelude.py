# SPDX-License-Identifier: Apache-2.0
"""Stands before each program, after a line that sets GIVEN: what an attacker may know of the host.

Each line that a program prints is a JSON list: ["begin", category], ["got" or "refused", [attempt,
what]], ["ready", null] where it holds what it took until it is stopped, ["end", null]. What the
system refuses is an OSError; any other exception is a fault of the program's.
"""

import errno
import json
import os
import re
import sys
import time

sys.dont_write_bytecode = True
TEXT_MAX = 16384
CANARY = re.compile(r"canary-[0-9a-f]{32}")


def say(kind, what=None):
    print(json.dumps([kind, what]), flush=True)


def begin():
    say("begin", GIVEN["category"])


def end():
    say("end")


def attempt(name, function):
    """What it gave, or None where the system refused; told either way."""
    try:
        got = function()
    except OSError as problem:
        say("refused", [name, errno.errorcode.get(problem.errno, type(problem).__name__)])
        return None
    say("got", [name, str(got)[:TEXT_MAX]])
    return got


def read(path):
    with open(path, errors="replace") as file:
        return file.read(TEXT_MAX)


def marked(text):
    """What in a text looks like one of the host's secrets."""
    return sorted(set(CANARY.findall(text)))


def marked_below(top, deep=3):
    """The same of all names and small files below a folder."""
    os.listdir(top)
    found = []
    for folder, folders, files in os.walk(top):
        if folder.count("/") - top.count("/") >= deep:
            folders.clear()
        for name in folders + files:
            found += marked(name)
        for name in files:
            found += marked_in(os.path.join(folder, name))
    return found


def marked_in(path):
    """Of one file, where there is one and it can be read."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > 65536:
            return []
        return marked(read(path))
    except OSError:
        return []


def hold():
    """Until it is told to stop, where anybody can, or ended."""
    say("ready")
    if "stop\n" not in iter(sys.stdin.readline, ""):
        time.sleep(100)
