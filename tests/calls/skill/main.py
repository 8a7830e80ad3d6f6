# SPDX-License-Identifier: Apache-2.0
"""Runs the probes beside this script, and tries what the C library looks up in files."""

import curses
import errno
import grp
import json
import locale
import os
import pathlib
import pwd
import socket
import subprocess


def own_name():
    return socket.gethostbyname(socket.gethostname())


LOOKED_UP = {
    "localhost by name": lambda: socket.getaddrinfo("localhost", 80),
    "the machine's own name": own_name,
    "another machine by name": lambda: socket.getaddrinfo("example.org", 80),
    "services by name": lambda: socket.getservbyname("https", "tcp"),
    "protocols by name": lambda: socket.getprotobyname("udp"),
    "the user by number": lambda: pwd.getpwuid(os.getuid()),
    "the group by number": lambda: grp.getgrgid(os.getgid()),
    "the locale C.UTF-8": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "the locale en_US.UTF-8": lambda: locale.setlocale(locale.LC_ALL, "en_US.UTF-8"),
    "terminals by name": lambda: curses.setupterm("xterm-256color", 1),
}


def outcome(look_up):
    try:
        look_up()
    except socket.gaierror as problem:
        return next(name for name in dir(socket) if getattr(socket, name) == problem.errno
                    and name.startswith("EAI_"))
    except OSError as problem:
        return errno.errorcode.get(problem.errno, "not found")
    except (KeyError, locale.Error, curses.error):
        return "not found"
    return "works"


program = os.environ.get("GUEST_CALLS") or pathlib.Path(__file__).with_name("guest-calls")
found = json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout)
found |= {name: outcome(look_up) for name, look_up in LOOKED_UP.items()}
if "SANDBOX_OUTPUT" in os.environ:
    pathlib.Path(os.environ["SANDBOX_OUTPUT"]).write_text(json.dumps(found))
else:
    print(json.dumps(found))
