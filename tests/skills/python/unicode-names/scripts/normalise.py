"""Input files by the names they should have; see SKILL.md."""

import json
import locale
import os
import sys
import unicodedata
from pathlib import Path

asset = Path(__file__).parents[1] / "assets" / "grüße 😀.txt"
files = Path(os.environ["SANDBOX_FILES_DIR"])
seen = {}
for path in sorted(Path(os.environ["SANDBOX_INPUT_DIR"]).rglob("*")):
    if path.is_file():
        composed = unicodedata.normalize("NFC", path.name)
        seen.setdefault(composed, []).append(path)
for name, paths in seen.items():
    (files / name).write_text("".join(p.read_text(encoding="utf-8") for p in paths), encoding="utf-8")
print("naïve café 日本語 😀", file=sys.stderr)
print(json.dumps({
    "asset": asset.read_text(encoding="utf-8").strip(),
    "names": {
        name: sorted("NFC" if unicodedata.is_normalized("NFC", p.name) else "NFD" for p in paths)
        for name, paths in seen.items()
    },
    "written": {name: (files / name).read_text(encoding="utf-8").splitlines() for name in os.listdir(files)},
    "argument": sys.argv[1],
    "environment": os.environ["GREETING"],
    "encodings": [sys.getfilesystemencoding(), sys.stdout.encoding.lower(), locale.getpreferredencoding().lower()],
    "instructions": os.environ["SKILL_INSTRUCTIONS"].split("\n")[0],
    "wide": "\U0001F469\u200D\U0001F4BB",
}, ensure_ascii=False))
