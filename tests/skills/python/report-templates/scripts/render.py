"""Templates filled with data; see SKILL.md."""

import datetime
import json
import os
import sys
from pathlib import Path

import bs4
import jinja2

environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parents[1] / "assets" / "templates"),
    autoescape=jinja2.select_autoescape(["html"]),
    undefined=jinja2.StrictUndefined,
)
environment.filters["money"] = lambda value: f"{value:,.2f} EUR"
environment.filters["day"] = lambda text: f"{datetime.date.fromisoformat(text):%d %B %Y}"

template = environment.get_template(sys.argv[1])
written = {}
for item in json.load(sys.stdin)["items"]:
    try:
        page = template.render(item=item)
    except jinja2.UndefinedError as error:
        sys.exit(f"item {item.get('number', '?')}: {error}")
    path = Path(os.environ["SANDBOX_FILES_DIR"]) / f"{item['number']}.html"
    path.write_text(page)
    soup = bs4.BeautifulSoup(path.read_text(), "html.parser")
    written[path.name] = {
        "title": soup.title.text,
        "texts": [p.text for p in soup.find_all("p")],
        "rows": [[td.text for td in tr.find_all("td")] for tr in soup.find_all("tr")],
        "escaped": "<script>" not in page,
    }
print(json.dumps(written))
