#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same scripts in a plain interpreter and in the zygote and compares all they show.

guest_zygote.py [--warm RECIPE] [--interpreter FILE] ZYGOTE-DIRECTORY [NAME…]

With --warm the zygote has also imported all that the image's recipe lists as worth warming. With
--interpreter it runs in that program, which goes by the plain interpreter's name.

The scripts are in guest_zygote/*.py. Comments in their first lines may say:
  # mode: module | directory | archive   run as `-m NAME`, the directory that holds it, or a
                                         zip archive of it under the name of a script
  # args: A B C                  arguments
  # file: PATH CONTENT           one more file beside it (\\n for line ends)
  # sort: lines                  compare standard output as a set of lines
"""
import argparse
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import zipfile

PYTHON = "/usr/bin/python3.11"
TIMEOUT = 60
INPUT = b'{"rows": [1, 2, 3]}\nsecond line\n'
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest_zygote")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "SKILL_NAME": "probe",
    "TZ": "Asia/Kolkata",
    "WORDS": "caf\u00e9 \udcff",
}


class Probe:
    def __init__(self, path):
        self.name = os.path.basename(path)[:-3]
        self.path = path
        self.mode = "file"
        self.args = []
        self.files = {}
        self.sort = False
        with open(path, encoding="utf-8") as source:
            for line in source:
                match = re.match(r"# (mode|args|file|sort): (.*)", line)
                if not match:
                    break
                self.note(match[1], match[2])

    def note(self, key, value):
        if key == "mode":
            self.mode = value
        elif key == "args":
            self.args = value.split()
        elif key == "sort":
            self.sort = True
        else:
            path, _, content = value.partition(" ")
            self.files[path] = content.replace("\\n", "\n")

    def lay_out(self, directory):
        """Copies the script and its files into a fresh directory. Returns the target."""
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        name = "__main__" if self.mode == "directory" else self.name
        target = os.path.join(directory, name + ".py")
        if self.mode == "archive":
            with zipfile.ZipFile(target, "w") as archive:
                archive.write(self.path, "__main__.py")
        else:
            shutil.copy(self.path, target)
        for path, content in self.files.items():
            full = os.path.join(directory, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as out:
                out.write(content)
        with open(os.path.join(directory, "input"), "wb") as out:
            out.write(INPUT)
        return {"module": self.name, "directory": directory}.get(self.mode, target)


def collect(process):
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return "timeout", out, err
    return process.returncode, out, err


def start(command, environment, directory, cwd, **more):
    with open(os.path.join(directory, "input"), "rb") as stdin:
        return subprocess.Popen(
            command,
            env=environment,
            cwd=cwd,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )


def run_plain(probe, directory):
    target = probe.lay_out(directory)
    command = [PYTHON, *(["-m"] if probe.mode == "module" else []), target, *probe.args]
    return collect(start(command, ENVIRONMENT, directory, directory))


def send(sock, fields):
    message = b"".join(os.fsencode(field) + b"\0" for field in fields)
    sock.sendall(struct.pack("<I", len(message)) + message)


def run_zygote(probe, directory, options, warm):
    """What guest-init/zygote.c does: the same start, the same message."""
    target = probe.lay_out(directory)
    ours, theirs = socket.socketpair()
    environment = {
        "PATH": ENVIRONMENT["PATH"],
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "SANDBOX_OUTPUT": "gone",
        "PYTHONPATH": options.zygote,
    }
    os.set_inheritable(theirs.fileno(), True)
    process = start(
        [PYTHON, "skill"],
        environment,
        directory,
        "/",
        executable=options.interpreter,
        pass_fds=(3, theirs.fileno()),
        preexec_fn=lambda: (os.dup2(theirs.fileno(), 3), os.close(theirs.fileno())),
    )
    theirs.close()
    ready = ours.recv(1) == b"w"
    if ready and warm:
        send(ours, ["warm", *warm])
        ready = ours.recv(1) == b"w"
    if ready:
        fields = ["module" if probe.mode == "module" else "file", directory, target]
        fields += [str(len(probe.args)), *probe.args]
        fields += [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        send(ours, fields)
    ours.close()
    return collect(process)


def plain_text(data, sort):
    text = data.decode("utf-8", "backslashreplace")
    text = re.sub(r"0x[0-9a-f]{6,}", "0xADDRESS", text)
    return "\n".join(sorted(text.split("\n"))) if sort else text


def compare(probe, options, warm, scratch):
    directory = os.path.join(scratch, "skill")
    plain = run_plain(probe, directory)
    zygote = run_zygote(probe, directory, options, warm)
    wrong = []
    for what, a, b in zip(("exit", "stdout", "stderr"), plain, zygote):
        if what != "exit":
            a, b = plain_text(a, probe.sort), plain_text(b, probe.sort)
        if a != b:
            wrong.append(f"  {what} plain:  {a!r}\n  {what} zygote: {b!r}")
    # A probe that dies early in both would agree about nothing.
    if b"probe:" not in plain[1] + plain[2]:
        wrong.append(f"  the probe did not say that it ran: {plain!r}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warm", metavar="RECIPE")
    parser.add_argument("--interpreter", metavar="FILE", default=PYTHON)
    parser.add_argument("zygote", type=os.path.abspath)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = set(options.names)
    warm = []
    if options.warm:
        sys.dont_write_bytecode = True
        from guest_warm import worth_warming

        warm = worth_warming(options.warm)
    if not os.path.exists(PYTHON):
        print(f"skipped: no {PYTHON}")
        return 77
    # Descriptor 3 must be free for the zygote's socket in the children.
    if not os.path.exists("/proc/self/fd/3"):
        os.dup2(os.open("/dev/null", os.O_RDONLY), 3)
    failed = 0
    probes = [Probe(os.path.join(HERE, f)) for f in sorted(os.listdir(HERE)) if f.endswith(".py")]
    with tempfile.TemporaryDirectory() as scratch:
        for probe in probes:
            if names and probe.name not in names:
                continue
            wrong = compare(probe, options, warm, scratch)
            failed += bool(wrong)
            print("FAILED" if wrong else "ok", probe.name)
            print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{len(probes)} probes, {failed} failed")
    return 1 if failed or not probes else 0


if __name__ == "__main__":
    sys.exit(main())
