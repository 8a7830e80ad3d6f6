# SPDX-License-Identifier: Apache-2.0
"""Tenants that are deleted while they are at work: whatever comes through at which moment, every
answer is a proper one, and nothing of a tenant is left, on disk or in the database."""

import collections
import os
import sqlite3
import threading
import time
import unittest

import described
import stand_in
from test_conformance import skill

ROUNDS = 5
WORKERS = 4
# What a tenant at work may hear, and one that is gone.
PROPER = {200, 201, 401, 404, 429}


class Deletion(unittest.TestCase):
    def setUp(self):
        self.daemon = stand_in.Daemon("--max-running", "2", "--max-queued", "100")
        self.description = described.Description()
        self.http = self.session()
        self.seen = collections.Counter()

    def tearDown(self):
        self.daemon.close()

    def session(self, key=None):
        return described.Session(self.description, socket_path=self.daemon.socket, key=key)

    def work(self, number, key, stopped):
        http = self.session(key)
        turn = 0
        while not stopped.is_set():
            turn += 1
            for method, path, body, kind in (
                    ("POST", "/v1/skills", skill("busy", f"{number}.{turn}"), "application/zip"),
                    ("POST", "/v1/files", os.urandom(64), "application/octet-stream"),
                    ("POST", "/v1/executions", {"skill": "busy", "env": {"FAKE": "files"}}, None),
                    ("GET", "/v1/executions", None, None)):
                answer = http.request(method, path, body, {"Content-Type": kind} if kind else None)
                self.seen[answer.status] += 1
                if answer.status not in PROPER:
                    self.seen["improper", method, path, answer.body] += 1

    def wait_for_more(self, status):
        """Until somebody at work got such an answer."""
        before = self.seen[status]
        deadline = time.monotonic() + 60
        while self.seen[status] == before:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def delete_at_work(self, name):
        tenant = self.http.post("/v1/admin/tenants", {"name": name}).json["id"]
        key = self.http.post("/v1/admin/keys", {"tenant": tenant}).json["key"]
        stopped = threading.Event()
        workers = [threading.Thread(target=self.work, args=(n, key, stopped))
                   for n in range(WORKERS)]
        for worker in workers:
            worker.start()
        self.wait_for_more(201)
        deadline = time.monotonic() + 60
        while self.http.delete(f"/v1/admin/tenants/{tenant}").status != 204:
            self.assertLess(time.monotonic(), deadline)
        self.wait_for_more(401)
        stopped.set()
        for worker in workers:
            worker.join()

    def test_nothing_is_left(self):
        for turn in range(ROUNDS):
            self.delete_at_work(f"t{turn}")
        self.assertEqual([what for what in self.seen if isinstance(what, tuple)], [])
        self.assertGreater(self.seen[201], 0)
        self.assertGreater(self.seen[401], 0)
        self.assertEqual(self.daemon.stop(), 0)
        data = self.daemon.dir / "data"
        self.assertEqual(os.listdir(data / "objects"), [])
        self.assertEqual(os.listdir(data / "tmp"), [])
        database = sqlite3.connect(data / "skillvm.db")
        for table in ("skills", "executions", "files", "keys", "usage", "tool_schemas"):
            rows = database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
            self.assertEqual((table, *rows), (table, 0))
        self.assertEqual(database.execute("SELECT id, stored_bytes FROM tenants").fetchall(),
                         [("default", 0)])
        database.close()


if __name__ == "__main__":
    unittest.main()
