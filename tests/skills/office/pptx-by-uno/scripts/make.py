"""Slides made through UNO and read again; see SKILL.md."""

import json
import os
import subprocess
import time
import zipfile
from pathlib import Path

import uno
from com.sun.star.awt import Point, Size
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException
from lxml import etree
from PIL import Image

FILES = Path(os.environ["SANDBOX_FILES_DIR"])
TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
slides = json.loads(os.environ["SANDBOX_INPUT"])["slides"]


def connect(process):
    """The office's own context, once it answers."""
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    while process.poll() is None:
        try:
            return resolver.resolve("uno:pipe,name=slides;urp;StarOffice.ComponentContext")
        except NoConnectException:
            time.sleep(0.1)
    raise SystemExit(f"soffice ended with {process.returncode}")


def properties(**values):
    return tuple(PropertyValue(name, 0, value, 0) for name, value in values.items())


def add_text(document, page, text, y, height):
    shape = document.createInstance("com.sun.star.drawing.TextShape")
    shape.Position, shape.Size = Point(2000, y), Size(20000, height)
    page.add(shape)
    shape.String = text


process = subprocess.Popen(["soffice", "--headless", "--norestore", "--accept=pipe,name=slides;urp;"],
                           stderr=subprocess.DEVNULL)
context = connect(process)
desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
document = desktop.loadComponentFromURL("private:factory/simpress", "_blank", 0, properties(Hidden=True))
pages = document.DrawPages
while pages.Count < len(slides):
    pages.insertNewByIndex(pages.Count)
for n, slide in enumerate(slides):
    add_text(document, pages.getByIndex(n), slide["title"], 2000, 2000)
    add_text(document, pages.getByIndex(n), "\n".join(slide["points"]), 6000, 8000)
deck = (FILES / "deck.pptx").as_uri()
document.storeToURL(deck, properties(FilterName="Impress MS PowerPoint 2007 XML"))
document.close(True)

again = desktop.loadComponentFromURL(deck, "_blank", 0, properties(Hidden=True))
found = [[page.getByIndex(n).String for n in range(page.Count) if page.getByIndex(n).String]
         for page in map(again.DrawPages.getByIndex, range(again.DrawPages.Count))]
again.storeToURL((FILES / "deck.pdf").as_uri(), properties(FilterName="impress_pdf_Export"))
again.close(True)
desktop.terminate()
ended = process.wait()

with zipfile.ZipFile(FILES / "deck.pptx") as parts:
    xml = etree.fromstring(parts.read("ppt/slides/slide1.xml"))
subprocess.run(["pdftoppm", "-png", "-r", "40", FILES / "deck.pdf", FILES / "slide"], check=True)
text = subprocess.run(["pdftotext", FILES / "deck.pdf", "-"], capture_output=True, text=True, check=True).stdout
print(json.dumps({
    "found": found,
    "xml": [item.text for item in xml.iter(TEXT)],
    "pdf": [title in text for title in (slide["title"] for slide in slides)],
    "pictures": [Image.open(path).format for path in sorted(FILES.glob("slide-*.png"))],
    "drawn": all(len(Image.open(path).convert("L").getcolors()) > 2 for path in FILES.glob("slide-*.png")),
    "ended": ended,
}))
