# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up: what does not fit is refused with the reason and leaves nothing behind,
what was there stays, and everything works again once there is room.

The data folder is a small file system in a mount namespace of the daemon's own; where the kernel
does not allow that, the test is skipped.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import checked
import stand_in

ROOM_MIB = 24
WRAPPER = """#!/bin/sh
exec unshare --map-root-user --mount sh -c '
    real=$1 && shift
    for word in "$@"; do
        [ "$last" = --data ] && data=$word
        last=$word
    done
    mkdir -p "$data" && mount -t tmpfs -o size={room}m,mode=0700 tmpfs "$data" &&
        exec "$real" "$@"' sh {real} "$@"
"""


def start(watermark):
    wrapper = tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False)
    with wrapper:
        wrapper.write(WRAPPER.format(room=ROOM_MIB, real=os.environ["SKILLVMD"]))
    os.chmod(wrapper.name, 0o700)
    real, os.environ["SKILLVMD"] = os.environ["SKILLVMD"], wrapper.name
    os.environ["SKILLVM_WATERMARKS_DISK_FREE"] = watermark
    os.environ["SKILLVM_WATERMARKS_MEMORY_FREE"] = "0"
    try:
        return stand_in.Daemon()
    finally:
        os.unlink(wrapper.name)
        os.environ["SKILLVMD"] = real


def frees(data, wanted):
    """What had come goes with its connection, a moment after the answer."""
    def has_room():
        disk = os.statvfs(data)
        return disk.f_bavail * disk.f_bsize > wanted

    return checked.wait_until(has_room, 60)


def check_watermark(failures):
    """Below a watermark a body is refused while it comes, and keeps none of the room it took."""
    daemon = start(f"{ROOM_MIB // 2}MiB")
    api = Api(daemon, failures)
    data = Path(f"/proc/{daemon.process.pid}/root{daemon.dir}/data")
    api.upload([201], 1 << 20)

    def slowly():
        # The daemon looks at its disk once in a while, not at every byte.
        for _ in range(2 * ROOM_MIB):
            yield bytes(1 << 20)
            time.sleep(0.1)

    error = json.loads(api.expect([503], "POST", "/v1/files", slowly(),
                                  "application/octet-stream"))
    failures.unless(error["error"] == "overloaded", f"the reason is {error}")
    failures.unless(frees(data, ROOM_MIB * 3 // 4 << 20), "what was refused stays on the disk")
    api.await_room()
    daemon.close()


def fill(data):
    """Takes every block there is."""
    try:
        with open(data / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(65536))
    except OSError:
        pass


class Api:
    def __init__(self, daemon, failures):
        self.socket = daemon.socket
        self.failures = failures

    def expect(self, expected, method, path, body=None, kind="application/json"):
        status, text = checked.request(self.socket, method, path, body, kind)
        self.failures.unless(status in expected, f"{method} {path}: {status} {text[:200]}")
        return text

    def await_room(self):
        """Until the daemon takes a file again: it looks at its disk once a second at most."""
        def takes_one():
            return checked.request(self.socket, "POST", "/v1/files?name=f", bytes(1 << 20),
                                   "application/octet-stream")[0] == 201

        self.failures.unless(checked.wait_until(takes_one, 60), "room is not seen again")

    def upload(self, expected, size, name="f"):
        return self.expect(expected, "POST", f"/v1/files?name={name}", os.urandom(size),
                           "application/octet-stream")


def main():
    if subprocess.run(["unshare", "--map-root-user", "--mount", "true"], check=False,
                      capture_output=True).returncode != 0:
        print("SKIP: no mount namespaces here")
        return 77
    failures = checked.Failures()
    check_watermark(failures)
    daemon = start("0")
    api = Api(daemon, failures)
    data = Path(f"/proc/{daemon.process.pid}/root{daemon.dir}/data")
    store = checked.Store(data)
    api.expect([201], "POST", "/v1/skills", checked.skill_tar("demo", "1"),
               "application/octet-stream")
    kept = json.loads(api.upload([201], 1 << 20))
    # Twice what is left: refused by its length, or while it comes.
    error = json.loads(api.upload([503], 2 * ROOM_MIB << 20))
    failures.unless(error["error"] == "overloaded", f"the reason is {error}")
    chunks = (bytes(1 << 20) for _ in range(2 * ROOM_MIB))
    error = json.loads(api.expect([500, 503], "POST", "/v1/files", chunks,
                                  "application/octet-stream"))
    failures.unless("No space left" in error["message"] or error["error"] == "overloaded",
                    f"the reason is {error}")
    failures.unless(frees(data, ROOM_MIB // 2 << 20), "what was refused stays on the disk")
    before = store.objects()
    fill(data)
    for size in (0, 10, 70000, 1 << 20):
        api.upload([201, 500, 503], size)
    api.expect([201, 500, 503], "POST", "/v1/skills", checked.skill_tar("demo", "2", 200000),
               "application/octet-stream")
    for _ in range(3):
        api.expect([200, 500], "POST", "/v1/executions",
                   {"skill": "demo", "env": {"FAKE": "files"}})
    api.expect([200], "GET", "/health")
    api.expect([200], "GET", f"/v1/files/{kept['id']}/download")
    failures.unless(checked.wait_until(lambda: os.listdir(data / "tmp") == [], 60),
                    f"left in tmp: {os.listdir(data / 'tmp')}")
    failures.unless(before <= store.objects(), "an object was lost")
    os.unlink(data / "filler")
    api.await_room()
    result = json.loads(api.expect([200], "POST", "/v1/executions",
                                   {"skill": "demo", "files": [kept["id"]]}))
    failures.unless(result["status"] == "success", f"an execution ended as {result['error']}")
    # SQLite follows links, and this one leads back here: it gets a copy.
    copy = checked.Store(shutil.copytree(data, daemon.dir / "copy",
                                         ignore=shutil.ignore_patterns("*-shm", "snapshots")))
    copy.check(failures)
    unfinished = copy.query("SELECT COUNT(*) FROM executions WHERE finished_ns IS NULL")[0][0]
    print(f"{len(store.objects())} objects, {unfinished} executions whose end had no room")
    failures.unless(daemon.stop() == 0, "the daemon did not stop well")
    daemon.close()
    return failures.report()


if __name__ == "__main__":
    sys.exit(main())
