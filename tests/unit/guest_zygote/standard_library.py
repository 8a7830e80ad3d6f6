# Uses much of what is preloaded; all output is determined.
import argparse
import base64
import collections
import csv
import dataclasses
import datetime
import enum
import io
import json
import math
import pathlib
import re
import statistics
import string
import textwrap
import urllib.parse


@dataclasses.dataclass(order=True)
class Row:
    name: str
    value: float = 0.0


class Colour(enum.Enum):
    RED = 1


rows = [Row("b", 2), Row("a", 1.5)]
out = io.StringIO()
csv.writer(out).writerows(dataclasses.astuple(r) for r in sorted(rows))
print("probe:", out.getvalue(), json.dumps({"a": [1, None, True, 1e9]}, indent=1, sort_keys=True))
print(collections.Counter("hello").most_common(2), math.tau, Colour.RED, Colour["RED"].value)
print(datetime.datetime.fromtimestamp(0), datetime.date(2024, 2, 29).isocalendar())
print(re.sub(r"(\w+) (\w+)", r"\2 \1", "one two"), statistics.median([1, 3, 2]))
print(textwrap.fill("word " * 20, 30), string.Template("$x").substitute(x=1))
print(urllib.parse.urlsplit("http://u@h:1/p?q#f"), pathlib.PurePath("a/b.c").suffix)
print(base64.b64encode(b"probe"), json.loads('{"x": [1.5]}'))
parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int, required=True)
parser.parse_args([])
