"""Formulas computed by LibreOffice and read again; see SKILL.md."""

import csv
import json
import os
import subprocess
from pathlib import Path

from openpyxl import Workbook, load_workbook

FILES = Path(os.environ["SANDBOX_FILES_DIR"])
CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"
given = json.loads(os.environ["SANDBOX_INPUT"])["rows"]


def convert(to, source, folder):
    subprocess.run(["soffice", "--headless", "--norestore", "--convert-to", to, "--outdir", folder, source],
                   check=True, capture_output=True)


book = Workbook()
sheet = book.active
sheet.title = "Orders"
sheet.append(["item", "amount", "price", "total"])
for n, row in enumerate(given, 2):
    sheet.append([*row, f"=B{n}*C{n}"])
last = len(given) + 1
sheet.append(["sum", f"=SUM(B2:B{last})", None, f"=SUM(D2:D{last})"])
sums = book.create_sheet("Sums")
sums["A1"] = f'=VLOOKUP("{given[0][0]}",Orders!A2:D{last},4,FALSE)'
sums["A2"] = f"=ROUND(AVERAGE(Orders!D2:D{last}),2)"
sums["A3"] = "=1/0"
sums["A4"] = '=TEXT(DATE(2024,2,28)+2,"yyyy-mm-dd")'
book.save("/tmp/orders.xlsx")
before = load_workbook("/tmp/orders.xlsx", data_only=True)["Sums"]["A2"].value

convert("xlsx:Calc MS Excel 2007 XML", "/tmp/orders.xlsx", FILES)
convert(CSV, FILES / "orders.xlsx", FILES)
values = load_workbook(FILES / "orders.xlsx", data_only=True)
formulas = load_workbook(FILES / "orders.xlsx")
print(json.dumps({
    "before": before,
    "totals": [cell.value for cell in values["Orders"]["D"][1:]],
    "sums": [cell.value for cell in values["Sums"]["A"]],
    "formula": formulas["Orders"]["D2"].value,
    "failed": [f"{sheet.title}!{cell.coordinate}" for sheet in values for row in sheet for cell in row
               if cell.data_type == "e"],
    "csv": list(csv.reader((FILES / "orders-Orders.csv").open(encoding="utf-8")))[1],
}))
