#!/usr/bin/env python3
"""Replaces texts in a document's XML: replace.py FILE OLD=NEW…"""

import sys
import zipfile
from pathlib import Path

from lxml import etree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def replace(path, texts):
    """How often something was replaced."""
    with zipfile.ZipFile(path) as archive:
        parts = [(info, archive.read(info)) for info in archive.infolist()]
    count = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in parts:
            if info.filename == "word/document.xml":
                root = etree.fromstring(data)
                for node in root.iter(f"{W}t"):
                    for old, new in texts.items():
                        if node.text and old in node.text:
                            node.text = node.text.replace(old, new)
                            count += 1
                data = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
            archive.writestr(info, data)
    return count


if __name__ == "__main__":
    print(replace(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:])))
