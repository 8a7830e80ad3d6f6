"""Roads as XLS, OpenDocument, HTML and text in an old character set, each read back; then ways and groups in them."""

import json
import os
import sys
from pathlib import Path

import chardet
import markdown2
import networkx
import pandas
import xlrd
import xlwt
from bs4 import BeautifulSoup
from odf.opendocument import load
from odf.table import Table, TableRow
from sklearn.cluster import KMeans

FILES = Path(os.environ["SANDBOX_FILES_DIR"])
asked = json.load(sys.stdin)
roads = asked["roads"]

book = xlwt.Workbook(encoding="utf-8")
sheet = book.add_sheet("Straßen")
for row, values in enumerate([["from", "to", "km"], *roads]):
    for column, value in enumerate(values):
        sheet.write(row, column, value)
sheet.write(len(roads) + 1, 2, xlwt.Formula(f"SUM(C2:C{len(roads) + 1})"))
book.save(str(FILES / "roads.xls"))
old = xlrd.open_workbook(FILES / "roads.xls").sheet_by_index(0)

frame = pandas.DataFrame(roads, columns=["from", "to", "km"])
frame.to_excel(FILES / "roads.ods", engine="odf", index=False)
read = pandas.read_excel(FILES / "roads.ods", engine="odf")
tables = load(str(FILES / "roads.ods")).getElementsByType(Table)

# Nothing is closed, and there is no body.
page = "<table><tr><th>from<th>to" + "".join(f"<tr><td>{a}<td>{b}" for a, b, _ in roads)
cells = [cell.get_text() for cell in BeautifulSoup(page, "html5lib").select("tbody td")]

text = "Дорога открыта для пешеходов, мост через реку закрыт до весны. " * 4
guessed = chardet.detect(text.encode("windows-1251"))["encoding"]
html = markdown2.markdown("|a|b|\n|-|-|\n|1|2|\n", extras=["tables"])

ways = networkx.Graph()
ways.add_weighted_edges_from(roads, weight="km")
places = asked["places"]
groups = KMeans(n_clusters=2, n_init=3, random_state=1).fit_predict(list(places.values()))
print(json.dumps({
    "xls": {"name": old.name, "rows": old.nrows, "last": old.row_values(len(roads))},
    "ods": {"tables": len(tables), "rows": len(tables[0].getElementsByType(TableRow)), "km": int(read["km"].sum())},
    "html": cells[:2] + [len(cells)],
    "charset": guessed,
    "markdown": "<td>2</td>" in html,
    "way": networkx.dijkstra_path(ways, *asked["way"], weight="km"),
    "km": networkx.dijkstra_path_length(ways, *asked["way"], weight="km"),
    "together": sorted(name for name, group in zip(places, groups) if group == groups[0]),
}))
