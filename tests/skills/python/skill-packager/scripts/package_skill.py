#!/usr/bin/env python3
"""
Skill packager: validates a skill's folder and makes a .skill file of it.

Usage:
    python -m scripts.package_skill <folder> [<output directory>]
"""

import json
import os
import sys
import zipfile
from pathlib import Path

from scripts.quick_validate import validate_skill

LEFT_OUT = {"__pycache__", ".git", "node_modules", ".DS_Store"}


def package_skill(folder: Path, output: Path) -> list[str]:
    """Packs a valid skill; the names in the archive."""
    with zipfile.ZipFile(output / f"{folder.name}.skill", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not LEFT_OUT & set(path.parts):
                archive.write(path, path.relative_to(folder.parent))
    with zipfile.ZipFile(output / f"{folder.name}.skill") as archive:
        assert archive.testzip() is None
        return archive.namelist()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = Path(os.environ.get("SANDBOX_INPUT_DIR", ".")) / sys.argv[1]
    output = Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("SANDBOX_FILES_DIR", "."))
    print(f"Packaging {folder.name}", file=sys.stderr)
    valid, message = validate_skill(folder)
    names = package_skill(folder, output) if valid else []
    print(json.dumps({"valid": valid, "message": message, "names": names}))
    sys.exit(0 if valid else 1)


if __name__ == "__main__":
    main()
