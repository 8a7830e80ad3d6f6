#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the skill fuzz targets into corpus/. Its output does not change between runs."""
import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKILL = b"---\nname: trial\ndescription: a trial\n---\nbody\n"


def save(target, name, data):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as out:
        out.write(data)


def make_tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content.decode() if content else ""
                tar.addfile(info)
    return out.getvalue()


def make_zip(members, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, mode, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            info.external_attr = mode << 16
            z.writestr(info, content)
    return out.getvalue()


def archives():
    reg, sym, hard, folder = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
    plain = [("SKILL.md", reg, SKILL), ("main.py", reg, b"print(1)\n")]
    odd = [
        ("t", folder, b""),
        ("t/SKILL.md", reg, SKILL),
        ("t/s", folder, b""),
        ("t/s/link", sym, b"../SKILL.md"),
        ("t/hard", hard, b"t/SKILL.md"),
        ("t/" + "long-" * 30 + "name", reg, b"x"),
        ("t/\u00e9.txt", reg, b"y"),
    ]
    bad = [("SKILL.md", reg, SKILL), ("../x", reg, b"x"), ("d", tarfile.CHRTYPE, b"")]
    save("archive", "plain.tar", make_tar(plain))
    save("archive", "odd.tar", make_tar(odd))
    save("archive", "bad.tar", make_tar(bad))
    save("archive", "odd.tar.gz", gzip.compress(make_tar(odd), mtime=0))
    save("archive", "plain.tar.xz", lzma.compress(make_tar(plain)))
    files = [("SKILL.md", 0o100644, SKILL), ("s/main.py", 0o100755, b"print(1)\n")]
    save("archive", "plain.zip", make_zip(files))
    save("archive", "stored.zip", make_zip(files, zipfile.ZIP_STORED))
    save("archive", "link.zip", make_zip(files + [("l", 0o120777, b"s/main.py")]))
    save("archive", "out.zip", make_zip(files + [("l", 0o120777, b"../../x")]))
    save("archive", "case.zip", make_zip(files + [("S/x", 0o100644, b"1")]))
    save("archive", "empty.zip", make_zip([]))
    litter = plain + [("__MACOSX/x", reg, bytes(1500000))]
    save("archive", "litter.tar.bz2", bz2.compress(make_tar(litter)))
    save("archive", "twice.tar.gz", gzip.compress(gzip.compress(make_tar(plain), mtime=0), mtime=0))
    for piece, name, members in ((1, "plain", plain), (40, "odd", odd), (255, "bad", bad)):
        save("artifacts", name, bytes([piece]) + make_tar(members))


def texts():
    seeds = {
        "full": b"---\nname: a-b\ndescription: d\nversion: 1.0\ntimeout: 1m30s\nresources:\n"
        b"  memory: 256Mi\n  cpu: 0.5\nmetadata:\n  a: b\nallowed-tools: [x, y]\n---\n# body\n",
        "colon": b"---\nname: a\ndescription: use when: x\nmetadata:\n  a: b: c\n---\n",
        "crlf": b"\xef\xbb\xbf---\r\ndescription: x\r\n---\r\ny\r\n",
        "block": b"---\ndescription: |\n  a: b: c\n  d\nlicense: >-\n  e\n---\n",
        "alias": b"---\na: &a [x]\nb: *a\ndescription: d\n---\n",
        "deep": b"---\ndescription: d\nx: [[[[{a: [{}]}]]]]\n---\n",
        "broken": b"---\nname: [a\n---\n",
    }
    for name, data in seeds.items():
        save("frontmatter", name, data)
    events = {
        "run": b'event: status\ndata: {"status":"running"}\n\nevent: stdout\n'
        b'data: {"data":"a\\n\\u00e9\\ud83d\\ude00"}\n\nevent: result\ndata: {}\n\n',
        "lines": b": c\r\ndata: a\r\ndata:b\r\n\r\nid: 1\rdata\r\r",
        "bom": b"\xef\xbb\xbfdata: x\n\n",
    }
    for name, data in events.items():
        save("sse", name, data)


archives()
texts()
