#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for skillvm-vmm that runs a skill as a process of this machine.

For tests of what is above the machine, with skills that are ours: it isolates nothing. It
speaks vmm/control.h to the daemon and guest-init/proto.h as the guest would, and gives a skill
the folders and variables of docs/skill-contract.md below a temporary folder.
"""

import array
import io
import os
import resource
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

VERSION = 2
RESUMED, CONNECTED, SNAPSHOT, RESET = 1, 2, 3, 6
WAKE, RUN, SKILL, INPUT, FILES_IN, CANCEL = range(1, 7)
READY, STARTED, STDOUT, STDERR, EXIT, OUTPUT, FILES, DONE = range(0x81, 0x89)
TIMED_OUT, CANCELLED = 1, 2
CHUNK = 65536


def event(control, kind):
    control.send(struct.pack("<IIQQ256s", VERSION, kind, time.monotonic_ns(), 0, b""))


class Guest:
    """The frames of one connection."""

    def __init__(self, fd):
        self.socket = socket.socket(fileno=fd)

    def send(self, kind, data=b""):
        self.socket.sendall(struct.pack("<IBBH", len(data), kind, 0, 0) + data)

    def send_chunks(self, kind, data):
        for at in range(0, len(data), CHUNK):
            self.send(kind, data[at : at + CHUNK])
        self.send(kind)

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def receive(self):
        length, kind, _, _ = struct.unpack("<IBBH", self.read(8))
        return kind, self.read(length)

    def receive_chunks(self, expected):
        data = b""
        while True:
            kind, part = self.receive()
            assert kind == expected, (kind, expected)
            if not part:
                return data
            data += part


def fields(run):
    """RUN's fields: tag to the list of its values."""
    found = {}
    while run:
        tag, _, length = struct.unpack_from("<HHI", run)
        found.setdefault(tag, []).append(run[8 : 8 + length])
        run = run[8 + length :]
    return found


def text(found, tag, default=""):
    return found[tag][0].decode() if tag in found else default


def number(found, tag):
    return int.from_bytes(found[tag][0], "little") if tag in found else 0


def unpack(data, folder):
    os.makedirs(folder, exist_ok=True)
    if data:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(folder)


def command(found, skill):
    lang, entry = text(found, 1, "python"), text(found, 3)
    program = {"python": "python3", "bash": "bash", "node": "node"}[lang]
    mode = number(found, 2)
    what = ["-m", entry] if mode == 2 else [entry if mode == 1 else os.path.join(skill, entry)]
    return [program, *what, *(arg.decode() for arg in found.get(4, []))]


def environment(found, box, data):
    variables = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": os.path.join(box, "tmp"),
        "LANG": "C.UTF-8",
        "SANDBOX_OUTPUT": os.path.join(box, "out", "output.json"),
        "SANDBOX_FILES_DIR": os.path.join(box, "out", "files", ""),
        "SANDBOX_INPUT_DIR": os.path.join(box, "in", ""),
        "SKILL_INSTRUCTIONS": text(found, 13),
        "SKILL_NAME": text(found, 14),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if len(data) < 128 * 1024:
        variables["SANDBOX_INPUT"] = data.decode()
    for value in found.get(5, []):
        name, _, content = value.decode().partition("=")
        variables[name] = content
    return variables


def follow(guest, child, deadline):
    """Passes output on until the process and its output have ended. The flags of EXIT."""
    flags = 0
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ, STDOUT)
        selector.register(child.stderr, selectors.EVENT_READ, STDERR)
        selector.register(guest.socket, selectors.EVENT_READ, CANCEL)
        open_streams = 2
        while open_streams:
            left = max(0, deadline - time.monotonic())
            ready = selector.select(left)
            if not ready or left == 0:
                flags |= TIMED_OUT
                os.killpg(child.pid, signal.SIGKILL)
                deadline = time.monotonic() + 10
            for key, _ in ready:
                if key.data == CANCEL:
                    kind, _ = guest.receive()
                    assert kind == CANCEL
                    flags |= CANCELLED
                    os.killpg(child.pid, signal.SIGKILL)
                    selector.unregister(guest.socket)
                    continue
                data = os.read(key.fd, CHUNK)
                if data:
                    guest.send(key.data, data)
                else:
                    selector.unregister(key.fileobj)
                    open_streams -= 1
    return flags


