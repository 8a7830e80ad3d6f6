# SPDX-License-Identifier: Apache-2.0
"""A skill that looks for what another execution left, and leaves some of each kind itself."""

TRACES = r"""
import json, os, pathlib, random, subprocess, sys, uuid

def processes():
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                uid = os.stat(f"/proc/{entry}").st_uid
                line = open(f"/proc/{entry}/cmdline").read().replace("\0", " ").strip()
            except OSError:
                continue
            if uid == os.getuid():
                found.append(line)
    return found

marker = pathlib.Path("/tmp/marker")
report = {
    "marker": marker.exists(),
    "tmp": sorted(os.listdir("/tmp")),
    "env": os.environ.get("LEFT_BY_ANOTHER"),
    "processes": processes(),
    "sandbox": sorted(os.listdir("/sandbox/out")),
    "random": [random.random(), os.urandom(16).hex(), str(uuid.uuid4())],
}
marker.write_text("left")
os.environ["LEFT_BY_ANOTHER"] = "1"
pathlib.Path("/sandbox/out/files/left.txt").write_text("left")
subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
json.dump(report, open(os.environ["SANDBOX_OUTPUT"], "w"))
"""
