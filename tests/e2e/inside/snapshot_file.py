# SPDX-License-Identifier: Apache-2.0
"""Where a snapshot's kernel lies, read from its files (docs/snapshot-format.md)."""

import struct

HEADER = struct.Struct("<8sII")
SECTION = struct.Struct("<4sIII")
MSR = struct.Struct("<IQ")
# Where a system call enters the kernel.
LSTAR = 0xC0000082
# CR3 in struct kvm_sregs: behind eight segments, two tables, CR0 and CR2.
CR3_AT = 8 * 24 + 2 * 16 + 2 * 8
PAGE = 4096
ENTRIES = struct.Struct("<512Q")
ADDRESS = 0x000F_FFFF_FFFF_F000
# The upper half up to what is at one place by design: the processor's own area, and the text.
DRAWN = range(256, 508)


def sections(path):
    data = path.read_bytes()
    at = HEADER.size
    found = {}
    while at < len(data):
        tag, _, length, _ = SECTION.unpack_from(data, at)
        at += SECTION.size
        found[tag] = data[at : at + length]
        at += length
    return found


def kernel_places(folder):
    """Addresses of the kernel's text, and of the GiB that its memory is mapped at."""
    state = sections(folder / "state")
    count = struct.unpack_from("<I", state[b"MSRS"])[0]
    msrs = dict(MSR.unpack_from(state[b"MSRS"], 4 + i * MSR.size) for i in range(count))
    root = struct.unpack_from("<Q", state[b"SREG"], CR3_AT)[0]
    with (folder / "memory").open("rb") as memory:

        def table(entry):
            memory.seek(entry & ADDRESS)
            return ENTRIES.unpack(memory.read(PAGE))

        top = table(root)
        mapped = [
            index << 39 | below << 30
            for index in DRAWN
            if top[index] & 1
            for below, entry in enumerate(table(top[index]))
            if entry & 1
        ]
    return {"the kernel's text": [msrs[LSTAR]], "the kernel's memory": [tuple(mapped)]}
