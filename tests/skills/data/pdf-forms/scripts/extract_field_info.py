"""The fields of a form as JSON: extract_field_info.py FILE.pdf"""

import json
import sys

from pypdf import PdfReader

KINDS = {"/Tx": "text", "/Btn": "checkbox", "/Ch": "choice"}


def get_field_info(reader):
    fields = {}
    for number, page in enumerate(reader.pages, start=1):
        for annotation in page.get("/Annots") or []:
            annotation = annotation.get_object()
            name = annotation.get("/T")
            if name is None:
                continue
            info = {"kind": KINDS.get(annotation.get("/FT"), "unknown"), "page": number}
            if info["kind"] == "checkbox":
                info["states"] = sorted(annotation["/AP"]["/N"])
            if info["kind"] == "choice":
                info["options"] = [o[0] if isinstance(o, list) else o for o in annotation["/Opt"]]
            info["rect"] = [round(float(n)) for n in annotation["/Rect"]]
            fields[str(name)] = info
    return fields


if __name__ == "__main__":
    print(json.dumps(get_field_info(PdfReader(sys.argv[1]))))
