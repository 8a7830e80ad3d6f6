"""Feeds as rows, read with defusedxml; see SKILL.md."""

import csv
import email.utils
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path

import defusedxml
import defusedxml.ElementTree as ET
import defusedxml.sax
from dateutil import parser as dates
from xml.sax.handler import ContentHandler

ATOM = "{http://www.w3.org/2005/Atom}"


class Depth(ContentHandler):
    def __init__(self):
        self.depth = self.deepest = 0

    def startElement(self, name, attrs):
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def endElement(self, name):
        self.depth -= 1


def rows(root):
    for item in root.iter("item"):
        when = email.utils.parsedate_to_datetime(item.findtext("pubDate"))
        yield item.findtext("title"), item.findtext("link"), when
    for entry in root.iter(f"{ATOM}entry"):
        link = entry.find(f"{ATOM}link")
        yield entry.findtext(f"{ATOM}title"), link.get("href"), dates.isoparse(entry.findtext(f"{ATOM}updated"))


output, refused = [], {}
deepest = 0
for name in sys.argv[1:]:
    path = Path(os.environ["SANDBOX_INPUT_DIR"], name)
    try:
        root = ET.parse(path).getroot()
        handler = Depth()
        defusedxml.sax.parse(str(path), handler)
    except defusedxml.DefusedXmlException as error:
        refused[name] = type(error).__name__
        continue
    except ET.ParseError as error:
        refused[name] = f"line {error.position[0]}: no XML"
        continue
    deepest = max(deepest, handler.deepest)
    output += [(title, link, f"{when.astimezone(timezone.utc):%Y-%m-%dT%H:%MZ}") for title, link, when in rows(root)]
output.sort(key=lambda row: row[2])
with open(os.environ["SANDBOX_FILES_DIR"] + "feed.csv", "w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows(output)
print(json.dumps({"rows": output, "refused": refused, "deepest": deepest}))
