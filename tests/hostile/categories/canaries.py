# SPDX-License-Identifier: Apache-2.0
"""What is planted in the host, with a random secret each, and whether anybody touched it.

The thread that plants them has a mount and a UTS namespace of its own, and so have the processes that it
starts: nothing of this machine's own is changed. A program is told where they are, and no secret.
"""

import contextlib
import ctypes
import hashlib
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys

from contacts import Servers, Victim, free_port, is_listening
from harness import Beside, Failed

CLONE_NEWNS, CLONE_NEWUTS = 0x20000, 0x4000000
MS_REC_PRIVATE, MS_BIND = 0x4000 | 0x40000, 0x1000
TAKEN_MIB, MEMORY_MIB = 1024, 512
FORKS, PROCESSES = 300, 200
SHARE = 0.3
BUSY_S = 5


def new_secret():
    return "canary-" + secrets.token_hex(16)


def call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        raise Failed(f"{name}: {os.strerror(ctypes.get_errno())}")


def enter_namespaces(host_name):
    """This thread's own; they end with it and the processes that it started."""
    call("unshare", CLONE_NEWNS | CLONE_NEWUTS)
    call("mount", b"none", b"/", None, MS_REC_PRIVATE, None)
    call("sethostname", host_name.encode(), len(host_name))


def available_mib():
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable: *(\d+)", text)[1]) >> 10


def processes():
    return set(filter(str.isdigit, os.listdir("/proc")))


class LeastMemory(Beside):
    """How far the host's available memory falls."""

    def __init__(self):
        super().__init__()
        self.before = self.least = available_mib()

    def look(self):
        self.least = min(self.least, available_mib())

    def run(self):
        while not self.over.wait(0.05):
            self.look()


class Canaries:
    """root: a folder for them. enter_namespaces was called with host_name."""

    def __init__(self, root, host_name):
        self.secrets, self.root = {host_name: "the host's name"}, pathlib.Path(root)
        self.boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        self.secrets[self.boot_id] = "the id of its boot"
        self.objects = self.socket = "/nonexistent"
        self.effects = []
        self.root.mkdir()
        self.plant_files()
        self.plant_programs()
        self.servers = Servers(self.secret("what its servers say"))
        self.free_port = free_port()
        self.process = self.start_process()
        self.environment = {"CANARY": self.secret("a variable")}
        self.digests = self.digest_files()

    def secret(self, what):
        made = new_secret()
        self.secrets[made] = what
        return made

    def start_process(self):
        """One that says again what it is told."""
        name = self.secret("a process's name")
        return subprocess.Popen([name], executable=shutil.which("cat"), bufsize=0,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end_process(self):
        self.process.kill()
        self.process.communicate()

    def lives(self):
        """Whether the process does. It says nothing any more once a signal that ends it was sent, however late it
        ends."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b".")
            return self.process.stdout.read(1) == b"."
        return False

    def plant(self, path, what, text="{}\n"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(self.secret(what)))
        return path

    def plant_files(self):
        home, at = self.root / "home" / "keeper", self.root / "etc" / "passwd"
        accounts = pathlib.Path("/etc/passwd").read_text().replace("{", "{{").replace("}", "}}")
        self.passwd = self.plant(at, "an account", f"{accounts}keeper:x:77:77:{{}}:{home}:/bin/sh\n")
        call("mount", bytes(at), b"/etc/passwd", None, MS_BIND, None)
        key = "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"
        self.ssh_key = self.plant(home / ".ssh" / "id_ed25519", "a key", key)
        self.tmp = pathlib.Path("/tmp", f"skillvm-{secrets.token_hex(4)}")
        self.plant(self.tmp / "notes", "a file in /tmp")
        self.traversal = self.plant(self.root / "deep" / "below" / "file", "a file")
        self.file = self.plant(self.root / "file", "another file")
        self.folder = self.root / "folder"
        (self.folder / self.secret("a folder's name")).mkdir(parents=True)
        source = 'SECRET = "{}"\n'
        self.module = self.plant(self.root / "modules" / "canary_module.py", "a module", source)

    def plant_programs(self):
        self.record = self.root / "record"
        self.record.write_text("")
        script = f"#!/bin/sh\necho run >>{self.record}\necho {{}}\n"
        self.program = self.plant(self.root / "program", "a program", script)
        self.program.chmod(0o755)

    def digest_files(self):
        paths = sorted([*self.root.rglob("*"), *self.tmp.rglob("*")])
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
                for path in paths}

    def given(self, category):
        """What its program is told."""
        paths = ("passwd", "ssh_key", "tmp", "traversal", "folder", "program", "record", "module",
                 "objects", "socket")
        return {
            "category": category,
            **{name: str(getattr(self, name)) for name in paths},
            "secret": str(self.file),
            "modules": str(self.module.parent),
            "http": self.servers.web.getsockname()[1],
            "port": self.servers.bare.getsockname()[1],
            "dns": self.servers.dns_address,
            "name": "host.canary.test",
            "free_port": self.free_port,
            "word": "hello",
            "pid": self.process.pid,
            "memory_mib": TAKEN_MIB,
            "forks": FORKS,
            "spinners": 16 * len(os.sched_getaffinity(0)),
        }

    def when_ready(self, category):
        """Looks at the host while a program holds what it took."""
        if category == "memory":
            # Its thread may be late, and all is given back when this returns.
            self.memory.look()
        if category == "listen" and is_listening(self.free_port):
            self.effects.append("its server was reached from the host")
        more = len(processes() - self.processes)
        if category == "fork" and more >= PROCESSES:
            self.effects.append(f"{more} processes more")
        if category == "cpu":
            # What else the host does may be in one's way for a while.
            share = max(self.share() for _ in range(3))
            said = f"another process had {share:.0%} of its processor"
            print(f"  {said}", flush=True)
            if share < SHARE:
                self.effects.append(said)

    def share(self):
        with contextlib.closing(Victim([sys.executable, "-c", "while True: pass"])) as victim:
            return victim.share(BUSY_S)

    def watch(self, category, start):
        """start(when_ready) runs a program; (what it gave, the effects on the host)."""
        self.effects, self.processes = [], processes()
        self.servers.seen.clear()
        with LeastMemory() as self.memory:
            run = start(lambda: self.when_ready(category))
        taken = self.memory.before - self.memory.least
        if category == "memory" and taken > MEMORY_MIB:
            self.effects.append(f"{taken} MiB of memory were taken")
        return run, self.effects + self.look(run)

    def look(self, run):
        """What of all this was touched. A process that was ended is there again for the next program."""
        found = [f"{what} was told" for secret, what in self.secrets.items() if secret in run.all]
        found += sorted(set(self.servers.seen))
        if not self.lives():
            found.append("the process was ended")
            self.end_process()
            self.process = self.start_process()
        digests = self.digest_files()
        if digests != self.digests:
            changed = dict(digests.items() ^ self.digests.items())
            found += [f"{pathlib.Path(path).name} was changed" for path in sorted(changed)]
            self.digests = digests
        return found

    def close(self):
        self.end_process()
        self.servers.close()
        shutil.rmtree(self.tmp, ignore_errors=True)
