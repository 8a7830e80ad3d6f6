#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for skillvm-jail where the machine is host_vmm.py, a script that runs on this host.

It speaks vmm/jail/jail.h, says that all layers are there, and makes none of them.
"""

import ctypes
import fcntl
import os
import pathlib
import re
import socket
import struct
import sys

HEADER = (pathlib.Path(__file__).resolve().parents[2] / "vmm/jail/jail.h").read_text()
VERSION = int(re.search(r"#define JAIL_VERSION (\d+)u", HEADER)[1])
N_LAYERS = len(re.findall(r"\[JAIL_\w+\] = \"", HEADER))
HELLO = struct.Struct(f"=II{96 * N_LAYERS}x")  # version, layers, why each is missing
REQUEST = struct.Struct("=II8xQ1024s")  # version, wish, memory, arguments
REPLY = struct.Struct("=iiI")  # process, errno, whether memory ended it
LOOK = 1
SYS_CLONE, CLONE_PARENT = 56, 0x8000
FIRST_FD = 5
LAYERS = (1 << N_LAYERS) - 1


def be_machine(program, arguments, fds):
    # Above every number that one of them is to have.
    fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in fds]
    os.dup2(fds[0], 2)
    for number, fd in enumerate(fds[1:], FIRST_FD):
        os.dup2(fd, number)
    os.setpgid(0, 0)
    os.execve(program, arguments, {})


def start(libc, program, request, fds):
    _, wish, _, text = REQUEST.unpack(request)
    if wish == LOOK:
        return REPLY.pack(0, 0, 0)
    arguments = text[:text.index(b"\0\0")].decode().split("\0")
    # The daemon's child, as this process is.
    pid = libc.syscall(SYS_CLONE, CLONE_PARENT, 0, 0, 0, 0)
    if pid == 0:
        try:
            be_machine(program, arguments, fds)
        finally:
            os._exit(127)
    return REPLY.pack(pid, 0, 0)


def main():
    if sys.argv[1:] == ["leave"]:
        return
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    daemon = socket.socket(fileno=int(options["--socket-fd"]))
    program = os.readlink(f"/proc/self/fd/{options['--program-fd']}")
    libc = ctypes.CDLL(None, use_errno=True)
    daemon.send(HELLO.pack(VERSION, LAYERS))
    while True:
        request, fds, _, _ = socket.recv_fds(daemon, REQUEST.size, 8)
        if not request:
            return
        daemon.send(start(libc, program, request, fds))
        for fd in fds:
            os.close(fd)


if __name__ == "__main__":
    main()
