#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the image's recipe lists as worth warming, looked at module by module.

guest_warm.py SOURCE-DIRECTORY

A snapshot with a module in it wakes up many times. So its import, in an interpreter that has
what the zygote has, must draw no random bytes from the kernel (a filter kills what does), open
nothing that stays, start no thread, register no exit function or signal handler, and read no
variable that a skill's environment may set without asking for a plain start. And two copies of a
process that has all of them, alike to the process id as two machines of one snapshot are, must
agree on nothing random once the zygote has done what it does at a wake-up.
"""
import ctypes
import os
import re
import signal
import struct
import subprocess
import sys

PYTHON = "/usr/bin/python3.11"
RECIPE = "images/python.yaml"
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYS_CLONE, SYS_GETRANDOM = 56, 318
CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
# Not a skill's: of Debian's own builds, of an interpreter run from its build folder.
NOBODYS = {"DEB_PYTHON_INSTALL_LAYOUT", "_PYTHON_PROJECT_BASE", "_PYTHON_SYSCONFIGDATA_NAME"}
# Drawn on one, all that a clone must not share with another.
RANDOM = """
import os, random, secrets, sqlite3, ssl, tempfile, uuid, hashlib
print("random", random.random(), secrets.token_hex(8))
print("ssl", ssl.RAND_bytes(8).hex())
print("sqlite", sqlite3.connect(":memory:").execute("select hex(randomblob(8))").fetchone()[0])
print("uuid4", uuid.uuid4())
print("temporary", next(tempfile._get_candidate_names()))
print("os", os.urandom(8).hex())
"""
# Seeded before the copies are made, these agree: the test would see it.
SPOILED = "import ssl, random; ssl.RAND_bytes(1)"


def zygote(source):
    """The names of the zygote's own file, without what it does."""
    path = os.path.join(source, "guest-init/zygote/sitecustomize.py")
    with open(path, encoding="utf-8") as lines:
        text, found, _ = lines.read().rpartition("\n_main()\n")
    assert found, f"{path} does not end with _main()"
    names = {}
    exec(compile(text, path, "exec"), names)
    return names


def worth_warming(recipe):
    """The modules of a recipe's list, which is the last of the file."""
    with open(recipe, encoding="utf-8") as lines:
        _, _, text = lines.read().partition("\nwarm:\n")
    names = re.findall(r"^  - (\S+)$", text, re.MULTILINE)
    assert names, f"{recipe} lists nothing"
    return names


def plain_start_variables(source):
    """The prefixes with which guest-init/zygote.c starts a plain interpreter instead."""
    with open(os.path.join(source, "guest-init/zygote.c"), encoding="utf-8") as lines:
        text = "".join(re.findall(r"const (?:any|python|prefixes)\[\] = \{(.*?)\};", lines.read(), re.DOTALL))
    return tuple(re.findall(r'"([^"]+)"', text))


