# SPDX-License-Identifier: Apache-2.0
"""Has tests/hostile/taken, a VMM that was taken over, try one thing after the other, and looks at the host.

It is the daemon: skillvm-jail starts the machine for it from a snapshot, with layers or without. What
counts is what the host shows afterwards (a secret was told, a server was contacted, the process has
something that it had not before), not what an attempt says of itself.

    taken_driver.py JAIL TAKEN SNAPSHOT FOLDER [each]

prints {layers: {attempt: [how, effects]}} as JSON: with all layers and with none, or with each of them
left out and alone as well.
"""

import array
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).with_name("categories")))
sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "e2e" / "inside"))

import jail_client  # noqa: E402
import taken_table  # noqa: E402
from canaries import enter_namespaces, new_secret  # noqa: E402
from contacts import free_port  # noqa: E402

MIB = 1 << 20
READY, RESULT = 100, 101
# An emulated machine on a busy one.
TIMEOUT_S = 120
CONTROL_FD, STREAM_FD = 5, 6
# What the machine may have, and what it tries to get.
MEMORY_MAX, TAKE_BYTES = 40 * MIB, 48 * MIB
PROCESSES_MAX, TAKE_PROCESSES = 16, 40
DESCRIPTORS_MAX, TAKE_DESCRIPTORS = 32, 100
LOG_MAX, TAKE_LOG = 1 << 16, 1 << 18
TAKE_DISK = 4 * MIB

# vmm/harden.h, as numbers of taken/taken.h; then what the daemon gives; then what skillvm-jail gives up
# before it starts anything, and the layers of vmm/jail/jail.h.
VMM = {"filter": 1, "Landlock": 2, "capabilities": 4, "rlimits": 8, "process": 16}
GIVEN = "descriptors"
JAIL = {name: 1 << i for i, name in enumerate(jail_client.LAYERS)}
LAYERS = (*VMM, GIVEN, taken_table.LAUNCHER, *JAIL)
NEEDS = taken_table.NEEDS

# What a machine keeps that another attempt would stumble over, or be taken for.
SPOILS = {"its server was reached", "a process is traced",
          *(f"its {fact} changed" for fact in ("namespaces", "root", "program", "user", "processes",
                                               "number of descriptors", "memory"))}
# What another machine reads meanwhile that has just been started.
CHANGES_FILES = {"write", "map", "disk"}
# Cells: of somebody else's machine, of the one that tries, and of the next.
OTHER, FIRST, SECOND = range(3)

# How a machine is started: the command, and what it is given behind the stream.
RESTORED = ("image", "state", "memory")
SCOPES = {
    "reusable": (["restore", "--reusable"], RESTORED),
    "once": (["restore"], RESTORED),
    "boot": (["boot", "--memory-mib", 32], ("image", "kernel")),
}
FILES = {"image": "disk", "kernel": "hostile-guest"}

# What of the effects counts, where it has others that are its own affair.
COUNTS = {"listen": {"its server was reached"}, "descriptors": {"its number of descriptors changed"}}
PR_CAPBSET_DROP, CAPABILITIES = 24, 41


def libc(name, *args):
    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, name)
    function.restype = ctypes.c_long
    result = function(*args)
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def drop_capabilities():
    """Of all programs that this process executes: what remains is another process of the same user."""
    for capability in range(CAPABILITIES):
        libc("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)


class NoJail:
    """Starts machines without skillvm-jail: with all rights of this process."""

    def __init__(self, program):
        self.program = program

    def start(self, _cell, _memory_max, arguments, fds):
        given = [fds[0], os.open("/dev/kvm", os.O_RDWR), os.open("/proc", os.O_PATH), *fds[1:]]
        # Above the numbers that the machine has them by.
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in given]
        actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(moved, 2)]
        pid = os.posix_spawn(self.program, [str(word) for word in arguments], {}, file_actions=actions)
        for fd in (*given[1:3], *moved):
            os.close(fd)
        return pid, 0

    def close(self):
        pass


