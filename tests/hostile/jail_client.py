# SPDX-License-Identifier: Apache-2.0
"""What the daemon is to skillvm-jail: has machines started by it. Messages as in vmm/jail/jail.h.

As a program it starts one and says its number, how it ended, and, once it may go on by a line, whether for
memory; by another line it starts one more in its cell: jail_client.py JAIL PROGRAM MEMORY_MAX ARGUMENT…; with
--alone first, by one that has cgroups alone; with --restart, by such a one that is killed, and it says how it had ended
when there was another.
"""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time

VERSION = 5
START, LOOK = range(2)
TEXT_MAX = 1024
# Those that it makes; Landlock is the machine's own.
LAYERS = ("namespaces", "root", "users", "limits")
ALL = (1 << len(LAYERS)) - 1
LIMITS = 1 << LAYERS.index("limits")
# Those that a machine has of the jail, and the first one that a request chooses.
GIVEN_FDS = {"kvm": 3, "proc": 4}
FIRST_FD = 5
# api/daemon/machine/vm.c
LOG_BYTES = 4096
OVERHEAD = 64 << 20
F_SETPIPE_SZ = 1031


def memory_max(guest_bytes, folder):
    """What the daemon lets a machine have whose files are there: twice as much for its guest where they are in memory."""
    in_memory = subprocess.run(["stat", "-fc", "%T", folder], capture_output=True, text=True,
                               check=True).stdout == "tmpfs\n"
    return guest_bytes * (2 if in_memory else 1) + OVERHEAD


def make_log():
    """A pipe for its standard error: (for the daemon, for the machine)."""
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    fcntl.fcntl(theirs, F_SETPIPE_SZ, LOG_BYTES)
    return ours, theirs


class Jail:
    """Its machines are this process's children."""

    def __init__(self, jail, program, layers=ALL):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        machine = os.open(program, os.O_RDONLY)
        self.process = subprocess.Popen(
            [jail, "--socket-fd", str(theirs.fileno()), "--program-fd", str(machine)]
            + ["--layers", str(layers)], pass_fds=(theirs.fileno(), machine))
        theirs.close()
        os.close(machine)
        _, self.layers = struct.unpack_from("=II", self.socket.recv(4096))

    def start(self, cell, memory_max, arguments, fds):
        """fds: standard error, and those from FIRST_FD on. (number, error)."""
        text = b"".join(str(argument).encode() + b"\0" for argument in arguments)
        return self.ask(START, cell, memory_max, text, fds)[:2]

    def look(self, cell):
        """Whether memory ended its machine: 0, 1 its own limit, 2 that of the host."""
        return self.ask(LOOK, cell)[2]

    def ask(self, wish, cell, memory_max=0, text=b"", fds=()):
        request = struct.pack(f"=IIIIQ{TEXT_MAX}s", VERSION, wish, cell, 0, memory_max, text)
        socket.send_fds(self.socket, [request], fds)
        return struct.unpack("=iiI", self.socket.recv(64))

    def close(self):
        self.socket.close()
        self.process.wait()


def main():
    restarts = sys.argv[1] == "--restart"
    alone = restarts or sys.argv[1] == "--alone"
    jail, program, memory, *arguments = sys.argv[1 + alone :]
    layers = LIMITS if alone else ALL
    opened = Jail(jail, program, layers)
    print("layers", opened.layers, flush=True)

    def start():
        pid, error = opened.start(0, int(memory), arguments, [os.open("/dev/null", os.O_RDWR)])
        print("started", pid, error, flush=True)
        return pid

    pid = start()
    if restarts:
        opened.process.send_signal(signal.SIGKILL)
        opened.close()
        print("layers", Jail(jail, program, layers).layers, flush=True)
    # Which has ended, where a second one began, but may be a moment from being waited for: a long
    # one on a busy machine.
    ended, until = 0, time.monotonic() + 60
    while not ended:
        ended, status = os.waitpid(pid, os.WNOHANG if restarts else 0)
        if time.monotonic() > until:
            break
        time.sleep(0 if ended else 0.01)
    print("ended", status, flush=True)
    if not restarts:
        sys.stdin.readline()
        print("memory", opened.look(0), flush=True)
        if sys.stdin.readline():
            start()
            sys.stdin.readline()


if __name__ == "__main__":
    main()
