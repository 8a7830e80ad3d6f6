"""What is in a folder; see SKILL.md."""

import argparse
import collections
import csv
import hashlib
import json
import os
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--digest", default="sha256", choices=sorted(hashlib.algorithms_guaranteed - {"shake_128", "shake_256"}))
args = parser.parse_args()

root = Path(os.environ["SANDBOX_INPUT_DIR"])
rows, same, kinds = [], collections.defaultdict(list), collections.Counter()
for path in sorted(p for p in root.rglob("*") if p.is_file()):
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, args.digest).hexdigest()
    name = str(path.relative_to(root))
    rows.append((name, path.stat().st_size, digest))
    same[digest].append(name)
    kinds[path.suffix] += 1
with open(os.environ["SANDBOX_FILES_DIR"] + "inventory.csv", "w", newline="") as file:
    csv.writer(file).writerows([("name", "bytes", args.digest), *rows])
print(json.dumps({
    "files": len(rows),
    "folders": len({os.path.dirname(name) for name, *_ in rows}),
    "bytes": sum(size for _, size, _ in rows),
    "kinds": dict(kinds),
    "duplicates": [names for names in same.values() if len(names) > 1],
}))
