"""Build, validate, unpack, edit, pack, validate and read, each by its own script."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = Path(os.environ["SANDBOX_FILES_DIR"])


def run(script, *arguments, check=True):
    done = subprocess.run([sys.executable, ROOT / script, *arguments], capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{script}: {done.stderr or done.stdout}")
    return done.stdout.strip()


outline = Path("/tmp/outline.json")
outline.write_text(sys.stdin.read())
first, second, folder = FILES / "first.pptx", FILES / "second.pptx", Path("/tmp/unpacked")
run("scripts/build.py", outline, first)
parts = int(run("ooxml/scripts/unpack.py", first, folder))
slide = folder / "ppt/slides/slide1.xml"
slide.write_text(slide.read_text().replace("Plan", "Plan &amp; goals"))
run("ooxml/scripts/pack.py", folder, second)

broken = FILES / "broken.pptx"
shutil.rmtree(folder / "ppt/theme")
run("ooxml/scripts/pack.py", folder, broken)
print(json.dumps({
    "parts": parts,
    "first": run("ooxml/scripts/validate.py", first),
    "second": run("ooxml/scripts/validate.py", second),
    "broken": run("ooxml/scripts/validate.py", broken, check=False).split("\n"),
    "slides": json.loads(run("scripts/inventory.py", second)),
}))
