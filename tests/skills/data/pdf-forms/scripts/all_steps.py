"""A form made, understood, filled, shown and read back."""

import json
import os
import subprocess
import sys
from pathlib import Path

from PIL import Image, ImageChops
from pypdf import PdfReader

import convert_pdf_to_images
import make_form

HERE = Path(__file__).resolve().parent
FILES = Path(os.environ["SANDBOX_FILES_DIR"])


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


form, filled, values = FILES / "form.pdf", FILES / "filled.pdf", Path("/tmp/values.json")
make_form.make_form(form)
checked = run(sys.executable, HERE / "check_fillable_fields.py", form).stdout.strip()
fields = json.loads(run(sys.executable, HERE / "extract_field_info.py", form).stdout)
values.write_text(sys.stdin.read())
status = run(sys.executable, HERE / "fill_fillable_fields.py", form, values, filled)
if status.returncode:
    print(json.dumps({"refused": status.stderr.strip()}))
    sys.exit()
for name in ("before", "after"):
    (FILES / name).mkdir()
convert_pdf_to_images.convert(form, FILES / "before")
sizes = convert_pdf_to_images.convert(filled, FILES / "after")
differs = {}
for name in sizes:
    before, after = (Image.open(FILES / folder / name).convert("L") for folder in ("before", "after"))
    differs[name] = ImageChops.difference(before, after).getbbox() is not None
print(json.dumps({
    "checked": checked,
    "fields": {name: {k: v for k, v in info.items() if k != "rect"} for name, info in fields.items()},
    "filled": {name: str(field.get("/V")) for name, field in PdfReader(filled).get_fields().items()},
    "pages": sizes,
    "differs": differs,
    "text": run("pdftotext", "-layout", filled, "-").stdout.split(),
}))
