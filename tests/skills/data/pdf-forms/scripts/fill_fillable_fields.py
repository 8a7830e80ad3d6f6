"""Fills a form: fill_fillable_fields.py FORM.pdf VALUES.json FILLED.pdf"""

import json
import sys

from pypdf import PdfReader, PdfWriter
from pypdf.generic import BooleanObject, NameObject

from extract_field_info import get_field_info


def fill(source, values, target):
    reader = PdfReader(source)
    info = get_field_info(reader)
    for name, value in values.items():
        if name not in info:
            sys.exit(f"ERROR: there is no field {name}; fields are {', '.join(sorted(info))}")
        states = info[name].get("states") or info[name].get("options")
        if states and value not in states:
            sys.exit(f"ERROR: {value} is none of {', '.join(states)} for {name}")
    writer = PdfWriter()
    writer.append(reader)
    for page in writer.pages:
        writer.update_page_form_field_values(page, values)
    writer._root_object["/AcroForm"][NameObject("/NeedAppearances")] = BooleanObject(True)
    with open(target, "wb") as file:
        writer.write(file)


if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        fill(sys.argv[1], json.load(file), sys.argv[3])
