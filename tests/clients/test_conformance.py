# SPDX-License-Identifier: Apache-2.0
"""The API as clients of Skillbox 0.x know it, and as api/openapi.yaml describes it.

Every answer is checked against the description; the last test fails when an answer that is
described was never seen, so a new endpoint needs a test here.
"""

import gzip
import io
import os
import socket
import tarfile
import time
import unittest
import zipfile

import described
import stand_in


def zip_of(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, text in files.items():
            out.writestr(name, text)
    return packed.getvalue()


def skill(name, version="1.0.0", wrapped="", script="print(1)"):
    return zip_of({
        f"{wrapped}SKILL.md": f"---\nname: {name}\nversion: \"{version}\"\nlang: python\n"
                              f"description: Does {name}.\n---\n# How\n",
        f"{wrapped}scripts/main.py": script})


def events_of(text):
    return [tuple(line.partition(": ")[2] for line in block.split("\n"))
            for block in text.strip().split("\n\n")]


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # To others, who look for one too, the port is taken: it stays bound, and the daemon, which
        # has this option as well, may listen there.
        cls.port = socket.socket()
        cls.port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        cls.port.bind(("127.0.0.1", 0))
        cls.address = cls.port.getsockname()
        cls.daemon = stand_in.Daemon("--listen", "{}:{}".format(*cls.address))
        cls.described = described.Description()
        cls.http = described.Session(cls.described, socket_path=cls.daemon.socket)
        cls.tcp = described.Session(cls.described, address=cls.address)
        assert cls.push(skill("demo")).status == 201

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()
        cls.port.close()

    @classmethod
    def push(cls, archive, kind="application/zip", path="/v1/skills"):
        return cls.http.post(path, archive, headers={"Content-Type": kind})

    def run_skill(self, **request):
        return self.http.post("/v1/executions", {"skill": "demo", **request})

    def expect_error(self, answer, status, code=None):
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(set(answer.json), {"error", "message"})
        if code:
            self.assertEqual(answer.json["error"], code)
        self.assertTrue(answer.json["message"])

    # Health

    def test_health_and_readiness(self):
        self.assertEqual(self.http.get("/health").json, {"status": "ok"})
        ready = self.http.get("/ready")
        self.assertEqual((ready.status, ready.json["status"]), (200, "ready"))
        self.assertEqual(self.http.get("/metrics").status, 200)

    # Skills

    def test_push_by_every_content_type(self):
        for kind in ("application/zip", "application/octet-stream"):
            answer = self.push(skill("types"), kind)
            self.assertEqual(answer.status, 201)
            self.assertEqual((answer.json["name"], answer.json["version"]), ("types", "1.0.0"))
        # Skillbox's clients send the name and the version beside the file.
        answer = self.http.form("/v1/skills", [("file", "types.zip", skill("types")),
                                               ("name", None, b"types"),
                                               ("version", None, b"1.0.0")])
        self.assertEqual(answer.status, 201)
        self.assertEqual(self.push(skill("wrapped", wrapped="wrapped-main/")).status, 201)

    def test_push_again(self):
        self.assertEqual(self.push(skill("again")).status, 201)
        self.assertEqual(self.push(skill("again")).status, 201)
        self.expect_error(self.push(skill("again", script="print(2)")), 409, "conflict")
        self.assertEqual(self.http.delete("/v1/skills/again/1.0.0").status, 204)
        self.assertEqual(self.push(skill("again", script="print(2)")).status, 201)

    def test_push_what_is_no_skill(self):
        self.expect_error(self.http.post("/v1/skills", {"not": "a zip"}), 415, "unsupported_type")
        self.expect_error(self.push(b""), 400, "invalid_skill")
        self.expect_error(self.push(b"this is not a zip file"), 400, "invalid_skill")
        self.expect_error(self.http.form("/v1/skills", [("file", "x.zip", b"not a zip")]), 400,
                          "invalid_skill")
        self.expect_error(self.http.form("/v1/skills", [("name", None, b"x")]), 400, "bad_request")
        for content in ({"readme.txt": "hello"}, {"SKILL.md": "---\nname: [broken\n---\n"},
                        {"SKILL.md": "---\nname: incomplete\n---\n"}, {"SKILL.md": "nothing"},
                        {"../SKILL.md": "---\nname: a\ndescription: b\n---\n"}):
            self.expect_error(self.push(zip_of(content)), 400, "invalid_skill")

    def test_push_too_large(self):
        self.expect_error(self.push(bytes(289 << 20)), 413, "too_large")

    def test_validate(self):
        answer = self.push(skill("checked"), path="/v1/skills/validate")
        self.assertEqual((answer.status, answer.json["valid"]), (200, True))
        self.assertEqual(answer.json["skill_name"], "checked")
        self.assertEqual(self.http.get("/v1/skills/checked/1.0.0").status, 404)
        self.expect_error(self.push(b"junk", path="/v1/skills/validate"), 400)
        self.expect_error(self.push(zip_of({"x": ""}), path="/v1/skills/validate"), 400)

    def test_list(self):
        listed = self.http.get("/v1/skills")
        self.assertIsInstance(listed.json, list)
        row = next(row for row in listed.json if row["name"] == "demo")
        self.assertEqual((row["version"], row["description"]), ("1.0.0", "Does demo."))

    def test_show_and_delete(self):
        self.push(skill("shown", "1.0.0"))
        self.push(skill("shown", "2.0.0"))
        one = self.http.get("/v1/skills/shown/1.0.0").json
        self.assertEqual((one["name"], one["version"], one["lang"]), ("shown", "1.0.0", "python"))
        self.assertEqual(one["instructions"], one["content"])
        self.assertEqual(self.http.get("/v1/skills/shown/latest").json["version"], "2.0.0")
        self.expect_error(self.http.get("/v1/skills/shown/9.9.9"), 404, "not_found")
        self.assertEqual(self.http.delete("/v1/skills/shown/1.0.0").status, 204)
        self.expect_error(self.http.delete("/v1/skills/shown/1.0.0"), 404, "not_found")
        self.assertEqual(self.http.get("/v1/skills/shown/2.0.0").status, 200)

    def test_inspect(self):
        self.push(skill("seen", "1.0.0"))
        seen = self.http.get("/v1/skills/seen/1.0.0/inspect").json
        self.assertEqual((seen["name"], seen["version"], seen["image"], seen["image_known"]),
                         ("seen", "1.0.0", "python", False))
        self.assertIsNone(seen["image_memory_bytes"])
        self.assertEqual({one["from"] for one in seen["imports"]} - {"unknown"}, set())
        self.expect_error(self.http.get("/v1/skills/seen/9.9.9/inspect"), 404, "not_found")
        self.expect_error(self.http.get("/v1/skills/%20/1/inspect"), 400)

    # Executions

    def test_run(self):
        answer = self.run_skill(input={"data": [1, 2.50, "ä"]}, env={"MY_VAR": "x"}, args=["a"])
        self.assertEqual(answer.status, 200)
        result = answer.json
        self.assertEqual((result["status"], result["error"]), ("success", None))
        self.assertEqual(result["output"]["input"]["data"], [1, 2.5, "ä"])
        self.assertIsInstance(result["duration_ms"], int)
        self.assertEqual((result["files_url"], result["files_list"]), (None, []))
        self.assertIn(b'"status":"success"', answer.body)  # as compact as Skillbox writes it

    def test_version(self):
        self.assertEqual(self.run_skill(version="latest").json["status"], "success")
        answer = self.run_skill(version="99.99.99")
        self.assertEqual((answer.status, answer.json["status"]), (200, "failed"))
        self.assertIn("99.99.99", answer.json["error"])
        # A skill that is gone: with a version an execution that fails, without one a 404.
        answer = self.http.post("/v1/executions", {"skill": "gone", "version": "1.0.0"})
        self.assertEqual((answer.status, answer.json["status"]), (200, "failed"))
        self.expect_error(self.http.post("/v1/executions", {"skill": "gone"}), 404)

    def test_outcomes_are_200(self):
        for fake, data, status in (("exit", "42", "failed"), ("timeout", "", "timeout"),
                                   ("oom", "", "failed"), ("die", "", "failed"),
                                   ("fail", "", "failed")):
            answer = self.run_skill(env={"FAKE": fake, "FAKE_DATA": data})
            self.assertEqual((answer.status, answer.json["status"]), (200, status), fake)
            self.assertTrue(answer.json["error"], fake)

    def test_code(self):
        answer = self.http.post("/v1/executions", {"code": "print(1)", "lang": "python",
                                                   "input": {"n": 1}})
        self.assertEqual((answer.status, answer.json["output"]["input"]), (200, {"n": 1}))
        self.assertEqual((answer.json["skill"]["name"], answer.json["skill"]["version"]),
                         (None, None))
        where = answer.headers["Location"]
        self.assertEqual(self.http.get(where).body, answer.body)
        first = self.http.get("/v1/executions?limit=1").json["executions"][0]
        self.assertEqual(first["skill"], answer.json["skill"])
        self.expect_error(self.http.post("/v1/executions", {"code": "x", "skill": "demo"}), 400)
        self.expect_error(self.http.post("/v1/executions", {"code": "x", "lang": "go"}), 400)
        self.expect_error(self.http.post("/v1/executions", {"code": "#" * (256 * 1024 + 1)}), 413,
                          "too_large")

    def test_bad_requests(self):
        for body in ("this is not json", "", "[]", '{"input":{}}', '{"skill":""}',
                     '{"skill":"../x"}', '{"skill":"demo","version":"../1"}', '{"skill":7}',
                     '{"skill":"demo","nonsense":1}', '{"skill":"demo","env":{"A=B":"/"}}',
                     '{"skill":"demo","timeout":-1}', '{"skill":"demo","async":"yes"}'):
            self.expect_error(self.http.post("/v1/executions", body, headers={
                "Content-Type": "application/json"}), 400, "bad_request")
        self.expect_error(self.http.post("/v1/executions", {"skill": "no-such"}), 404, "not_found")
        self.expect_error(self.http.post("/v1/executions", "x", headers={
            "Content-Type": "text/plain"}), 415, "unsupported_type")
        self.expect_error(self.run_skill(input="x" * (20 << 20)), 413, "too_large")

    def test_as_others_send_it(self):
        result = self.run_skill(version="", entrypoint="main.py", input=None,
                                env={"PATH": "/", "PYTHONUNBUFFERED": "1"}).json
        self.assertEqual((result["status"], result["output"]["input"]), ("success", {}))
        self.assertEqual(len(result["warnings"]), 1)
        self.assertIn("PATH", result["warnings"][0])
        self.assertEqual(self.http.get("/v1/files?session_id=none&execution_id=e").json, [])

    def test_async_and_repeated(self):
        answer = self.run_skill(**{"async": True, "idempotency_key": "k1"})
        self.assertEqual(answer.status, 202)
        where = answer.headers["Location"]
        self.assertEqual(where, "/v1/executions/" + answer.json["execution_id"])
        self.assertEqual(self.http.get(where).status, 200)
        again = self.run_skill(**{"async": True, "idempotency_key": "k1"})
        self.assertEqual(again.json["execution_id"], answer.json["execution_id"])
        self.expect_error(self.run_skill(input=1, idempotency_key="k1"), 409, "conflict")

    def test_retries(self):
        answer = self.run_skill(**{"async": True, "retries": 5})
        self.assertEqual(answer.status, 202)
        self.expect_error(self.run_skill(retries=1), 400, "bad_request")
        self.expect_error(self.run_skill(**{"async": True, "retries": 6}), 400, "bad_request")

    def test_cancel(self):
        started = self.run_skill(**{"async": True, "env": {"FAKE": "ticks"}}).json["execution_id"]
        self.assertEqual(self.http.delete(f"/v1/executions/{started}").status, 202)
        text = self.http.get(f"/v1/executions/{started}/events").body.decode()
        self.assertIn('"status":"cancelled"', text)
        self.expect_error(self.http.delete(f"/v1/executions/{started}"), 409, "conflict")

    def test_events(self):
        answer = self.http.post("/v1/executions", {
            "skill": "demo", "env": {"FAKE": "exit", "FAKE_DATA": "0"}},
            headers={"Accept": "text/event-stream"})
        names = [event[0] for event in events_of(answer.body.decode())]
        self.assertEqual(names[0], "status")
        self.assertEqual(names[-1], "result")
        self.assertEqual({"stdout", "stderr"} - set(names), set())

    def test_list_of_executions(self):
        for _ in range(3):
            self.run_skill()
        page = self.http.get("/v1/executions?limit=2&skill=demo&status=success").json
        self.assertEqual(len(page["executions"]), 2)
        more = self.http.get(f"/v1/executions?limit=2&cursor={page['next_cursor']}").json
        self.assertFalse({e["execution_id"] for e in page["executions"]}
                         & {e["execution_id"] for e in more["executions"]})
        self.expect_error(self.http.get("/v1/executions?limit=x"), 400)

    def test_retrieval_and_logs(self):
        result = self.run_skill(env={"FAKE": "exit", "FAKE_DATA": "7"})
        where = f"/v1/executions/{result.json['execution_id']}"
        kept = self.http.get(where)
        self.assertEqual((kept.status, kept.body), (200, result.body))
        logs = self.http.get(where + "/logs")
        self.assertTrue(logs.headers["Content-Type"].startswith("text/plain"))
        self.assertEqual(logs.body, b"out\nerr\n")
        for unknown in ("00000000-0000-0000-0000-000000000000", "exec_" + "0" * 32, "x"):
            for tail in ("", "/logs", "/events", "/files", "/files/a"):
                self.expect_error(self.http.get(f"/v1/executions/{unknown}{tail}"), 404)
            self.expect_error(self.http.delete(f"/v1/executions/{unknown}"), 404)

    def test_artifacts(self):
        result = self.run_skill(env={"FAKE": "files"}).json
        where = f"/v1/executions/{result['execution_id']}/files"
        self.assertEqual(result["files_url"], where)
        self.assertEqual(result["files_list"], ["a.txt", "sub/b.txt"])
        answer = self.http.get(where)
        self.assertEqual(answer.headers["Content-Type"], "application/gzip")
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(answer.body))) as archive:
            self.assertEqual(sorted(archive.getnames()), sorted(result["files_list"]))
        self.assertEqual(self.http.get(f"{where}/{result['files_list'][0]}").status, 200)
        self.expect_error(self.http.get(f"{where}/none"), 404)
        where = f"/v1/executions/{self.run_skill().json['execution_id']}/files"
        answer = self.http.get(where)
        self.expect_error(answer, 404, "not_found")
        self.assertIn("left no files", answer.json["message"])

    # Input files

    def test_files(self):
        raw = self.http.post("/v1/files?name=a.csv", b"1,2\n", headers={"Content-Type": "text/csv"})
        form = self.http.form("/v1/files", [("file", "b.bin", bytes(range(256)))])
        self.assertEqual((raw.status, form.status), (201, 201))
        self.assertEqual((raw.json["name"], raw.json["size_bytes"], raw.json["content_type"]),
                         ("a.csv", 4, "text/csv"))
        self.assertEqual((form.json["name"], form.json["content_type"]),
                         ("b.bin", "application/octet-stream"))
        where = f"/v1/files/{raw.json['id']}"
        self.assertEqual(self.http.get(where).json, raw.json)
        self.assertEqual(self.http.get(f"{where}/download").body, b"1,2\n")
        for query in ("", "?limit=1000&offset=0"):
            self.assertIn(raw.json, self.http.get("/v1/files" + query).json)
        for key in ("files", "input_files"):
            result = self.run_skill(**{key: [raw.json["id"], form.json["id"]]}).json
            self.assertEqual({name: seen[0] for name, seen in result["output"]["files_in"].items()},
                             {"a.csv": 4, "b.bin": 256})
        elsewhere = [raw.json["id"], {"id": form.json["id"], "path": "d/2"}]
        self.assertEqual(self.run_skill(files=elsewhere).json["status"], "success")
        self.assertEqual(self.http.delete(where).status, 204)
        for unknown in (where, "/v1/files/x"):
            for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/download")):
                self.expect_error(self.http.request(method, unknown + tail), 404, "not_found")
        for unknown in (raw.json["id"], "file_" + "0" * 32):
            self.expect_error(self.run_skill(files=[unknown]), 400, "bad_request")
        self.expect_error(self.http.post("/v1/files?name=../x", b""), 400)

    def test_sessions(self):
        first = self.run_skill(session_id="s", env={"FAKE": "session", "FAKE_DATA": "a/b.txt=1"})
        self.assertEqual(first.json["session"], {"id": "s", "committed": True, "bytes": 1,
                                                 "files": 1, "reason": None})
        failed = self.run_skill(session_id="s", env={"FAKE": "timeout"}).json["session"]
        self.assertEqual((failed["committed"], failed["files"]), (False, 1))
        self.assertEqual([s["id"] for s in self.http.get("/v1/sessions").json], ["s"])
        shown = self.http.get("/v1/sessions/s").json
        self.assertEqual(shown["files_list"], [{"path": "a/b.txt", "size_bytes": 1}])
        listed = self.http.get("/v1/sessions/s/files").json
        self.assertEqual(listed, self.http.get("/v1/files?session_id=s").json)
        uploaded = self.http.post("/v1/files?name=x", b"x").json
        self.http.delete("/v1/files/" + uploaded["id"])
        self.assertEqual(set(uploaded) | {"session_id"}, set(listed[0]))
        self.assertEqual(self.http.get("/v1/sessions/s/files/a/b.txt").body, b"1")
        going = self.run_skill(**{"session_id": "s", "async": True, "env": {"FAKE": "ticks"}})
        self.expect_error(self.run_skill(session_id="s"), 409, "session_busy")
        self.expect_error(self.http.delete("/v1/sessions/s"), 409, "session_busy")
        self.expect_error(self.http.delete("/v1/sessions/s/files/a/b.txt"), 409, "session_busy")
        self.http.delete("/v1/executions/" + going.json["execution_id"])
        for _ in range(4500):
            if self.http.delete("/v1/sessions/s/files/a/b.txt").status == 204:
                break
            time.sleep(0.02)
        self.assertEqual(self.http.get("/v1/sessions/s/files").json, [])
        self.expect_error(self.http.delete("/v1/sessions/s/files/a/b.txt"), 404, "not_found")
        self.assertEqual(self.http.delete("/v1/sessions/s").status, 204)
        self.expect_error(self.http.get("/v1/sessions/s"), 404, "not_found")
        self.expect_error(self.run_skill(session_id="../s"), 400, "bad_request")

    def test_inline_skill(self):
        answer = self.http.form("/v1/executions", [("request", None, b'{"input":1}'),
                                                   ("skill_archive", "s.zip", skill("inline"))])
        self.assertEqual((answer.status, answer.json["skill"]["name"]), (200, "inline"))
        self.expect_error(self.http.post("/v1/executions", {"skill": "inline"}), 404)

    # Tenants, keys, audit

    def test_tenants(self):
        made = self.http.post("/v1/admin/tenants", {"name": "acme", "limits": {"max_running": 3}})
        self.assertEqual(made.status, 201)
        where = made.headers["Location"]
        self.assertEqual(where, "/v1/admin/tenants/" + made.json["id"])
        self.assertEqual(made.json["limits"]["max_running"], 3)
        self.expect_error(self.http.post("/v1/admin/tenants", {"name": "acme"}), 409, "conflict")
        for body in ({}, {"name": ""}, {"name": "ten_x"}, {"name": "a/b"}, {"name": 7},
                     {"name": "x", "limits": {"weight": 101}}, {"name": "x", "unknown": 1},
                     {"name": "x", "limits": {"max_running": -1}}, {"name": "x" * 65},
                     {"name": "x", "limits": {"max_queued": 1.5}},
                     {"name": "x", "limits": {"unknown": 1}}):
            self.expect_error(self.http.post("/v1/admin/tenants", body), 400, "bad_request")
        changed = self.http.request("PATCH", "/v1/admin/tenants/acme", {
            "disabled": True, "limits": {"storage_bytes": 1 << 40, "max_running": None}})
        self.assertEqual((changed.status, changed.json["disabled"]), (200, True))
        self.assertEqual(changed.json["limits"]["storage_bytes"], 1 << 40)
        self.assertEqual(changed.json["limits"]["max_running"], 0)
        self.assertEqual(self.http.get(where).json, changed.json)
        page = self.http.get("/v1/admin/tenants?limit=1").json
        self.assertEqual(page["tenants"], [changed.json])
        page = self.http.get(f"/v1/admin/tenants?cursor={page['next_cursor']}").json
        self.assertEqual(page["tenants"][-1]["id"], "default")
        self.assertEqual(self.http.delete(where).status, 204)
        self.expect_error(self.http.get(where), 404, "not_found")
        self.expect_error(self.http.delete(where), 404, "not_found")
        self.expect_error(self.http.delete("/v1/admin/tenants/default"), 409, "conflict")
        self.expect_error(self.http.request("PATCH", "/v1/admin/tenants/default",
                                            {"disabled": True}), 409, "conflict")

    def test_keys_and_audit(self):
        made = self.http.post("/v1/admin/keys", {"name": "ci"})
        self.assertEqual(made.status, 201)
        self.assertEqual((made.json["tenant_id"], made.json["role"]), ("default", "tenant"))
        headers = {"Authorization": f"Bearer {made.json['key']}"}
        self.assertEqual(self.http.request("GET", "/v1/skills", headers=headers).status, 200)
        self.expect_error(self.http.request("GET", "/v1/admin/keys", headers=headers), 401)
        self.expect_error(self.http.request("GET", "/v1/skills", headers={
            **headers, "X-Tenant-ID": "other"}), 403, "forbidden")
        row = self.http.get("/v1/admin/keys?tenant=default&limit=1").json["keys"][0]
        self.assertEqual(row["id"], made.json["id"])
        self.assertNotIn("key", row)
        where = f"/v1/admin/keys/{row['id']}"
        self.assertEqual(self.http.delete(where).status, 204)
        self.expect_error(self.http.request("GET", "/v1/skills", headers=headers), 401,
                          "unauthorized")
        self.expect_error(self.http.delete("/v1/admin/keys/none"), 404, "not_found")
        for body in ({"tenant": "nobody"}, {"role": "root"}, {"name": "x" * 65}, {"x": 1}):
            self.expect_error(self.http.post("/v1/admin/keys", body), 400, "bad_request")
        entries = self.http.get("/v1/admin/audit?limit=200").json["entries"]
        self.assertIn(("key.revoke", row["id"]), [(e["action"], e["target"]) for e in entries])
        self.assertNotIn(made.json["key"], str(entries))
        self.assertEqual({e["node"] for e in entries}, {None})
        page = self.http.get("/v1/admin/audit?limit=1").json
        older = self.http.get(f"/v1/admin/audit?limit=1&cursor={page['next_cursor']}").json
        self.assertLess(older["entries"][0]["id"], page["entries"][0]["id"])

    def test_images_reload(self):
        folder = self.daemon.dir / "data" / "images"
        reload = lambda: self.http.request("POST", "/v1/admin/images/reload")
        folder.mkdir(exist_ok=True)
        self.daemon.build("tools.erofs", "restore", folder)
        (folder / "broken.erofs").write_text("restore")
        found = reload()
        self.assertEqual(found.status, 200)
        self.assertEqual((found.json["images"], found.json["added"]), (["python", "tools"], ["tools"]))
        self.assertEqual([one["name"] for one in found.json["refused"]], ["broken"])
        self.assertIn("has no checksum", found.json["refused"][0]["reason"])
        for file in folder.iterdir():
            file.unlink()
        self.assertEqual(reload().json["removed"], ["tools"])
        self.assertEqual(reload().json, {"images": ["python"], "added": [], "replaced": [],
                                         "removed": [], "refused": []})
        noted = [(e["action"], e["target"])
                 for e in self.http.get("/v1/admin/audit?limit=200").json["entries"]]
        self.assertEqual(noted.count(("images.reload", "tools")), 2)

    def test_no_cluster(self):
        for method, path in (("GET", ""), ("POST", ""), ("DELETE", "/nodes/a")):
            self.expect_error(self.http.request(method, "/v1/admin/cluster" + path), 404,
                              "not_found")

    def test_cluster(self):
        """tests/daemon/daemon_cluster*.c have what a cluster does; here is how it looks."""
        nats = stand_in.NatsServer()
        self.addCleanup(nats.close)
        settings = nats.dir / "skillvmd.yaml"
        settings.write_text(f"cluster: {{servers: '{nats.url}', node: a, labels: rack=1}}\n")
        node = stand_in.Daemon("--config", str(settings))
        self.addCleanup(node.close)
        api = described.Session(self.described, socket_path=node.socket)
        made = api.request("POST", "/v1/admin/cluster")
        if made.status == 503:
            # The server may have made it without saying so in time.
            self.until(lambda: api.request("POST", "/v1/admin/cluster"), lambda made: made.status == 200)
        else:
            self.assertEqual(made.json["made"], True)
        seen = self.until(lambda: api.get("/v1/admin/cluster").json,
                          lambda seen: seen["state"] == "joined" and seen["nodes"])
        self.assertEqual((seen["node"], seen["nodes"][0]["labels"]), ("a", {"rack": "1"}))
        self.assertEqual(seen["nodes"][0]["snapshots"], 0)
        self.assertIsNone(self.until(lambda: api.get("/v1/admin/cluster").json,
                                     lambda seen: seen["audit"]["followed"])["audit"]["message"])
        drain = "/v1/admin/cluster/nodes/a/drain"
        for method, drained in (("POST", True), ("GET", True), ("DELETE", False)):
            answer = self.until(lambda: api.request(method, drain),
                                lambda answer: answer.status == 200)
            self.assertEqual(answer.json["draining"], drained)
        self.expect_error(api.delete("/v1/admin/cluster/nodes/a"), 409, "conflict")
        self.expect_error(api.delete("/v1/admin/cluster/nodes/b"), 404, "not_found")

        def remove():
            answer = api.delete("/v1/admin/cluster/nodes/b")
            if answer.status == 404:
                nats.publish("$KV.skillvm_nodes.b", b"{}")
            return answer

        self.until(remove, lambda answer: answer.status == 204)
        nats.close()
        self.expect_error(api.request("POST", "/v1/admin/cluster"), 503, "cluster_unavailable")

    def until(self, look, good):
        """What look gives once it is good."""
        for _ in range(4000):
            seen = look()
            if good(seen):
                return seen
            time.sleep(0.02)
        self.fail(f"never so: {seen}")

    def test_tools(self):
        for path, key, schema in (("/v1/tools", "function", "parameters"),
                                  ("/v1/tools?format=openai", "function", "parameters"),
                                  ("/v1/tools?format=anthropic", None, "input_schema"),
                                  ("/v1/tools?format=mcp", "tools", "inputSchema")):
            tools = self.http.get(path).json
            tools = tools["tools"] if key == "tools" else tools
            tools = [t[key] if key == "function" else t for t in tools]
            demo = next(tool for tool in tools if tool["name"] == "demo")
            self.assertEqual(demo["description"], "Does demo.")
            self.assertEqual(demo[schema]["type"], "object")
        self.expect_error(self.http.get("/v1/tools?format=other"), 400, "bad_request")
        call = {"name": "demo", "arguments": {"text": "hi"}}
        answer = self.http.post("/v1/tools/call", call)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json["output"]["input"], {"text": "hi"})
        answer = self.http.post("/v1/tools/call", {**call, "async": True})
        self.assertEqual(answer.status, 202)
        self.assertIn(answer.json["execution_id"], answer.headers["Location"])
        self.expect_error(self.http.post("/v1/tools/call", {"name": "none"}), 404, "not_found")
        self.expect_error(self.http.post("/v1/tools/call", {}), 400, "bad_request")

    def test_unknown_addresses(self):
        self.expect_error(self.http.get("/v2/skills"), 404)
        answer = self.http.request("PUT", "/v1/skills")
        self.expect_error(answer, 405)
        self.assertIn("POST", answer.headers["Allow"])

    # TCP, with keys

    def key_of(self, name):
        tenant = self.http.post("/v1/admin/tenants", {"name": name}).json["id"]
        return tenant, self.http.post("/v1/admin/keys", {"tenant": tenant, "name": "t"}).json["key"]

    def test_tcp_needs_a_key(self):
        for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer wrong-key-12345"},
                        {"Authorization": "Basic dXNlcjpwYXNz"}, {"Authorization": "Bearertoken"}):
            answer = self.tcp.get("/v1/skills", headers=headers)
            self.expect_error(answer, 401, "unauthorized")
            self.assertTrue(answer.headers["WWW-Authenticate"].startswith("Bearer"))
        for method, path in (("POST", "/v1/executions"), ("GET", "/v1/executions/x"),
                             ("DELETE", "/v1/skills/x/1.0.0"), ("GET", "/v1/admin/tenants"),
                             ("GET", "/metrics")):
            self.expect_error(self.tcp.request(method, path), 401, "unauthorized")
        self.assertEqual(self.tcp.get("/health").status, 200)
        self.assertEqual(self.tcp.get("/ready").status, 200)

    def test_tcp_with_a_key(self):
        tenant, key = self.key_of("skillbox")
        mine = described.Session(self.described, address=self.address, key=key)
        self.assertEqual(mine.get("/v1/skills").json, [])
        self.assertEqual(mine.form("/v1/skills", [("file", "demo.zip", skill("demo"))]).status, 201)
        result = mine.post("/v1/executions", {"skill": "demo", "env": {"FAKE": "files"}}).json
        self.assertEqual(mine.get(f"/v1/executions/{result['execution_id']}").json["output"],
                         result["output"])
        # Skillbox's clients fetch files_url as it is, without their key.
        base = f"http://{self.address[0]}:{self.address[1]}"
        self.assertTrue(result["files_url"].startswith(base + "/"), result["files_url"])
        link = result["files_url"][len(base):]
        answer = self.tcp.get(link)
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(answer.body))) as archive:
            self.assertEqual(sorted(archive.getnames()), sorted(result["files_list"]))
        self.expect_error(self.tcp.get(link[:-1] + ("0" if link[-1] != "0" else "1")), 404)
        # The tenant's name or id may be said, another's may not.
        for name in (tenant, "skillbox"):
            self.assertEqual(mine.get("/v1/skills", headers={"X-Tenant-ID": name}).status, 200)
        self.expect_error(mine.get("/v1/skills", headers={"X-Tenant-ID": "default"}), 403)
        # What one tenant has, no other sees.
        _, other = self.key_of("neighbour")
        where = f"/v1/executions/{result['execution_id']}"
        for path in (where, where + "/logs", where + "/events", where + "/files"):
            self.expect_error(self.tcp.get(path, key=other), 404, "not_found")
        self.assertEqual(self.tcp.get("/v1/executions", key=other).json["executions"], [])

    def test_zz_every_described_success_was_seen(self):
        self.assertEqual(self.described.unseen(), [])


if __name__ == "__main__":
    os.umask(0o077)
    unittest.main()
