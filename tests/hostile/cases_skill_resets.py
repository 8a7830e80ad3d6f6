# SPDX-License-Identifier: Apache-2.0
"""After every reset a machine equals one fresh from its restore, whatever skill ran in it.

skillvm-vmm-verify compares all of memory and all state that KVM tells after each reset, and
ends at the first difference. SKILL_RESETS says how often.
"""

import io
import os
import pathlib
import random
import select
import shutil
import struct
import tarfile
import time

from harness import Failed, Skipped, case, check, check_equal, long_case
from reset_driver import Broken, Machine

BUILT = pathlib.Path(__file__).resolve().parents[1] / "hostile-guest"
RESETS = int(os.environ.get("SKILL_RESETS") or 60)
# An emulated machine on a busy one.
TIMEOUT = 120

READY, EXIT, DONE, FAIL = 0x81, 0x85, 0x88, 0x89
WAKE, RUN, SKILL, INPUT, FILES_IN = range(1, 6)

SKILLS = {
    "hello": ("python", "print('hello')"),
    "memory": ("python", "b = bytearray(40 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1"),
    "files": (
        "python",
        "import os\nos.makedirs('/sandbox/out/files', exist_ok=True)\n"
        "for i in range(50): open(f'/sandbox/out/files/{i}', 'wb').write(os.urandom(9999))",
    ),
    "database": (
        "python",
        "import sqlite3\nc = sqlite3.connect('/tmp/d')\nc.execute('create table t(x)')\n"
        "c.executemany('insert into t values(?)', [(i,) for i in range(5000)])\nc.commit()",
    ),
    "float": ("python", "import math\nprint(sum(math.sin(x) ** 2 for x in range(20000)))"),
    "threads": (
        "python",
        "import threading, time\n"
        "for _ in range(8): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    ),
    "processes": ("bash", "for i in 1 2 3 4 5 6; do (sleep 60 &) ; done; cat /proc/*/maps | wc -l"),
    "crash": ("python", "import os\nos.abort()"),
    "endless": ("python", "while True: pass"),
    "asleep": ("bash", "sleep 600"),
}
# These end by the reset alone.
NEVER_DONE = ("endless", "asleep")


def frame(kind, data=b""):
    return struct.pack("<IBBH", len(data), kind, 0, 0) + data


def field(tag, data):
    return struct.pack("<HHI", tag, 0, len(data)) + data


def request(lang, source):
    """All that the host sends for one run: docs/protocol.md."""
    entry = "main.py" if lang == "python" else "main.sh"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo(entry)
        info.size = len(source)
        info.mode = 0o755
        archive.addfile(info, io.BytesIO(source.encode()))
    run = b"".join(
        field(tag, data)
        for tag, data in (
            (1, lang.encode()),
            (2, b"\0"),
            (3, entry.encode()),
            (6, struct.pack("<Q", 60_000)),
            (7, struct.pack("<Q", 256 << 20)),
            (8, struct.pack("<I", 64)),
            (9, struct.pack("<Q", 1 << 20)),
            (10, struct.pack("<I", 1000)),
            (11, struct.pack("<Q", 64 << 20)),
            (12, struct.pack("<Q", 4 << 20)),
            (14, b"probe"),
        )
    )
    tar = out.getvalue()
    return b"".join(
        (
            frame(WAKE, struct.pack("<Q", time.time_ns()) + os.urandom(64)),
            frame(RUN, run),
            *(frame(SKILL, tar[at : at + 65536]) for at in range(0, len(tar), 65536)),
            frame(SKILL),
            frame(INPUT, b"{}"),
            frame(INPUT),
            frame(FILES_IN),
        )
    )


class Guest:
    """The frames of one stream."""

    def __init__(self, machine):
        self.machine, self.data = machine, b""

    def next(self):
        """The next frame's type; what the VMM says meanwhile is not left unread."""
        end = time.monotonic() + TIMEOUT
        while len(self.data) < 8 or len(self.data) < 8 + struct.unpack_from("<I", self.data)[0]:
            check(time.monotonic() < end, "the guest says nothing")
            stream, control = self.machine.stream, self.machine.control
            ready, _, _ = select.select([stream, control], [], [], 1)
            if control in ready:
                self.machine.pump(0)
            if self.machine.problem:
                raise Failed(f"the machine: {self.machine.problem}")
            if stream in ready:
                data = stream.recv(1 << 16)
                check(data, "the guest's stream ended")
                self.data += data
        length, kind = struct.unpack_from("<IB", self.data)
        self.data = self.data[8 + length :]
        return kind

    def wait(self, kind):
        while True:
            got = self.next()
            check(got != FAIL, "the guest said FAIL")
            if got == kind:
                return


def verifier(world):
    """The VMM that verifies, where it can be executed, and the files of a snapshot."""
    program = BUILT / "skillvm-vmm-verify"
    if not program.exists():
        raise Skipped("skillvm-vmm-verify is not built")
    vmm = world.root / program.name
    shutil.copy(program, vmm)
    snapshots = sorted((world.daemon.data / "snapshots").glob("*/state"))
    check(snapshots, "the daemon has no snapshot")
    folder = snapshots[0].parent
    files = {"image": pathlib.Path(world.share) / "python.erofs"}
    files |= {name: folder / name for name in ("state", "memory", "working-set")}
    return vmm, files


@case
def a_machine_that_cannot_be_reset_says_so(world):
    vmm, files = verifier(world)
    machine = Machine(vmm, "restore", files)
    try:
        Guest(machine).wait(READY)
        machine.reset()
        raise Failed("it was reset")
    except Broken as problem:
        check("without --reusable" in str(problem), f"it says: {problem}")
    finally:
        machine.close()
        vmm.unlink()


@long_case
def resets_after_ordinary_skills(world):
    vmm, files = verifier(world)
    seed = int(os.environ.get("SKILL_SEED") or random.SystemRandom().getrandbits(32))
    print(f"resets: SKILL_SEED={seed}", flush=True)
    draw = random.Random(seed)
    machine = Machine(vmm, "restore", files, ["--reusable"])
    try:
        for n in range(RESETS):
            guest = Guest(machine)
            guest.wait(READY)
            name = draw.choice(sorted(SKILLS))
            machine.stream.sendall(request(*SKILLS[name]))
            # Left alone to its end, or stopped somewhere on its way there.
            stop = draw.choice((DONE, DONE, 0x82, EXIT, None))
            if name in NEVER_DONE:
                stop = 0x82
            if stop:
                guest.wait(stop)
            try:
                machine.reset(hurry=draw.random() < 0.5)
            except Exception as problem:
                raise Failed(f"reset {n} after {name}: {problem}") from None
        check_equal(machine.problem, None, "the machine")
    finally:
        machine.close()
        vmm.unlink()
