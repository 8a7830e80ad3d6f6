"""Describes the columns of a table and draws them. SKILL.md says how to call it."""

import csv
import io
import json
import os
import pathlib
import sys

import chart
import figures

ASSETS = pathlib.Path(__file__).resolve().parent.parent / "assets"


def read_table(text):
    """The labels, and the columns as {name: [number or None, ...]}."""
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    if len(rows) < 2:
        raise ValueError("the table needs a heading and at least one row")
    heading, body = rows[0], rows[1:]
    columns = {name: [] for name in heading[1:]}
    if len(columns) != len(heading) - 1 or not columns:
        raise ValueError("the heading needs a label column and distinct names")
    for number, row in enumerate(body, start=2):
        if len(row) != len(heading):
            raise ValueError(f"line {number} has {len(row)} cells, not {len(heading)}")
        for name, cell in zip(heading[1:], row[1:]):
            try:
                columns[name].append(float(cell) if cell.strip() else None)
            except ValueError:
                raise ValueError(f"line {number}: {cell!r} is not a number") from None
    return [row[0] for row in body], columns


def main():
    request = json.loads(os.environ.get("SANDBOX_INPUT") or sys.stdin.read() or "{}")
    text = request.get("csv")
    if text is None:
        text = (ASSETS / "river-levels.csv").read_text(encoding="utf-8")
    labels, columns = read_table(text)
    summary = {name: figures.describe(labels, values) for name, values in columns.items()}
    title = str(request.get("title", "River levels, m"))

    files = pathlib.Path(os.environ["SANDBOX_FILES_DIR"])
    (files / "chart.svg").write_text(chart.draw(title, labels, columns), encoding="utf-8")
    with (files / "summary.csv").open("w", encoding="utf-8", newline="") as file:
        names = ["count", "mean", "median", "stdev", "min", "max", "slope"]
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["column", *names])
        for column, row in summary.items():
            writer.writerow([column, *(row[name] for name in names)])
    with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
        json.dump({"rows": len(labels), "columns": summary}, file)
    for column, row in summary.items():
        print(f"{column}: mean {row['mean']}, from {row['min']} to {row['max']}")


if __name__ == "__main__":
    try:
        main()
    except ValueError as problem:
        sys.exit(f"data-analysis: {problem}")
