import json
import os

with open(os.environ["SANDBOX_OUTPUT"], "w") as f:
    json.dump({"hello": "world"}, f)
