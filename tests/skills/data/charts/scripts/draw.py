"""Four charts on a page, in three formats, and a look at each; see SKILL.md."""

import json
import os
import subprocess
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lxml import etree
from PIL import Image

FILES = Path(os.environ["SANDBOX_FILES_DIR"])
plt.rcParams["svg.fonttype"] = "none"

days = pd.date_range("2024-01-01", periods=90)
frame = pd.DataFrame({"day": days, "visits": 100 + np.arange(90) * 2 + 20 * np.sin(np.arange(90) / 3)})
frame = frame.set_index("day")

figure, ((line, bar), (scatter, heat)) = plt.subplots(2, 2, figsize=(8, 6), layout="constrained")
frame["visits"].plot(ax=line, color="#305496", title="Visits – täglich")
line.axhline(frame["visits"].mean(), ls="--", color="grey", label="mean")
line.legend()
frame["visits"].resample("MS").mean().plot.bar(ax=bar, title="By month")
draw = np.random.default_rng(3)
x = draw.normal(size=200)
scatter.scatter(x, 2 * x + draw.normal(scale=0.3, size=200), s=8)
slope, intercept = np.polyfit(x, 2 * x, 1)
scatter.set_title(f"$y = {slope:.1f}x$")
heat.imshow(np.outer(np.arange(8), np.arange(8)), cmap="viridis")
heat.set_title("ψ → ∑")
for kind in ("png", "svg", "pdf"):
    figure.savefig(FILES / f"chart.{kind}", dpi=100)

image = Image.open(FILES / "chart.png").convert("RGB")
colors = image.getcolors(1 << 20)
svg = etree.parse(FILES / "chart.svg")
texts = ["".join(e.itertext()).strip() for e in svg.iter("{http://www.w3.org/2000/svg}text")]
pdf = subprocess.run(["pdftotext", FILES / "chart.pdf", "-"], capture_output=True, text=True, check=True).stdout
print(json.dumps({
    "backend": matplotlib.get_backend().lower(),
    "size": list(image.size),
    "blue_drawn": any(color == (0x30, 0x54, 0x96) for _, color in colors),
    "viridis": any(color == (68, 1, 84) for _, color in colors),
    "mostly_white": max(colors)[1] == (255, 255, 255),
    "titles": [t for t in ("Visits – täglich", "By month", "ψ → ∑") if t in texts],
    "in_pdf": "By month" in pdf,
    "mean": round(float(frame["visits"].mean()), 2),
}))
