# SPDX-License-Identifier: Apache-2.0
"""Files of a snapshot that are not as they were written, given to the VMM itself: beside the daemon, whose
digests they would not pass. Each is refused with the reason, before the guest runs.

Checksums are right wherever the damage is to be found by what is behind them.
"""

import contextlib
import pathlib
import re
import socket
import struct
import subprocess
import zlib

from harness import case, check, check_equal, check_in
from reset_driver import FAILED, RESUMED, TIMEOUT
from snapshot_file import HEADER, SECTION

PAGE = 4096
ANOTHERS = "another's content"


def split(data):
    """[(tag, version, payload)] of a state file."""
    at, found = HEADER.size, []
    while at < len(data):
        tag, version, length, _ = SECTION.unpack_from(data, at)
        at += SECTION.size
        found.append((tag, version, data[at : at + length]))
        at += length
    return found


def join(header, sections):
    """A state file with right checksums."""
    magic, form, _ = HEADER.unpack_from(header)
    out = HEADER.pack(magic, form, len(sections))
    for tag, version, payload in sections:
        head = struct.pack("<4sII", tag, version, len(payload))
        out += head + struct.pack("<I", zlib.crc32(head + payload)) + payload
    return out


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def replaced(sections, i, **change):
    tag, version, payload = sections[i]
    new = (change.get("tag", tag), change.get("version", version), change.get("payload", payload))
    return sections[:i] + [new] + sections[i + 1 :]


def damaged_sections(state):
    """(what, which section, the file), for each section."""
    sections = split(state)
    check_equal(join(state, sections), state, "a file that is taken apart and put together")
    at = HEADER.size
    for i, (tag, version, payload) in enumerate(sections):
        name, at = tag.decode(), at + SECTION.size
        other = next(p for _, _, p in sections[i + 1 :] + sections[:i] if len(p) != len(payload))
        for what, file in (
            ("a flipped bit", flipped(state, at + len(payload) // 2)),
            ("a byte less", join(state, replaced(sections, i, payload=payload[:-1]))),
            ("a byte more", join(state, replaced(sections, i, payload=payload + b"\0"))),
            ("nothing", join(state, replaced(sections, i, payload=b""))),
            (ANOTHERS, join(state, replaced(sections, i, payload=other))),
            ("another version", join(state, replaced(sections, i, version=version + 1))),
            ("no such section", join(state, sections[:i] + sections[i + 1 :])),
            ("it twice", join(state, sections + [sections[i]])),
        ):
            yield what, name, file
        at += len(payload)


def damaged_files(state, memory, working_set):
    """(what, the file's name, its content or length, what the reason has)."""
    header = HEADER.unpack_from(state)
    yield "half of it", "state", state[: len(state) // 2], "state"
    yield "more at its end", "state", state + b"\0", "after the last section"
    yield "nothing", "state", b"", "state"
    yield "another format", "state", HEADER.pack(header[0], header[1] + 1, header[2]) + state[16:], "format"
    yield "the working set", "state", working_set, "not a state file"
    yield "a page less", "memory", memory - PAGE, "the memory file has"
    yield "a page more", "memory", memory + PAGE, "the memory file has"
    yield "nothing", "memory", 0, "the memory file has"
    yield "a flipped bit", "working-set", flipped(working_set, len(working_set) // 2), "checksum"
    yield "half of it", "working-set", working_set[: len(working_set) // 2], "length"
    yield "nothing", "working-set", b"", "working set"
    yield "the state", "working-set", state, "working set"


class Vmm:
    """Restores from a snapshot of which one file is another."""

    def __init__(self, world):
        self.program = pathlib.Path(world.bin_dir) / "skillvm-vmm"
        folder = next((world.daemon.data / "snapshots").glob("*/manifest.json")).parent
        self.files = {name: folder / name for name in ("state", "memory", "working-set")}
        self.files["image"] = pathlib.Path(world.share) / "python.erofs"
        self.other = world.root / "damaged"

    def restore(self, **other):
        """(the first event, what it says); the VMM is gone then."""
        control, control_far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        stream, stream_far = socket.socketpair()
        with contextlib.ExitStack() as stack:
            for end in (control, control_far, stream, stream_far):
                stack.enter_context(end)
            fds = {"control": control_far.fileno(), "vsock": stream_far.fileno()}
            for name, path in {**self.files, **other}.items():
                fds[name] = stack.enter_context(path.open("rb")).fileno()
            command = [str(self.program), "restore"]
            for name, fd in fds.items():
                command += [f"--{name}-fd", str(fd)]
            process = subprocess.Popen(
                command, pass_fds=list(fds.values()), stderr=subprocess.DEVNULL
            )
            control_far.close()
            control.settimeout(TIMEOUT)
            message = control.recv(4096)
        status = process.wait(TIMEOUT)
        check(message, f"the VMM ended without a word, status {status}")
        kind = struct.unpack_from("<II", message)[1]
        check(kind != FAILED or status == 1, f"it failed with status {status}")
        return kind, message[24:].split(b"\0")[0].decode()

    def refusal(self, what, name, content):
        """Why a file with this content, or of this length with nothing in it, is refused."""
        if isinstance(content, int):
            with self.other.open("wb") as file:
                file.truncate(content)
        else:
            self.other.write_bytes(content)
        kind, reason = self.restore(**{name: self.other})
        self.other.unlink()
        check_equal(kind, FAILED, f"the event after {name} with {what}")
        return reason


@case
def damaged_files_never_start_a_guest(world):
    vmm = Vmm(world)
    check_equal(vmm.restore(), (RESUMED, ""), "what a whole snapshot gives")
    state, working_set = (vmm.files[name].read_bytes() for name in ("state", "working-set"))
    memory = vmm.files["memory"].stat().st_size
    tried = 0
    for what, name, content, said in damaged_files(state, memory, working_set):
        check_in(said, vmm.refusal(what, name, content), f"{name} with {what}")
        tried += 1
    names = {}
    for what, tag, content in damaged_sections(state):
        reason = vmm.refusal(f"{what} of {tag}", "state", content)
        tried += 1
        # What it is read as may be wrong in its own way.
        if what == ANOTHERS:
            continue
        found = re.search(r"section ([\w -]+)", reason)
        check(found, f"{what} of {tag}: no section in {reason!r}")
        # The checksum comes first: it tells what the section is called.
        called = names.setdefault(tag, found[1])
        check_in(f"section {called}", reason, f"{what} of {tag}")
    check_equal(len(set(names.values())), len(split(state)), f"sections by name: {names}")
    print(f"{tried} damaged files of a snapshot with {len(names)} sections were refused", flush=True)
