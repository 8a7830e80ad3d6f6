"""A report made by reportlab, taken apart and read by others; see SKILL.md."""

import json
import os
import subprocess
from pathlib import Path

from pdfminer.high_level import extract_text
from pdfminer.layout import LTTextContainer
from pdfminer.high_level import extract_pages
from pypdf import PdfReader, PdfWriter
from reportlab.graphics.charts.barcharts import VerticalBarChart
from reportlab.graphics.shapes import Drawing
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

FILES = Path(os.environ["SANDBOX_FILES_DIR"])
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
report, merged, locked = FILES / "report.pdf", FILES / "merged.pdf", FILES / "locked.pdf"

pdfmetrics.registerFont(TTFont("DejaVu", FONT))
styles = getSampleStyleSheet()
styles["Normal"].fontName = "DejaVu"
bars = Drawing(300, 120)
chart = VerticalBarChart()
chart.data, chart.width, chart.height = [(3, 5, 8)], 260, 100
bars.add(chart)
table = Table([["Item", "Price"], ["Füller", "12,00 €"], ["Ink", "4,50 €"]])
table.setStyle(TableStyle([
    ("GRID", (0, 0), (-1, -1), 0.5, colors.grey),
    ("FONTNAME", (0, 0), (-1, -1), "DejaVu"),
    ("BACKGROUND", (0, 0), (-1, 0), colors.lightblue),
]))
SimpleDocTemplate(str(report), pagesize=A4, title="Prices", author="Example").build([
    Paragraph("Prices", styles["Title"]), Spacer(1, 12),
    Paragraph("H<sub>2</sub>O, x<super>2</super>, Ελλάδα, кириллица, „quoted“", styles["Normal"]),
    table, bars, PageBreak(), Paragraph("The second page", styles["Normal"]),
])

writer = PdfWriter()
for source in (report, report):
    writer.append(PdfReader(source))
writer.pages[0].rotate(90)
writer.add_metadata({"/Title": "Twice"})
writer.write(merged)
subprocess.run(["qpdf", "--encrypt", "user", "owner", "256", "--", merged, locked], check=True)
wrong = subprocess.run(["qpdf", "--password=wrong", "--check", locked], capture_output=True)
subprocess.run(["qpdf", "--password=user", "--decrypt", locked, FILES / "open.pdf"], check=True)
subprocess.run(["qpdf", "--empty", "--pages", FILES / "open.pdf", "2,4", "--", FILES / "even.pdf"], check=True)
reader = PdfReader(locked)
unlocked = reader.decrypt("user")

layout = subprocess.run(["pdftotext", "-f", "1", "-l", "1", "-layout", report, "-"], capture_output=True, text=True, check=True).stdout
fonts = subprocess.run(["pdffonts", report], capture_output=True, text=True, check=True).stdout
boxes = [box for page in extract_pages(report, maxpages=1) for box in page if isinstance(box, LTTextContainer)]
print(json.dumps({
    "miner": [line.strip() for line in extract_text(report).split("\n") if line.strip() and "page" in line],
    "topmost": max(boxes, key=lambda box: box.y1).get_text().strip(),
    "rows": [line.split() for line in layout.splitlines() if "€" in line],
    "scripts": "Ελλάδα, кириллица, „quoted“" in layout,
    "embedded": any("DejaVuSans" in line and "yes yes yes" in line for line in fonts.splitlines()),
    "title": PdfReader(report).metadata.title,
    "merged": [len(PdfReader(merged).pages), PdfReader(merged).pages[0].get("/Rotate"), PdfReader(merged).metadata.title],
    "wrong_password": wrong.returncode,
    "unlocked": int(unlocked),
    "even": [page.extract_text().strip() for page in PdfReader(FILES / "even.pdf").pages],
}))
