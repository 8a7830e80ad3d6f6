# SPDX-License-Identifier: Apache-2.0
"""What both stress tests stand on: requests over the socket, and a look at what the data folder
must be like whatever happened to its daemon.
"""

import hashlib
import http.client
import io
import json
import os
import re
import socket
import sqlite3
import sys
import tarfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))

ENDED = ("success", "failed", "timeout", "cancelled")


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.socket_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.socket_path)


def request(path_of_socket, method, path, body=None, kind="application/json"):
    """The status and the body; raises OSError or HTTPException when nobody answers."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    connection = Connection(path_of_socket)
    try:
        connection.request(method, path, body, {"Content-Type": kind, "Connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def skill_tar(name, version, padding=0):
    packed = io.BytesIO()
    texts = {"SKILL.md": f"---\nname: {name}\nversion: \"{version}\"\ndescription: A test.\n---\n",
             "main.py": "print(1)\n" + "#" * padding}
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in texts.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


class Failures:
    """Everything that was not as it must be; more of a kind than anybody reads is counted."""

    def __init__(self):
        self.texts = []
        self.count = 0

    def unless(self, condition, text):
        if condition:
            return
        self.count += 1
        if len(self.texts) < 20:
            self.texts.append(text)

    def report(self):
        for text in self.texts:
            print(f"FAILED: {text}")
        if self.count > len(self.texts):
            print(f"FAILED: and {self.count - len(self.texts)} more")
        return 1 if self.count else 0


class Store:
    """The data folder of a daemon that runs or does not."""

    def __init__(self, data):
        self.data = Path(data)

    def query(self, sql, *values):
        database = sqlite3.connect(f"file:{self.data}/skillvm.db?mode=ro", uri=True, timeout=30)
        try:
            return database.execute(sql, values).fetchall()
        finally:
            database.close()

    def statuses(self):
        return dict(self.query("SELECT status, COUNT(*) FROM executions GROUP BY status"))

    def named(self):
        return {digest for (digest,) in self.query(
            "SELECT digest FROM skills UNION SELECT digest FROM files UNION"
            " SELECT artifact_digest FROM executions WHERE artifact_digest IS NOT NULL")}

    def objects(self):
        return {name for name in os.listdir(self.data / "objects")}

    def disk_bytes(self):
        """What database, log and objects take on disk."""
        paths = [self.data / name for name in ("skillvm.db", "skillvm.db-wal")]
        paths += [self.data / "objects" / name for name in self.objects()]
        total = 0
        for path in paths:
            try:
                total += path.stat().st_blocks * 512
            except FileNotFoundError:
                pass
        return total

    def check(self, failures):
        """Nothing is damaged, every row has its object, nothing is there that no row names."""
        failures.unless(self.query("PRAGMA integrity_check") == [("ok",)], "the database is damaged")
        failures.unless(self.query("PRAGMA foreign_key_check") == [], "a row refers to nothing")
        named, objects = self.named(), self.objects()
        failures.unless(named <= objects, f"rows without objects: {sorted(named - objects)[:3]}")
        failures.unless(objects <= named, f"objects without rows: {sorted(objects - named)[:3]}")
        for digest in objects:
            content = (self.data / "objects" / digest).read_bytes()
            failures.unless(hashlib.sha256(content).hexdigest() == digest,
                            f"object {digest} holds something else")
        failures.unless(os.listdir(self.data / "tmp") == [],
                        f"left in tmp: {os.listdir(self.data / 'tmp')[:3]}")
        stored = self.query(
            "SELECT id, stored_bytes, (SELECT COALESCE(SUM(bytes), 0) FROM skills"
            " WHERE tenant_id = t.id) + (SELECT COALESCE(SUM(bytes), 0) FROM files"
            " WHERE tenant_id = t.id) + (SELECT COALESCE(SUM(result_bytes + artifact_bytes), 0)"
            " FROM executions WHERE tenant_id = t.id) FROM tenants t")
        for tenant, counted, real in stored:
            failures.unless(counted == real, f"{tenant} stores {real} bytes, {counted} are counted")


def machines(path_of_socket, which=""):
    """How many machines there are, or those of one of the metrics by kind."""
    text = request(path_of_socket, "GET", "/metrics")[1].decode()
    return sum(map(int, re.findall(rf"^skillvm_machines{which} (\d+)$", text, re.M)))


def counters(path_of_socket):
    """The executions that this daemon ended, by status."""
    text = request(path_of_socket, "GET", "/metrics")[1].decode()
    found = re.findall(r'^skillvm_executions_total\{status="([a-z]+)"\} (\d+)$', text, re.M)
    return {status: int(count) for status, count in found if int(count) > 0}


def process_figures(pid):
    """Resident memory in KiB, open descriptors, threads."""
    status = Path(f"/proc/{pid}/status").read_text()
    return (int(re.search(r"VmRSS:\s+(\d+)", status)[1]), len(os.listdir(f"/proc/{pid}/fd")),
            int(re.search(r"Threads:\s+(\d+)", status)[1]))


def wait_until(condition, seconds, pause=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(pause)
    return bool(condition())
