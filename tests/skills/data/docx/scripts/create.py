"""A document made, changed and read back in three ways; see SKILL.md."""

import io
import json
import os
import subprocess
from pathlib import Path

from docx import Document
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.shared import Cm, Pt
from PIL import Image

import replace

path = Path(os.environ["SANDBOX_FILES_DIR"]) / "report.docx"

picture = io.BytesIO()
Image.new("RGB", (60, 40), "#305496").save(picture, "PNG")
picture.seek(0)

document = Document()
document.core_properties.title = "Annual report"
document.core_properties.author = "Käthe"
document.add_heading("Annual report", 0)
paragraph = document.add_paragraph("In {{YEAR}} all went ")
paragraph.add_run("very well").bold = True
paragraph.add_run(".")
paragraph.alignment = WD_ALIGN_PARAGRAPH.JUSTIFY
document.add_heading("Figures", 1)
table = document.add_table(rows=1, cols=2, style="Light Grid Accent 1")
table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Quarter", "Income"
for quarter, income in (("Q1", "1,200"), ("Q2", "1,340")):
    cells = table.add_row().cells
    cells[0].text, cells[1].text = quarter, income
for text in ("first", "second"):
    document.add_paragraph(text, style="List Bullet")
document.add_picture(picture, width=Cm(3))
section = document.sections[0]
section.header.paragraphs[0].text = "Confidential – 機密"
section.left_margin = Cm(2)
document.styles["Normal"].font.size = Pt(11)
document.save(path)

replaced = replace.replace(path, {"{{YEAR}}": "2024 & later"})

document = Document(path)
markdown = subprocess.run(["pandoc", path, "-t", "gfm", "--wrap=none"], capture_output=True, text=True, check=True).stdout
print(json.dumps({
    "replaced": replaced,
    "title": document.core_properties.title,
    "author": document.core_properties.author,
    "paragraphs": [[p.style.name, p.text] for p in document.paragraphs if p.text],
    "bold": [run.text for p in document.paragraphs for run in p.runs if run.bold],
    "cells": [[cell.text for cell in row.cells] for row in document.tables[0].rows],
    "header": document.sections[0].header.paragraphs[0].text,
    "margin_cm": round(document.sections[0].left_margin.cm, 2),
    "pictures": len(document.inline_shapes),
    "markdown": [line for line in markdown.splitlines() if line.startswith(("#", "|", "-", "In"))],
}))
