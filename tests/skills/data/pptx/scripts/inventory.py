#!/usr/bin/env python3
"""What stands on each slide, in the order of the presentation: inventory.py FILE.pptx"""

import json
import posixpath
import sys
import zipfile

from lxml import etree

NS = {
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
}
ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def inventory(file):
    with zipfile.ZipFile(file) as archive:
        targets = {e.get("Id"): e.get("Target") for e in etree.fromstring(archive.read("ppt/_rels/presentation.xml.rels"))}
        ids = etree.fromstring(archive.read("ppt/presentation.xml")).xpath("//p:sldId", namespaces=NS)
        slides = []
        for element in ids:
            root = etree.fromstring(archive.read(posixpath.join("ppt", targets[element.get(ID)])))
            shapes = {}
            for sp in root.xpath("//p:sp", namespaces=NS):
                kind = sp.xpath("string(.//p:ph/@type)", namespaces=NS)
                shapes[kind] = ["".join(p.itertext()) for p in sp.xpath(".//a:p", namespaces=NS)]
            slides.append(shapes)
        return slides


if __name__ == "__main__":
    print(json.dumps(inventory(sys.argv[1]), ensure_ascii=False))
