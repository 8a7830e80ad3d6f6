"""Means by station of a large table; see SKILL.md."""

import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
import pandas as pd

KINDS = {"station": "category", "hour": "int32", "value": "float32", "quality": "int8"}


def make(path, mib):
    """Rows of 32 bytes; the value of each station is its number on average."""
    block = 20000
    hours = np.arange(block)
    stations = hours % 16
    values = stations + 10 + np.where(hours // 16 % 2, 0.5, -0.5)
    with open(path, "w") as file:
        file.write("station,hour,value,quality,comment\n")
        text = "".join(
            f"st{s:02d},{h:08d},{v:07.3f},{h % 3},nothing\n" for s, h, v in zip(stations, hours, values)
        )
        rows = 0
        while file.tell() < mib << 20:
            file.write(text)
            rows += block
    return rows


request = json.load(sys.stdin)
source = Path(os.environ["SANDBOX_INPUT_DIR"]) / "data.csv"
made = None
if not source.exists():
    source = Path("/tmp/data.csv")
    made = make(source, request["mib"])
sums, rows = None, 0
for chunk in pd.read_csv(source, dtype=KINDS, usecols=list(KINDS), chunksize=200_000):
    rows += len(chunk)
    part = chunk.groupby("station", observed=False)["value"].agg(["sum", "count"])
    sums = part if sums is None else sums.add(part, fill_value=0)
means = (sums["sum"] / sums["count"]).rename("mean").sort_index()
summary = os.environ["SANDBOX_FILES_DIR"] + "summary.csv"
means.to_csv(summary)
means = pd.read_csv(summary, index_col="station")["mean"]
print(json.dumps({
    "bytes": source.stat().st_size,
    "rows": rows,
    "all_read": made in (None, rows),
    "stations": len(means),
    "means": {name: round(float(value), 3) for name, value in means.iloc[[0, -1]].items()},
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
}))
