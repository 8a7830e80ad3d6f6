"""Evaluates the formulas of a small model: SUM over a column, products and quotients of cells."""

import re

from openpyxl.utils import range_boundaries

CELL = re.compile(r"\b([A-Z]{1,3}[0-9]+)\b")
SUM = re.compile(r"SUM\(([A-Z]+[0-9]+:[A-Z]+[0-9]+)\)")


def value(sheet, name, seen=()):
    if name in seen:
        raise ValueError(f"{name} refers to itself")
    content = sheet[name].value
    if not isinstance(content, str) or not content.startswith("="):
        return content or 0
    seen = (*seen, name)

    def total(match):
        left, top, right, bottom = range_boundaries(match[1])
        cells = (sheet.cell(r, c).coordinate for r in range(top, bottom + 1) for c in range(left, right + 1))
        return repr(sum(value(sheet, cell, seen) for cell in cells))

    text = SUM.sub(total, content[1:])
    text = CELL.sub(lambda m: repr(value(sheet, m[1], seen)), text)
    if not re.fullmatch(r"[0-9.eE+*/() -]+", text):
        raise ValueError(f"{name}: {content} is more than this understands")
    return eval(text, {"__builtins__": {}})


def recalc(workbook):
    """{sheet!cell: value} of all formulas, or what is wrong with them."""
    found = {}
    for sheet in workbook:
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, str) and cell.value.startswith("="):
                    try:
                        found[f"{sheet.title}!{cell.coordinate}"] = round(value(sheet, cell.coordinate), 6)
                    except ZeroDivisionError:
                        found[f"{sheet.title}!{cell.coordinate}"] = "#DIV/0!"
    return found
