"""A graph, drawn and measured; see SKILL.md."""

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image
from pypdf import PdfReader

FILES = Path(os.environ["SANDBOX_FILES_DIR"])
FORMATS = ("svg", "png", "pdf", "gif", "jpg", "webp")
SVG = "{http://www.w3.org/2000/svg}"
edges = json.loads(os.environ["SANDBOX_INPUT"])["edges"]


def quoted(name):
    return json.dumps(name, ensure_ascii=False)


def draw(program, *options):
    """What a program prints of the graph, as text."""
    lines = [f"  {quoted(a)} -> {quoted(b)};" for a, b in edges]
    text = "digraph plan {\n  rankdir=LR; node [shape=box, fontname=\"DejaVu Sans\"];\n%s\n}\n" % "\n".join(lines)
    return subprocess.run([program, *options], input=text, capture_output=True, text=True, check=True).stdout


# One call draws in several formats.
draw("dot", *(option for form in FORMATS for option in (f"-T{form}", "-o", FILES / f"plan.{form}")))
svg = ElementTree.parse(FILES / "plan.svg")
kinds = [group.get("class") for group in svg.iter(f"{SVG}g")]
places = {node["name"]: float(node["pos"].split(",")[0]) for node in json.loads(draw("dot", "-Tjson"))["objects"]}
wrong = subprocess.run(["dot", "-Tsvg"], input=b"digraph { a -> }", capture_output=True)
print(json.dumps({
    "nodes": kinds.count("node"),
    "edges": kinds.count("edge"),
    "texts": sorted(text.text for text in svg.iter(f"{SVG}text")),
    "left_to_right": sorted(places, key=places.get),
    "formats": [Image.open(FILES / f"plan.{form}").format for form in ("png", "gif", "jpg", "webp")],
    "pdf": [word in PdfReader(FILES / "plan.pdf").pages[0].extract_text() for word in ("start", "Prüfung", "end")],
    "others": [len(draw(program, "-Tplain").splitlines()) for program in ("neato", "circo")],
    "wrong": wrong.returncode,
}))
