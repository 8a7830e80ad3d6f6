#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the kernel fuzz target: python3 make_kernel_corpus.py

Each is an ELF file of one segment of 64 bytes, with or without a table of relocations.
"""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "kernel")
GPA, VA = 0x100000, 0xFFFFFFFF81000000
NAMES = b"\0.skillvm.relocs\0"
HEADERS = 64 + 56


def elf(table, sections=3, machine=62, memory=128):
    content = bytes(64)
    rest = content + NAMES + table
    names_at = HEADERS + len(content)
    table_at = names_at + len(NAMES)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<HHIQQQ", 2, machine, 1, GPA, 64, HEADERS + len(rest))
    header += struct.pack("<IHHHHHH", 0, 64, 56, 1, 64, sections, 1)
    segment = struct.pack("<IIQQQQQQ", 1, 5, HEADERS, VA, GPA, 64, memory, 4096)
    names = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, names_at, len(NAMES), 0, 0, 1, 0)
    relocs = struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, table_at, len(table), 0, 0, 1, 0)
    return header + segment + rest + bytes(64) + names + relocs


def table(*entries):
    return struct.pack(f"<{len(entries)}I", *entries)


def seed(name, data):
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(data)


def at(offset):
    return (VA + offset) & 0xFFFFFFFF


seed("moved", elf(table(0, at(0), at(120), 0, at(9), 0, at(16), at(124))))
seed("moved-by-nothing", elf(table(0, 0, 0)))
seed("no-relocations", elf(b"", sections=0))
seed("outside", elf(table(0, at(121), 0, 0)))
seed("before", elf(table(0, at(-1), 0, 0)))
seed("two-lists", elf(table(0, 0)))
seed("four-lists", elf(table(0, 0, 0, 0)))
seed("half-an-entry", elf(table(0, 0, 0, at(4))[:-1]))
seed("ends-inside", elf(table(0, 0, 0))[:-40])
seed("other-machine", elf(b"", machine=183))
seed("too-large", elf(b"", memory=2**63))
seed("no-elf", b"MZ")