class Host:
    """What lies in the host for who gets out. Secrets are told to nobody."""

    def __init__(self, folder, snapshot):
        self.folder, self.secrets, self.snapshot = pathlib.Path(folder), [], pathlib.Path(snapshot)
        self.folder.chmod(0o755)
        self.name = socket.gethostname()
        self.secret_file = self.folder / "secret"
        self.secret_file.write_text(self.secret())
        # Where anybody may make a file.
        self.open_folder = self.folder / "open"
        self.open_folder.mkdir()
        self.open_folder.chmod(0o1777)
        self.listeners = {
            "abstract": self.listen(socket.AF_UNIX, "\0" + new_secret()),
            "socket-file": self.listen(socket.AF_UNIX, str(self.folder / "socket")),
            "connect": self.listen(socket.AF_INET, ("127.0.0.1", 0)),
        }
        (self.folder / "socket").chmod(0o666)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.udp.bind(("127.0.0.1", 0))
        self.free_port = free_port()
        self.share_memory()
        self.add_key()
        self.process = None
        self.digest = self.begin_of_files()

    def secret(self):
        self.secrets.append(new_secret())
        return self.secrets[-1]

    @staticmethod
    def listen(family, address):
        listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        listener.bind(address)
        listener.listen(64)
        return listener

    def share_memory(self):
        self.memory_key = os.getpid()
        self.memory_id = libc("shmget", self.memory_key, 4096, 0o1666)
        address = libc("shmat", self.memory_id, None, 0)
        ctypes.memmove(address, self.secret().encode() + b"\0", 48)

    def add_key(self):
        """Its owner may read it, whatever keyring he has."""
        content = self.secret().encode()
        self.key = libc("syscall", 248, b"user", new_secret().encode(), content, len(content), -4)
        libc("syscall", 250, 5, self.key, 0x3F3F0000, 0, 0)

    def start_process(self):
        """One of the daemon's own, with a secret in its environment, and one in a file that has no name."""
        environment = {"CANARY": self.secret()}
        held = self.folder / "held"
        held.write_text(self.secret())
        with held.open() as file:
            self.process = subprocess.Popen(["/bin/sleep", "1000000"], env=environment, stdin=file,
                                            preexec_fn=drop_capabilities)
        held.unlink()
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        # Field 50, counted from 1, the third being the first here.
        self.environment_at = int(stat[47])

    def files(self):
        return [self.snapshot / name for name in ("disk", "state", "memory")]

    def begin_of_files(self):
        found = []
        for path in self.files():
            with path.open("rb") as file:
                found.append((file.read(64), path.stat().st_size))
        return found

    def put_files_back(self):
        for path, (begin, size) in zip(self.files(), self.digest, strict=True):
            os.truncate(path, size)
            with path.open("r+b") as file:
                file.write(begin)

    def is_listening(self):
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.connect(("127.0.0.1", self.free_port))
            return True
        return False

    def _contacts(self):
        for name, listener in self.listeners.items():
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                yield f"contact: {name}"
        with contextlib.suppress(BlockingIOError):
            self.udp.recv(64)
            yield "contact: send"
        if self.is_listening():
            yield "its server was reached"

    def look(self, said):
        """What was touched; it is put back."""
        found = [*self._contacts()]
        if any(secret in said for secret in self.secrets):
            found.append("a secret was told")
        if self.process.poll() is not None:
            found.append("a process was ended")
            self.start_process()
        if "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{self.process.pid}/status").read_text():
            found.append("a process is traced")
        if self.begin_of_files() != self.digest:
            found.append("the snapshot was changed")
            self.put_files_back()
        for path in self.open_folder.iterdir():
            found.append("a file was made")
            path.unlink()
        if os.path.ismount(self.folder / "open"):
            found.append("a mount")
            libc("umount2", bytes(self.open_folder), 2)
        if socket.gethostname() != self.name:
            found.append("the host's name was changed")
            socket.sethostname(self.name)
        return found

    def close(self):
        libc("shmctl", self.memory_id, 0, None)
        self.process.kill()
        self.process.wait()


