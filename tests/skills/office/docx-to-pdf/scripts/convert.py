"""A document as PDF, OpenDocument and text, each read again; see SKILL.md."""

import json
import os
import subprocess
import zipfile
from pathlib import Path

from docx import Document
from docx.shared import Pt
from pypdf import PdfReader

FILES = Path(os.environ["SANDBOX_FILES_DIR"])


def convert(to, *sources):
    subprocess.run(["soffice", "--headless", "--norestore", "--convert-to", to, "--outdir", FILES, *sources],
                   check=True, capture_output=True)


def make(path):
    document = Document()
    document.add_heading("Übergabe", level=1)
    run = document.add_paragraph().add_run("Sixteen bolts, four nuts")
    run.font.name, run.font.size = "Calibri", Pt(14)
    table = document.add_table(rows=0, cols=2)
    for name, amount in (("Schraube", "16"), ("Mutter", "4")):
        cells = table.add_row().cells
        cells[0].text, cells[1].text = name, amount
    document.add_page_break()
    document.add_paragraph("The second page").runs[0].font.name = "Times New Roman"
    document.save(path)


source = FILES / "letter.docx"
make(source)
convert("pdf", source)
convert("odt", source)
convert("txt:Text (encoded):UTF8", FILES / "letter.odt")

reader = PdfReader(FILES / "letter.pdf")
fonts = subprocess.run(["pdffonts", FILES / "letter.pdf"], capture_output=True, text=True, check=True).stdout
lines = (FILES / "letter.txt").read_text("utf-8-sig").split()
print(json.dumps({
    "pages": len(reader.pages),
    "first": [word in reader.pages[0].extract_text() for word in ("Übergabe", "Sixteen bolts, four nuts", "Schraube")],
    "second": reader.pages[1].extract_text().strip(),
    "fonts": [name for name in ("Carlito", "LiberationSerif") if f"+{name} " in fonts],
    "opendocument": zipfile.ZipFile(FILES / "letter.odt").read("mimetype").decode(),
    "text": [word in lines for word in ("Übergabe", "Schraube", "16", "Mutter", "4")],
}))
