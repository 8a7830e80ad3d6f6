# SPDX-License-Identifier: Apache-2.0
import json
import sys
import time

for step in range(json.load(sys.stdin)["steps"]):
    print("step", step, flush=True)
    time.sleep(0.2)
