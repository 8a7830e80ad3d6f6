"""A workbook with formulas, read back and changed; see SKILL.md."""

import json
import os
import sys
from pathlib import Path

import pandas as pd
from openpyxl import Workbook, load_workbook
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.datavalidation import DataValidation

from recalc import recalc

path = Path(os.environ["SANDBOX_FILES_DIR"]) / "model.xlsx"
rows = json.load(sys.stdin)["rows"]

book = Workbook()
sheet = book.active
sheet.title = "Sales"
sheet.append(["Item", "Count", "Price", "Total"])
for item, count, price in rows:
    n = sheet.max_row + 1
    sheet.append([item, count, price, f"=B{n}*C{n}"])
last = sheet.max_row
sheet.append(["All", f"=SUM(B2:B{last})", None, f"=SUM(D2:D{last})"])
sheet.append(["Mean price", None, f"=D{last + 1}/B{last + 1}"])
for cell in sheet[1]:
    cell.font = Font(bold=True, color="FFFFFF")
    cell.fill = PatternFill("solid", start_color="305496")
for cell in (*sheet["C"], *sheet["D"]):
    cell.number_format = "#,##0.00"
sheet.conditional_formatting.add(f"D2:D{last}", CellIsRule("greaterThan", ["100"], fill=PatternFill(bgColor="FFC7CE")))
choice = DataValidation("list", formula1='"pens,paper,ink"')
sheet.add_data_validation(choice)
choice.add(f"A2:A{last}")
sheet.freeze_panes = "A2"
book.save(path)

# Changed as somebody else's file would be: what is there stays.
book = load_workbook(path)
book.create_sheet("Notes").append(["Ümlaut & <tags>", "日本語"])
sheet = book["Sales"]
sheet["C2"] = sheet["C2"].value * 2
book.save(path)

book = load_workbook(path)
sheet = book["Sales"]
frame = pd.read_excel(path, sheet_name="Sales", nrows=len(rows))
print(json.dumps({
    "sheets": book.sheetnames,
    "formulas": {c.coordinate: c.value for row in sheet.iter_rows() for c in row if c.data_type == "f"},
    "values": recalc(book),
    "bold": [c.value for c in sheet[1] if c.font.bold],
    "format": sheet["D2"].number_format,
    "validation": sheet.data_validations.dataValidation[0].formula1,
    "frozen": sheet.freeze_panes,
    "notes": [c.value for c in book["Notes"][1]],
    "pandas": {"columns": list(frame.columns), "count": int(frame["Count"].sum())},
}))