def artifacts(out):
    """The files below out as a tar, those of out/files without that folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder, _, names in os.walk(out):
            for name in names:
                path = os.path.join(folder, name)
                below = os.path.relpath(path, out)
                if below == "output.json" or os.path.islink(path):
                    continue
                tar.add(path, below.removeprefix("files/"), recursive=False)
    return packed.getvalue()


def execute(guest, found, skill_tar, data, files_tar):
    box = tempfile.mkdtemp(prefix="skillvm-stand-in.")
    try:
        skill = os.path.join(box, "skill")
        unpack(skill_tar, skill)
        unpack(files_tar, os.path.join(box, "in"))
        os.makedirs(os.path.join(box, "out", "files"))
        os.makedirs(os.path.join(box, "tmp"))
        with open(os.path.join(box, "input.json"), "wb") as file:
            file.write(data)
        began = time.monotonic()
        guest.send(STARTED)
        with open(os.path.join(box, "input.json"), "rb") as stdin:
            child = subprocess.Popen(
                command(found, skill),
                cwd=box if number(found, 2) == 0 else skill,
                env=environment(found, box, data),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        flags = follow(guest, child, began + number(found, 6) / 1000)
        status = child.wait()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = time.monotonic() - began
        output = b""
        if os.path.isfile(os.path.join(box, "out", "output.json")):
            with open(os.path.join(box, "out", "output.json"), "rb") as file:
                output = file.read()
        files = artifacts(os.path.join(box, "out"))
    finally:
        # The daemon kills this process as soon as it has what it wants.
        shutil.rmtree(box, ignore_errors=True)
    guest.send(
        EXIT,
        struct.pack(
            "<IIIIQQQQ",
            max(status, 0),
            max(-status, 0),
            flags,
            0,
            int(usage.ru_utime * 1e6),
            int(usage.ru_stime * 1e6),
            usage.ru_maxrss * 1024,
            int(took * 1e6),
        ),
    )
    guest.send_chunks(OUTPUT, output)
    guest.send_chunks(FILES, files)
    guest.send(DONE)


def receive_fds(control, most):
    fds = array.array("i")
    _, ancillary, _, _ = control.recvmsg(8, socket.CMSG_LEN(most * fds.itemsize))
    for _, _, content in ancillary:
        fds.frombytes(content)
    return fds


def restore(options):
    control = socket.socket(fileno=options["control-fd"])
    guest = Guest(options["vsock-fd"])
    event(control, RESUMED)
    run_one(options, control, guest)
    while "reusable" in options:
        guest = Guest(receive_fds(control, 1)[0])
        event(control, RESET)
        run_one(options, control, guest)
    signal.pause()


def run_one(options, control, guest):
    event(control, CONNECTED)
    guest.send(READY, struct.pack("<I", VERSION))
    kind, _ = guest.receive()
    assert kind == WAKE
    kind, run = guest.receive()
    assert kind == RUN
    found = fields(run)
    skill, data, files = (guest.receive_chunks(kind) for kind in (SKILL, INPUT, FILES_IN))
    execute(guest, found, skill, data, files)
    if "record-fd" in options:
        control.recv(8)
        os.write(options["record-fd"], b"pages")
        sys.exit(0)


def boot(options):
    control = socket.socket(fileno=options["control-fd"])
    guest = Guest(options["vsock-fd"])
    event(control, RESUMED)
    event(control, CONNECTED)
    guest.send(READY, struct.pack("<I", VERSION))
    while guest.socket.recv(1):
        pass
    fds = receive_fds(control, 2)
    os.write(fds[0], b"a state")
    os.truncate(fds[1], 1 << 20)
    os.pwrite(fds[1], b"a page", 0)
    event(control, SNAPSHOT)


def main(arguments):
    if arguments == ["fingerprint"]:
        print("no cpu")
        return
    if arguments[:1] == ["probe"]:
        print("result=usable")
        return
    options, verb = {}, None
    rest = iter(arguments)
    for argument in rest:
        if argument == "--reusable":
            options["reusable"] = 1
        elif argument.startswith("--"):
            options[argument[2:]] = int(next(rest))
        else:
            verb = argument
    {"boot": boot, "restore": restore}[verb](options)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (EOFError, BrokenPipeError, ConnectionResetError):
        sys.exit(1)
