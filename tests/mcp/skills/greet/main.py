# SPDX-License-Identifier: Apache-2.0
import json
import os

given = json.loads(os.environ["SANDBOX_INPUT"])
print("greeting", given["name"])
with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
    json.dump({"greeting": " ".join(["hello " + given["name"]] * given.get("times", 1))}, file)