class Machine:
    """One process of a machine, which tries what it is told, once it is ready."""

    def __init__(self, jail, cell, snapshot, off, scope):
        self.cell, self.is_ready, self.known = cell, False, None
        self.control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stream, stream = socket.socketpair()
        self.control.settimeout(TIMEOUT_S)
        given = GIVEN not in off
        self.log, log = self.make_log(snapshot, given)
        options, names = SCOPES[scope]
        files = [os.open(snapshot / FILES.get(name, name), os.O_RDONLY if given else os.O_RDWR)
                 for name in names]
        command = ["skillvm-vmm", sum(VMM[layer] for layer in off if layer in VMM), *options]
        for fd, name in enumerate(("kvm", "proc", "control", "vsock", *names), 3):
            command += [f"--{name}-fd", fd]
        fds = [log, control.fileno(), stream.fileno(), *files]
        self.pid, error = jail.start(cell, MEMORY_MAX, command, fds)
        for fd in (log, *files):
            os.close(fd)
        control.close()
        stream.close()
        if error:
            raise OSError(error, "a machine could not be started")

    def ready(self):
        """Itself, when it is restored and hardened."""
        if not self.is_ready:
            kind, self.number, self.address, said = self.receive() or (0, 0, 0, "")
            if kind != READY:
                raise RuntimeError(f"the machine did not start: {said} {self.read_log()}")
            self.is_ready = True
        return self

    @staticmethod
    def make_log(snapshot, given):
        """Standard error, from both ends: the daemon's pipe (vm.c), or a file instead."""
        if given:
            return jail_client.make_log()
        path = snapshot / "log"
        path.write_bytes(b"")
        return os.open(path, os.O_RDONLY), os.open(path, os.O_WRONLY | os.O_APPEND)

    def read_log(self):
        with contextlib.suppress(OSError):
            return os.read(self.log, jail_client.LOG_BYTES)
        return b""

    def log_bytes(self):
        if os.fstat(self.log).st_size:
            return os.fstat(self.log).st_size
        waiting = array.array("i", [0])
        fcntl.ioctl(self.log, termios.FIONREAD, waiting)
        return waiting[0]

    def receive(self):
        """(type, time, value, message); None where there is nobody any more."""
        message = self.control.recv(4096)
        if not message:
            return None
        if len(message) < 24:
            return RESULT, 0, 0, message.decode()
        _, kind, moment, value = struct.unpack_from("<IIQQ", message)
        return kind, moment, value, message[24:].partition(b"\0")[0].decode(errors="replace")

    def ask(self, **given):
        """What came of an attempt: 0, an errno's name or a signal's, and what it told."""
        self.control.send("".join(f"{key.replace('_', '-')}={value}\n" for key, value in given.items()).encode())
        answer = self.receive()
        if answer:
            return errno.errorcode.get(answer[2], answer[2]), answer[3]
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        return how, ""

    def children(self):
        found = []
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            found += pathlib.Path(f"/proc/{self.pid}/task/{thread}/children").read_text().split()
        return found

    def descriptors(self):
        """{path: what it is}. Those of a program that it executes come and go."""
        found = {}
        for path in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found[path] = os.readlink(path)
        return found

    def facts(self):
        """What the host's kernel says of it."""
        proc = pathlib.Path(f"/proc/{self.pid}")
        status = (proc / "status").read_text()
        fields = dict(re.findall(r"^(\w+):\s+(.*)$", status, re.M))
        descriptors, children = self.descriptors(), self.children()
        memory = sum(int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))
        memory += sum(path.stat().st_blocks * 512 for path in descriptors
                      if descriptors[path].startswith("/memfd:"))
        spaces = {(pid, name): os.readlink(f"/proc/{pid}/ns/{name}")
                  for pid in (self.pid, *children) for name in ("user", "net", "mnt")}
        (nice,) = (proc / "stat").read_text().rpartition(")")[2].split()[16:17]
        return {
            "namespaces": len(set(spaces.values())),
            "root": os.readlink(proc / "root"),
            "program": os.readlink(proc / "exe"),
            "user": fields["Uid"],
            "priority": nice,
            "limits": re.search(r"Max open files .*", (proc / "limits").read_text())[0],
            "number of descriptors": len(descriptors) > DESCRIPTORS_MAX,
            "descriptors": sorted(re.sub(r"\d+", "N", link) for link in descriptors.values()),
            "code": len(re.findall(r"^\S+ ..x", (proc / "maps").read_text(), re.M)),
            "processes": len(children) > PROCESSES_MAX,
            "memory": memory > MEMORY_MAX,
            "log": self.log_bytes() > LOG_MAX,
        }

    def end(self):
        if self.pid:
            children = self.children()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
        self.control.close()
        self.stream.close()
        os.close(self.log)


