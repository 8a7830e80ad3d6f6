"""Text in pictures; see SKILL.md."""

import csv
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, ImageOps

FILES = Path(os.environ["SANDBOX_FILES_DIR"])


def draw(path):
    image = Image.new("L", (620, 150), 255)
    pen = ImageDraw.Draw(image)
    font = ImageFont.truetype("DejaVuSans.ttf", 34)
    pen.text((20, 20), "Invoice number 20417", font=font, fill=0)
    pen.text((20, 80), "Total: 1250.75 EUR", font=font, fill=40)
    image.save(path)


def prepare(path):
    image = ImageOps.autocontrast(ImageOps.exif_transpose(Image.open(path)).convert("L"))
    ready = Path("/tmp") / (path.stem + ".ready.png")
    image.save(ready, dpi=(150, 150))
    return ready


def tesseract(*arguments):
    done = subprocess.run(["tesseract", *arguments], capture_output=True, text=True, env={**os.environ, "OMP_THREAD_LIMIT": "1"})
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


given = Path(os.environ["SANDBOX_INPUT_DIR"])
pictures = sorted([*given.glob("*.png"), *given.glob("*.jpg")])
if not pictures:
    draw(FILES / "page.png")
    pictures = [FILES / "page.png"]
found = {}
for picture in pictures:
    ready = prepare(picture)
    tesseract(str(ready), "/tmp/read", "--psm", "6", "-l", "eng", "txt", "tsv", "pdf")
    rows = csv.DictReader(io.StringIO(Path("/tmp/read.tsv").read_text()), delimiter="\t", quoting=csv.QUOTE_NONE)
    words = [row for row in rows if row["level"] == "5" and float(row["conf"]) > 60]
    found[picture.name] = {
        "lines": [line for line in Path("/tmp/read.txt").read_text().splitlines() if line.strip()],
        "words": len(words),
        "first_left_of": int(words[0]["left"]) < 40 if words else None,
    }
    shutil.move("/tmp/read.pdf", FILES / f"{picture.stem}.searchable.pdf")
behind = subprocess.run(["pdftotext", FILES / "page.searchable.pdf", "-"], capture_output=True, text=True).stdout
languages = tesseract("--list-langs").split("\n")[1:]
print(json.dumps({"found": found, "searchable": "20417" in behind, "english": "eng" in languages}))
