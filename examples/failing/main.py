"""Leaves output and an artifact behind, then fails on purpose."""

import json
import os
import pathlib
import sys

print("half of the work is done")
pathlib.Path(os.environ["SANDBOX_FILES_DIR"], "partial.txt").write_text("as far as it came\n")
with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
    json.dump({"done": 1, "of": 2}, file)
print("the other half is not possible", file=sys.stderr)
sys.exit(42)
