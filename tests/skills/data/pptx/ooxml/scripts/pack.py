#!/usr/bin/env python3
"""Packs a folder as an Office file, without the white space of unpack.py: pack.py FOLDER FILE"""

import sys
import zipfile
from pathlib import Path

from lxml import etree

TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"


def condensed(data):
    root = etree.fromstring(data)
    for element in root.iter():
        if element.tag != TEXT and element.text and not element.text.strip():
            element.text = None
        if element.tail and not element.tail.strip():
            element.tail = None
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)


def pack(folder, file):
    folder = Path(folder)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        # The list of types comes first.
        for path in sorted(folder.rglob("*"), key=lambda p: (p.name != "[Content_Types].xml", p)):
            if path.is_file():
                data = path.read_bytes()
                xml = path.suffix in (".xml", ".rels")
                archive.writestr(str(path.relative_to(folder)), condensed(data) if xml else data)


if __name__ == "__main__":
    assert len(sys.argv) == 3, __doc__
    pack(*sys.argv[1:])
