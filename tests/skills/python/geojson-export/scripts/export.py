"""A large output; see SKILL.md."""

import gzip
import hashlib
import json
import os
import sys

request = json.load(sys.stdin)
features, digest = [], hashlib.sha256()
with gzip.open(os.environ["SANDBOX_FILES_DIR"] + "points.ndjson.gz", "wt", compresslevel=1) as file:
    for n in range(request["points"]):
        feature = {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [n % 360 - 180, n // 360 / 8]},
            "properties": {"id": n, "name": f"Pünkt {n}"},
        }
        line = json.dumps(feature, ensure_ascii=False)
        file.write(line + "\n")
        digest.update(line.encode())
        if not request.get("file_only"):
            features.append(feature)
with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
    json.dump({"type": "FeatureCollection", "features": features, "digest": digest.hexdigest()}, file, ensure_ascii=False)
print(os.path.getsize(os.environ["SANDBOX_OUTPUT"]), "bytes", file=sys.stderr)
