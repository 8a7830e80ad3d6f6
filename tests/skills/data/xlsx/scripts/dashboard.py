"""A workbook with a chart by xlsxwriter; see SKILL.md."""

import json
import os
import zipfile

import pandas as pd
import xlsxwriter
from openpyxl import load_workbook

path = os.environ["SANDBOX_FILES_DIR"] + "dashboard.xlsx"
months = ["Jan", "Feb", "Mar", "Apr"]
with xlsxwriter.Workbook(path) as book:
    sheet = book.add_worksheet("Data")
    money = book.add_format({"num_format": "#,##0", "bold": True})
    sheet.write_row(0, 0, ["Month", "Income"])
    for n, month in enumerate(months, start=1):
        sheet.write(n, 0, month)
        sheet.write(n, 1, n * 100)
    # With the value that a reader who does not calculate is shown.
    sheet.write_formula(5, 1, "=SUM(B2:B5)", money, 1000)
    sheet.write_url(6, 0, "https://example.org/", string="Source")
    chart = book.add_chart({"type": "column"})
    chart.add_series({"categories": "=Data!$A$2:$A$5", "values": "=Data!$B$2:$B$5", "name": "Income"})
    sheet.insert_chart("D2", chart)
frame = pd.DataFrame({"region": ["n", "s", "n"], "sales": [1, 2, 3.5]})
with pd.ExcelWriter(os.environ["SANDBOX_FILES_DIR"] + "pivot.xlsx", engine="xlsxwriter") as writer:
    frame.pivot_table(index="region", values="sales", aggfunc="sum").to_excel(writer, sheet_name="Pivot")
with zipfile.ZipFile(path) as archive:
    charts = [name for name in archive.namelist() if name.startswith("xl/charts/")]
print(json.dumps({
    "cached": load_workbook(path, data_only=True)["Data"]["B6"].value,
    "formula": load_workbook(path)["Data"]["B6"].value,
    "link": load_workbook(path)["Data"]["A7"].hyperlink.target,
    "charts": charts,
    "pivot": pd.read_excel(os.environ["SANDBOX_FILES_DIR"] + "pivot.xlsx").values.tolist(),
}))