def forbid_random_bytes():
    """From here on getrandom ends the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = b"".join(
        struct.pack("HBBI", *step)
        for step in (
            (0x20, 0, 0, 0),  # load the number of the call
            (0x15, 0, 1, SYS_GETRANDOM),
            (0x06, 0, 0, 0x80000000),  # kill the process
            (0x06, 0, 0, 0x7FFF0000),  # allow
        )
    )
    room = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(room)))
    for call in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0),
    ):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def state():
    import atexit
    import threading

    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "exit functions": atexit._ncallbacks() + len(threading._threading_atexits),
        "signal handlers": [str(signal.getsignal(number)) for number in range(1, 32)],
    }


def examine(source, name):
    """In a process of its own: what is wrong with one module, as lines."""
    import importlib

    prefixes = plain_start_variables(source)
    for preloaded in zygote(source)["_PRELOAD"]:
        importlib.import_module(preloaded)
    if name in sys.modules:
        print("the zygote has it anyway")
        return
    read = set()
    kind = type(os.environ)
    get = kind.__getitem__
    kind.__getitem__ = lambda self, key: (read.add(key), get(self, key))[1]
    before = state()
    forbid_random_bytes()
    importlib.import_module(name)
    for what, value in state().items():
        if value != before[what]:
            print(f"{what}: {before[what]} became {value}")
    for variable in sorted(read - NOBODYS):
        if not f"{variable}=".startswith(prefixes):
            print(f"it reads {variable}")


def clone(flags):
    """A copy of this process, made without its knowledge. 0 in the copy."""
    pid = ctypes.CDLL(None, use_errno=True).syscall(SYS_CLONE, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def copies(source, spoil):
    """As PID 1: imports all, then prints what two copies, each PID 1 again, draw."""
    import importlib

    names = zygote(source)
    for name in (*names["_PRELOAD"], *worth_warming(os.path.join(source, RECIPE))):
        importlib.import_module(name)
    if spoil:
        exec(SPOILED)
    sys.stdout.flush()
    for _ in range(2):
        pid = clone(CLONE_NEWPID)
        if pid == 0:
            # As the zygote when it is told what to run: reseed in zygote.c.
            sys.modules["random"].seed(int.from_bytes(os.getrandom(64), "little"))
            print("pid", os.getpid())
            exec(RANDOM)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)


def call(source, *arguments, **settings):
    command = [PYTHON, "-I", os.path.abspath(__file__), source, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **settings)


def check_modules(source):
    failed = 0
    if call(source, "examine", "multiprocessing.process").returncode != -signal.SIGSYS:
        print("FAILED multiprocessing draws its key at import, and the filter did not see it")
        failed += 1
    for name in worth_warming(os.path.join(source, RECIPE)):
        result = call(source, "examine", name)
        wrong = result.stdout.strip().split("\n") if result.stdout.strip() else []
        if result.returncode == -signal.SIGSYS:
            wrong.append("it draws random bytes")
        elif result.returncode != 0:
            wrong.append(f"it ended with {result.returncode}")
        print("FAILED" if wrong else "ok", name, *wrong)
        failed += bool(wrong)
    return failed


def draw(source, how):
    """{what: [of the one copy, of the other]}, or None where processes cannot be copied so."""
    result = call(source, "enter", how)
    if result.returncode == 77:
        return None
    drawn = {}
    for line in result.stdout.splitlines():
        what, _, value = line.partition(" ")
        drawn.setdefault(what, []).append(value)
    assert drawn.pop("pid", None) == ["1", "1"], f"the copies are not alike: {result}"
    assert all(len(values) == 2 for values in drawn.values()), result
    return drawn


def check_copies(source):
    drawn = draw(source, "clean")
    if drawn is None:
        print("skipped: no PID namespaces here")
        return 0
    failed = 0
    for what, (one, other) in drawn.items():
        print("ok" if one != other else "FAILED", what, "in two copies:", one, other)
        failed += one == other
    one, other = draw(source, "spoiled")["ssl"]
    if one != other:
        print("FAILED a generator that was seeded before differs: this test sees nothing")
        failed += 1
    return failed


def enter(source, how):
    """Goes into a PID namespace, so that this process is 1 and its copies can be too."""
    flags = CLONE_NEWPID | (0 if os.geteuid() == 0 else CLONE_NEWUSER)
    try:
        pid = clone(flags)
    except OSError:
        sys.exit(77)
    if pid == 0:
        copies(source, how == "spoiled")
        sys.stdout.flush()
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def main():
    source = os.path.abspath(sys.argv[1])
    if len(sys.argv) > 2:
        {"examine": examine, "enter": enter}[sys.argv[2]](source, sys.argv[3])
        return 0
    if not os.path.exists(PYTHON) or os.uname().machine != "x86_64":
        print(f"skipped: no {PYTHON} on x86-64")
        return 77
    failed = check_modules(source) + check_copies(source)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
