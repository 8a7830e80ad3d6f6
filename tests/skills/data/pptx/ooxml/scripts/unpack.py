#!/usr/bin/env python3
"""Unpacks and formats the XML of an Office file: unpack.py FILE FOLDER"""

import sys
import zipfile
from pathlib import Path

import defusedxml.minidom


def unpack(file, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    parts = [*folder.rglob("*.xml"), *folder.rglob("*.rels")]
    for part in parts:
        dom = defusedxml.minidom.parseString(part.read_bytes())
        part.write_bytes(dom.toprettyxml(indent="  ", encoding="utf-8"))
    return len(parts)


if __name__ == "__main__":
    assert len(sys.argv) == 3, __doc__
    print(unpack(*sys.argv[1:]))
