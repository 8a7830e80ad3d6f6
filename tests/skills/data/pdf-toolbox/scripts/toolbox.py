"""Pages drawn, marked, put together with a picture, encrypted, and read back by another library."""

import io
import json
import os
import sys
from pathlib import Path

import fitz
import img2pdf
import pikepdf
import qrcode
from PyPDF2 import PdfReader

FILES = Path(os.environ["SANDBOX_FILES_DIR"])
asked = json.load(sys.stdin)

drawn = fitz.open()
for number in range(1, asked["pages"] + 1):
    page = drawn.new_page(width=300, height=200)
    page.insert_text((40, 60), f"Sheet {number} of {asked['pages']}", fontsize=18)
    page.draw_rect(fitz.Rect(40, 80, 260, 160), color=(0, 0, 1), fill=(1, 0, 0))
marked = drawn[0].search_for("Sheet")
drawn[0].add_highlight_annot(marked)
drawn.save(FILES / "drawn.pdf")

picture = io.BytesIO()
qrcode.make(asked["code"], box_size=4).convert("L").save(picture, "PNG")
(FILES / "code.pdf").write_bytes(img2pdf.convert(picture.getvalue()))

with pikepdf.open(FILES / "drawn.pdf") as first, pikepdf.open(FILES / "code.pdf") as second:
    both = pikepdf.new()
    both.pages.extend(reversed(first.pages))
    both.pages.extend(second.pages)
    both.pages[0].rotate(90, relative=True)
    with both.open_metadata() as metadata:
        metadata["dc:title"] = "Größen & 日本語"
    both.save(FILES / "both.pdf", encryption=pikepdf.Encryption(owner="owner", user=asked["password"], R=4))

try:
    pikepdf.open(FILES / "both.pdf")
    refused = False
except pikepdf.PasswordError:
    refused = True
reader = PdfReader(FILES / "both.pdf")
encrypted = reader.is_encrypted
opened = reader.decrypt(asked["password"]) != 0
with pikepdf.open(FILES / "both.pdf", password=asked["password"]) as both:
    title = str(both.open_metadata()["dc:title"])
shown = fitz.open(FILES / "both.pdf")
shown.authenticate(asked["password"])
pixels = shown[asked["pages"] - 1].get_pixmap()
print(json.dumps({
    "found": [round(marked[0].x0), len(marked)],
    "annotations": [annotation.type[1] for annotation in shown[asked["pages"] - 1].annots()],
    "refused": refused,
    "encrypted": encrypted,
    "opened": opened,
    "title": title,
    "texts": [page.extract_text().strip() for page in reader.pages],
    "rotated": [page.get("/Rotate", 0) for page in reader.pages],
    "inside": pixels.pixel(150, 120),
    "outside": pixels.pixel(20, 20),
    "pictures": len(shown[len(shown) - 1].get_images()),
}))
