"""Pages as PNG, no larger than 1000 pixels: convert_pdf_to_images.py FILE.pdf FOLDER"""

import subprocess
import sys
from pathlib import Path

from PIL import Image


def convert(pdf, folder, longest=1000):
    subprocess.run(["pdftoppm", "-r", "110", "-png", str(pdf), str(Path(folder) / "page")], check=True)
    sizes = {}
    for path in sorted(Path(folder).glob("page*.png")):
        image = Image.open(path)
        if max(image.size) > longest:
            image.thumbnail((longest, longest))
            image.save(path)
        sizes[path.name] = list(image.size)
    return sizes


if __name__ == "__main__":
    print(convert(sys.argv[1], sys.argv[2]))