class Trial:
    """All attempts, with some layers left out."""

    def __init__(self, host, programs, off, thread, scope):
        self.host, self.off, self.thread, self.scope = host, off, thread, scope
        self.machine = self.other = self.next = None
        layers = sum(bit for layer, bit in JAIL.items() if layer not in off)
        if taken_table.LAUNCHER in off:
            self.jail = NoJail(programs[1])
            return
        self.jail = jail_client.Jail(*programs, layers)
        if self.jail.layers != layers:
            raise RuntimeError(f"of the layers {layers} of the jail there are {self.jail.layers}")

    def start(self, cell):
        return Machine(self.jail, cell, self.host.snapshot, self.off, self.scope)

    def start_other(self):
        """Somebody else's machine: a secret in its memory, and one on its way to its guest."""
        self.other = self.start(OTHER).ready()
        self.other.ask(secret=self.host.secret())
        self.other.stream.send(self.host.secret().encode())

    def is_spoilt(self, found):
        """By what came of an attempt. What rlimits leave of descriptors is for one attempt."""
        spoils = SPOILS if "rlimits" in self.off else SPOILS | {"its descriptors changed"}
        return not spoils.isdisjoint(found)

    def change_machine(self):
        """What it cannot go on with ends. The next one has begun, and while that is at work the one after it
        does."""
        old, self.machine = self.machine, self.next
        old.end()
        self.next = self.start(old.cell)
        self.machine = self.machine or self.start(FIRST + SECOND - old.cell)

    def cgroup_file(self):
        path = pathlib.Path(f"/proc/{self.machine.pid}/cgroup").read_text().strip().partition("::")[2]
        return pathlib.Path(f"/sys/fs/cgroup{path}/pids.max")

    def ask(self, attempt, cgroup):
        host = self.host
        return self.machine.ask(
            attempt=attempt, thread=self.thread, secret=host.secret_file, made=host.open_folder / "made",
            folder=host.open_folder, cgroup=cgroup, abstract=host.listeners["abstract"].getsockname()[1:].decode(),
            socket=host.folder / "socket", port=host.listeners["connect"].getsockname()[1],
            udp=host.udp.getsockname()[1], free_port=host.free_port, process=host.process.pid,
            process_address=host.environment_at, machine=self.other.number, machine_address=self.other.address,
            stream=STREAM_FD, shared_memory=host.memory_key, key=host.key, take_bytes=TAKE_BYTES,
            take_processes=TAKE_PROCESSES, take_descriptors=TAKE_DESCRIPTORS, take_log=TAKE_LOG, take_disk=TAKE_DISK)

    def look(self, before, cgroup, told):
        """What is different from before."""
        found = self.host.look(told)
        if "executed" in told:
            found.append("a program was executed")
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(self.other.pid, os.WNOHANG)[0]:
                self.other.pid = 0
                found.append("another machine was ended")
        path, content = cgroup
        if path.read_text() != content:
            found.append("its limits were changed")
            path.write_text(content)
        if self.machine.pid:
            now = self.machine.known = self.machine.facts()
            found += [f"its {name} changed" for name in now if now[name] != before[name]]
        return found

    def attempt(self, name):
        if not self.other or not self.other.pid:
            if self.other:
                self.other.end()
            self.start_other()
        self.machine = (self.machine or self.start(FIRST)).ready()
        if self.next and name in CHANGES_FILES:
            self.next.ready()
        before, cgroup = self.machine.known or self.machine.facts(), self.cgroup_file()
        content = cgroup.read_text()
        how, told = self.ask(name, cgroup)
        found = self.look(before, (cgroup, content), told)
        end = time.monotonic() + 5
        # What was done may take a moment to be seen.
        while how == 0 and not found and time.monotonic() < end:
            time.sleep(0.02)
            found = self.look(before, (cgroup, content), told)
        if not self.machine.pid or self.is_spoilt(found):
            self.change_machine()
        return [how, [effect for effect in found if effect in COUNTS.get(name, found)]]

    def run(self, attempts):
        found = {name: self.attempt(name) for name in attempts}
        for machine in (self.machine, self.next, self.other):
            if machine:
                machine.end()
        self.jail.close()
        return found


def left_to_others(found):
    """What the filter does not end, which another layer has to."""
    return [name for name, (how, _) in found["all"].items() if how != "SIGSYS"]


def run_shipped(run):
    """run(name, layers that are off, attempts, thread, scope). With none it is shown that there is something to
    deny."""
    names = taken_table.ATTEMPTS
    run("none", frozenset(LAYERS), names)
    run("all", frozenset(), names)
    run("all, vCPU", frozenset(), names, "vcpu")
    for scope in ("once", "boot"):
        run(scope, frozenset(), names, scope=scope)
        run(f"{scope}, vCPU", frozenset(), names, "vcpu", scope)


def run_each(run):
    """What the filter ends with all layers it ends with fewer: it does not look at them."""
    everything, names = frozenset(LAYERS), taken_table.ATTEMPTS
    run("without filter", {"filter"}, names)
    for scope in ("once", "boot"):
        run(f"{scope} without filter", {"filter"}, names, scope=scope)
    run("boot without limits", {"limits"}, names, scope="boot")
    for layer in LAYERS[1:]:
        run(f"without {layer}", {layer} | {above for above in NEEDS if layer in NEEDS[above]}, left_to_others)
    for layer in LAYERS:
        run(f"{layer} alone", everything - {layer} - NEEDS.get(layer, set()), names)


def main():
    jail, taken, snapshot, folder, *each = sys.argv[1:]
    enter_namespaces(new_secret())
    # It moves this process to where a daemon belongs, which must have no children yet.
    jail_client.Jail(jail, taken).close()
    host = Host(folder, snapshot)
    host.start_process()
    found = {}

    def run(name, off, attempts, thread="main", scope="reusable"):
        begin = time.monotonic()
        attempts = attempts(found) if callable(attempts) else attempts
        found[name] = Trial(host, (jail, taken), off, thread, scope).run(attempts)
        print(f"{name}: {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)

    try:
        run_shipped(run)
        if each:
            run_each(run)
    finally:
        host.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
