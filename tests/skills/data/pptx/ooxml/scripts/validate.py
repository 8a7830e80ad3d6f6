#!/usr/bin/env python3
"""Finds what Office would refuse: validate.py FILE"""

import posixpath
import sys
import zipfile

from lxml import etree

TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"


def problems(file):
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        parts = {name: archive.read(name) for name in names if name.endswith((".xml", ".rels"))}
    found, roots = [], {}
    for name, data in sorted(parts.items()):
        try:
            roots[name] = etree.fromstring(data)
        except etree.XMLSyntaxError as error:
            found.append(f"{name}: {error.msg}")
    types = roots["[Content_Types].xml"]
    known = {e.get("PartName") for e in types.iter(f"{TYPES}Override")}
    defaults = {e.get("Extension") for e in types.iter(f"{TYPES}Default")}
    for name in sorted(names - {"[Content_Types].xml"}):
        if "/" + name not in known and name.rsplit(".", 1)[-1] not in defaults:
            found.append(f"{name} has no type")
    found += [f"{name} is not there" for name in sorted(known) if name[1:] not in names]
    for name, root in roots.items():
        if not name.endswith(".rels"):
            continue
        base = posixpath.dirname(posixpath.dirname(name))
        for relation in root:
            target = posixpath.normpath(posixpath.join("/", base, relation.get("Target")))
            if relation.get("TargetMode") != "External" and target[1:] not in names:
                found.append(f"{name}: {relation.get('Id')} leads to {target}, which is not there")
    return found


if __name__ == "__main__":
    wrong = problems(sys.argv[1])
    print("\n".join(wrong) or "All validations PASSED!")
    sys.exit(bool(wrong))
