# SPDX-License-Identifier: Apache-2.0
"""Archives that break a rule, made on the fly: {name: (expected error, bytes)}.

As a program it writes them as files: archives.py FOLDER, and lists `name expected` lines.
"""

import functools
import gzip
import io
import pathlib
import struct
import sys
import tarfile
import zipfile
import zlib

SKILL_MD = b"---\nname: bad\ndescription: an archive that breaks a rule\n---\nBody.\n"
MAIN = b"print('this must never run')\n"
GIB = 1 << 30


def make_zip(*entries, skill_md=SKILL_MD):
    """entries: (name, bytes) or (ZipInfo, bytes), written as they are."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if skill_md is not None:
            archive.writestr("SKILL.md", skill_md)
        archive.writestr("main.py", MAIN)
        for name, content in entries:
            archive.writestr(name, content)
    return out.getvalue()


def zip_entry(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def make_tar(*members, compression="gz", skill_md=SKILL_MD):
    """members: (TarInfo, bytes)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}", format=tarfile.PAX_FORMAT) as tar:
        for name, content in (("SKILL.md", skill_md), ("main.py", MAIN)):
            if content is not None:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def tar_member(name, kind=tarfile.REGTYPE, link="", content=b""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, content


@functools.cache
def deflated_block(size):
    """So many zero bytes as a raw deflate stream without an end: first, and for any time after that; the end."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    blocks = [packer.compress(bytes(size)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)]
    return *blocks, packer.flush(zlib.Z_FINISH)


def deflated_zeros(size):
    """size zero bytes as a raw deflate stream: one block of 1 MiB, over and over."""
    block = 1 << 20
    first, again, end = deflated_block(block)
    return first + again * (size // block - 1) + end


def zip_bomb(size, declared=None):
    """A zip whose entry big.bin expands to size bytes and says so, or says `declared`."""
    stream = deflated_zeros(size)
    declared = size if declared is None else declared
    out = io.BytesIO()
    directory = []

    def add(name, packed, real_size, crc, method):
        offset = out.tell()
        # Zip64 sizes in both headers.
        extra = struct.pack("<HHQQ", 1, 16, real_size, len(packed))
        out.write(
            struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, method, 0, 0x21, crc, 0xFFFFFFFF,
                        0xFFFFFFFF, len(name), len(extra))
        )
        out.write(name + extra + packed)
        directory.append(
            struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, method, 0, 0x21, crc,
                        0xFFFFFFFF, 0xFFFFFFFF, len(name), len(extra), 0, 0, 0, 0, offset)
            + name
            + extra
        )

    add(b"SKILL.md", SKILL_MD, len(SKILL_MD), zlib.crc32(SKILL_MD), 0)
    add(b"main.py", MAIN, len(MAIN), zlib.crc32(MAIN), 0)
    add(b"big.bin", stream, declared, 0, 8)
    start = out.tell()
    out.write(b"".join(directory))
    length = out.tell() - start
    out.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 3, 3, length, start, 0))
    return out.getvalue()


def tar_gz_bomb(size, name="big.bin"):
    """A gzip stream of a tar whose last member has size bytes."""
    info = tarfile.TarInfo(name)
    info.size = size
    head = make_tar(compression="")[: -2 * 512]
    head = head[: (len(head) // 512) * 512].rstrip(b"\0")
    head += bytes(-len(head) % 512) + info.tobuf(tarfile.GNU_FORMAT)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    return (
        struct.pack("<BBBBIBB", 0x1F, 0x8B, 8, 0, 0, 0, 3)
        + start
        + deflated_zeros(size)
        + struct.pack("<II", 0, size & 0xFFFFFFFF)
    )


def many_entries(count):
    """Empty files beside SKILL.md. By hand: zipfile takes minutes of an emulated processor for as many."""

    def heads(name, content):
        """What stands before a name in front of its content, and before its place in the directory."""
        said = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0x21, zlib.crc32(content), len(content),
                           len(content), len(name), 0)
        return b"PK\3\4" + said, b"PK\1\2\24\0" + said + bytes(10)

    skill, skill_listed = heads(b"SKILL.md", SKILL_MD)
    skill += b"SKILL.md" + SKILL_MD
    empty, listed = heads(b"f/000000", b"")
    names = [b"f/%06d" % n for n in range(count)]
    places = range(len(skill), 1 << 32, len(empty) + len(names[0]))
    content = skill + b"".join([empty + name for name in names])
    directory = skill_listed + bytes(4) + b"SKILL.md"
    directory += b"".join([listed + at.to_bytes(4, "little") + name for at, name in zip(places, names)])
    end = len(directory), len(content)
    # Zip64's, for more than 65,535.
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count + 1, count + 1, *end)
    end64 += struct.pack("<IIQI", 0x07064B50, 0, sum(end), 1)
    few = min(count + 1, 0xFFFF)
    return content + directory + end64 + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, few, few, *end, 0)


def damaged_zip():
    """A stored entry whose bytes do not match its checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("SKILL.md", SKILL_MD)
        archive.writestr("main.py", b"the text that is damaged")
    return out.getvalue().replace(b"the text that is damaged", b"the text that is DAMAGED", 1)


@functools.cache
def all_archives():
    bad = "invalid_skill"
    big = "too_large"
    link = tarfile.SYMTYPE
    good = make_zip()
    return {
        "not-a-zip": (bad, b"this is no archive\n" * 10),
        "empty": (bad, b""),
        "zeros": (bad, bytes(2048)),
        "only-a-magic": (bad, b"PK\x03\x04"),
        "cut-zip": (bad, good[: len(good) // 2]),
        "damaged-zip": (bad, damaged_zip()),
        "parent": (bad, make_zip(("../x", b"out"))),
        "parent-inside": (bad, make_zip(("a/../../x", b"out"))),
        "parent-backslash": (bad, make_zip(("..\\x", b"out"))),
        "absolute": (bad, make_zip(("/etc/cron.d/x", b"out"))),
        "link-out-zip": (bad, make_zip((zip_entry("link", 0o120777), b"../../etc/passwd"))),
        "link-out-tar": (bad, make_tar(tar_member("link", link, "/etc/passwd"))),
        "link-through-link": (
            bad,
            make_tar(
                tar_member("dir", link, "."),
                tar_member("dir/up", link, "../.."),
                tar_member("dir/up/x", content=b"out"),
            ),
        ),
        "hard-link-out": (bad, make_tar(tar_member("hard", tarfile.LNKTYPE, "../x"))),
        "device": (bad, make_tar(tar_member("dev", tarfile.CHRTYPE))),
        "block-device": (bad, make_tar(tar_member("dev", tarfile.BLKTYPE))),
        "pipe": (bad, make_tar(tar_member("pipe", tarfile.FIFOTYPE))),
        "device-zip": (bad, make_zip((zip_entry("dev", 0o020666), b""))),
        "twice": (bad, make_tar(tar_member("main.py", content=b"print('second')"))),
        "case-collision": (bad, make_zip(("MAIN.PY", b"x"))),
        "file-and-folder": (bad, make_zip(("main.py/x", b"x"))),
        "entries-100000": (big, many_entries(100000)),
        "entries-20001": (big, many_entries(20000)),
        "bomb-10-gb": (big, zip_bomb(10 * GIB)),
        "bomb-that-lies": (big, zip_bomb(128 << 20, declared=100)),
        "bomb-tar": (big, tar_gz_bomb(10 * GIB)),
        # What is left out of a skill must be counted all the same.
        "bomb-in-litter": (big, tar_gz_bomb(GIB >> 2, "__MACOSX/x")),
        "gzip-in-gzip": (bad, gzip.compress(make_tar())),
        "ratio": (big, make_zip(("zeros", bytes(2 << 20)))),
        "too-many-bytes": (big, make_zip().ljust(289 << 20, b"\0")),
        "no-skill-md": (bad, make_zip(skill_md=None)),
        "skill-md-deep": (bad, make_zip(("a/b/SKILL.md", SKILL_MD), skill_md=None)),
        "no-front-matter": (bad, make_zip(skill_md=b"# Just a title\n")),
        "open-front-matter": (bad, make_zip(skill_md=b"---\nname: x\ndescription: y\n")),
        "syntax-error": (bad, make_zip(skill_md=b"---\nname: [unclosed\ndescription: {\n---\n")),
        "no-description": (bad, make_zip(skill_md=b"---\nname: x\n---\n")),
        "not-a-mapping": (bad, make_zip(skill_md=b"---\n- a\n- b\n---\n")),
        "yaml-bomb": (
            bad,
            make_zip(
                skill_md=b"---\na: &a [x,x,x,x,x,x,x,x,x]\n"
                + b"".join(
                    b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9))
                    for c in range(ord("b"), ord("l"))
                )
                + b"---\n"
            ),
        ),
        "not-utf8": (bad, make_zip(skill_md=b"---\nname: x\ndescription: \xff\xfe\n---\n")),
        "nul-in-skill-md": (bad, make_zip(skill_md=b"---\nname: x\ndescription: a\0b\n---\n")),
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, (expected, content) in all_archives().items():
        (folder / name).write_bytes(content)
        print(name, expected)


if __name__ == "__main__":
    main()
