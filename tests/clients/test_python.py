# SPDX-License-Identifier: Apache-2.0
"""The Python client against a real daemon."""

import io
import os
import socket
import tarfile
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import stand_in
import skillvm


class PythonClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = stand_in.Daemon()
        cls.client = skillvm.Client(cls.daemon.socket)
        with tempfile.TemporaryDirectory() as folder:
            cls.pushed = cls.client.push_skill(stand_in.skill_folder(folder, "demo"))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def test_health(self):
        self.assertTrue(self.client.health())
        self.assertEqual(self.client.ready()["status"], "ready")
        self.assertTrue(skillvm.Client("unix://" + self.daemon.socket).health())

    def test_nobody_answers(self):
        with self.assertRaises(skillvm.APIError) as caught:
            skillvm.Client("/nonexistent/sock").health()
        self.assertEqual((caught.exception.status, caught.exception.code), (0, "unreachable"))
        with self.assertRaises(ValueError):
            skillvm.Client("ftp://somewhere")

    def test_skills(self):
        self.assertEqual(self.pushed["name"], "demo")
        self.assertIn("demo", [skill["name"] for skill in self.client.skills()])
        self.assertEqual(self.client.skill("demo")["version"], "1.0.0")
        with tempfile.TemporaryDirectory() as folder:
            other = stand_in.skill_folder(folder, "other", "2.0")
            self.assertEqual(self.client.validate_skill(other)["name"], "other")
            with self.assertRaises(skillvm.APIError) as caught:
                self.client.skill("other")
            self.assertEqual(caught.exception.status, 404)
            self.client.push_skill(other)
        self.client.delete_skill("other", "2.0")
        with self.assertRaises(skillvm.APIError) as caught:
            self.client.delete_skill("other", "2.0")
        self.assertEqual(caught.exception.code, "not_found")

    def test_code(self):
        result = self.client.run(code="print(1)", input={"n": 1})
        self.assertTrue(result.ok)
        self.assertEqual(result.output["input"], {"n": 1})
        self.assertIsNone(result.raw["skill"]["name"])
        last = list(self.client.stream(code="ls", lang="bash"))[-1].result
        self.assertIn("main.sh", last.output["run"].values())
        started = self.client.start(code="x", env={"FAKE": "exit", "FAKE_DATA": "3"})
        self.assertEqual(self.client.wait(started).exit_code, 3)
        called = self.client.call_tool("run_code", {"code": "x", "args": ["one"]})
        self.assertIn("one", called.output["run"].values())
        with self.assertRaises(skillvm.APIError) as caught:
            self.client.run("demo", code="x")
        self.assertEqual(caught.exception.status, 400)
        with self.assertRaises(skillvm.APIError):
            self.client.run()

    def test_a_folder_without_skill_md(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(FileNotFoundError):
                self.client.push_skill(folder)

    def test_a_folder_with_files_without_a_time(self):
        """As images without times have them: a zip's begin in 1980."""
        with tempfile.TemporaryDirectory() as folder:
            skill = stand_in.skill_folder(folder, "timeless")
            os.utime(skill / "SKILL.md", (0, 0))
            self.assertEqual(self.client.push_skill(skill)["name"], "timeless")

    def test_run(self):
        result = self.client.run("demo", input={"k": [1, "ä"]}, timeout=5)
        self.assertTrue(result.ok)
        self.assertEqual(result.output["input"], {"k": [1, "ä"]})
        self.assertIsNone(result.error)
        self.assertEqual(self.client.execution(result)["execution_id"], result.execution_id)

    def test_a_skill_that_fails_is_no_exception(self):
        result = self.client.run("demo", env={"FAKE": "exit", "FAKE_DATA": "3"})
        self.assertEqual((result.status, result.exit_code), ("failed", 3))
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))
        self.assertIn("3", result.error)
        self.assertEqual(self.client.logs(result), "out\nerr\n")

    def test_errors_of_the_request(self):
        with self.assertRaises(skillvm.APIError) as caught:
            self.client.run("no-such-skill")
        self.assertEqual((caught.exception.status, caught.exception.code), (404, "not_found"))
        with self.assertRaises(skillvm.APIError) as caught:
            self.client.run("demo", surprise=1)
        self.assertEqual(caught.exception.status, 400)

    def test_an_archive_that_is_not_registered(self):
        with tempfile.TemporaryDirectory() as folder:
            skill = stand_in.skill_folder(folder, "inline", "3")
            result = self.client.run_archive(skill, input=7)
        self.assertEqual(result.raw["skill"]["name"], "inline")
        self.assertEqual(result.output["input"], 7)

    def test_stream(self):
        events = list(self.client.stream("demo", env={"FAKE": "exit", "FAKE_DATA": "0"}))
        self.assertEqual(events[0].name, "status")
        self.assertEqual("".join(e.text for e in events), "out\nerr\n")
        self.assertEqual(events[-1].result.status, "success")
        self.assertTrue(all(e.result is None for e in events[:-1]))
        again = list(self.client.events(events[-1].result))
        self.assertEqual(again[-1].result.execution_id, events[-1].result.execution_id)

    def test_async_wait_cancel(self):
        started = self.client.start("demo")
        self.assertTrue(self.client.wait(started).ok)
        started = self.client.start("demo", env={"FAKE": "ticks"}, timeout=60)
        for event in self.client.events(started):
            if event.name == "stdout":
                break
        self.client.cancel(started)
        self.assertEqual(self.client.wait(started).status, "cancelled")
        with self.assertRaises(skillvm.APIError) as caught:
            self.client.cancel(started)
        self.assertEqual(caught.exception.status, 409)

    def test_idempotency(self):
        first = self.client.run("demo", idempotency_key="once")
        again = self.client.run("demo", idempotency_key="once")
        self.assertEqual(first.execution_id, again.execution_id)

    def test_pages(self):
        ids = [self.client.run("demo").execution_id for _ in range(5)]
        seen = [row["execution_id"] for row in self.client.executions(skill="demo", page=2)]
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual([i for i in seen if i in ids], ids[::-1])

    def test_files(self):
        result = self.client.run("demo", env={"FAKE": "files"})
        self.assertTrue(result.files)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(sorted(self.client.download(result, folder)), sorted(result.files))
            one = io.BytesIO()
            self.client.download_file(result, result.files[0], one)
            self.assertEqual(one.getvalue(), (Path(folder) / result.files[0]).read_bytes())
            to = os.path.join(folder, "one file")
            self.client.download_file(result, result.files[0], to)
            self.assertEqual(one.getvalue(), Path(to).read_bytes())
            with self.assertRaises(skillvm.APIError):
                self.client.download_file(result, "../etc/passwd", to)
        self.assertEqual(self.client.download(self.client.run("demo"), "/nonexistent"), [])

    def test_sessions(self):
        env = {"FAKE": "session", "FAKE_DATA": "a.txt=hello"}
        result = self.client.run("demo", session_id="chat-1", env=env)
        self.assertTrue(result.session["committed"])
        self.assertEqual([s["id"] for s in self.client.sessions()], ["chat-1"])
        self.assertEqual(self.client.session("chat-1")["files_list"],
                         [{"path": "a.txt", "size_bytes": 5}])
        got = io.BytesIO()
        self.client.session_file("chat-1", "a.txt", got)
        self.assertEqual(got.getvalue(), b"hello")
        self.assertIn("a.txt", self.client.run("demo", session_id="chat-1", env=env).output)
        self.client.delete_session_file("chat-1", "a.txt")
        self.assertEqual(self.client.session("chat-1")["files_list"], [])
        self.client.delete_session("chat-1")
        self.assertEqual(self.client.sessions(), [])
        self.assertIsNone(self.client.run("demo").session)

    def test_threads(self):
        outputs = {}

        def one(i):
            outputs[i] = self.client.run("demo", input=i).output["input"]

        threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(outputs, {i: i for i in range(8)})


class Surroundings(unittest.TestCase):
    """Which server and key the environment names: in the order of the command line."""

    def finds(self, server, key, **env):
        with mock.patch.dict(os.environ, env, clear=True):
            client = skillvm.Client()
            self.assertEqual((client.server, client.key), (server, key))

    def test_order(self):
        every = {"SKILLVM_SOCKET": "/s", "SKILLVM_SERVER": "http://b",
                 "SKILLBOX_SERVER_URL": "http://c", "SKILLVM_DATA": "/d"}
        self.finds("/s", None, **every)
        del every["SKILLVM_SOCKET"]
        self.finds("http://b", None, **every)
        del every["SKILLVM_SERVER"]
        self.finds("http://c", None, **every)
        del every["SKILLBOX_SERVER_URL"]
        self.finds("/d/skillvm.sock", None, **every)
        self.finds("/x/skillvm/skillvm.sock", None, XDG_STATE_HOME="/x")

    def test_keys(self):
        self.finds("/s", None, SKILLVM_SOCKET="/s", SKILLBOX_API_KEY="sk-other")
        self.finds("/s", "sk-own", SKILLVM_SOCKET="/s", SKILLVM_API_KEY="sk-own")
        self.finds("http://c", "sk-other", SKILLBOX_SERVER_URL="http://c", SKILLBOX_API_KEY="sk-other")


class Extraction(unittest.TestCase):
    """An archive of a hostile server does not leave its folder."""

    def extract(self, name, **more):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            member = tarfile.TarInfo(name)
            for key, value in more.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(b""))
        packed.seek(0)
        with tempfile.TemporaryDirectory() as folder:
            return skillvm._extract(packed, Path(folder) / "in" / "here")

    def test_paths(self):
        self.assertEqual(self.extract("a/b"), ["a/b"])
        for bad in ("../x", "a/../../x", "/tmp/x"):
            with self.assertRaises(skillvm.APIError):
                self.extract(bad)
        self.assertEqual(self.extract("link", type=tarfile.SYMTYPE, linkname="/etc"), [])


class Retry(unittest.TestCase):
    """Retry-After and errors that are not JSON reach the caller."""

    def answer(self, text):
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            peer, _ = listener.accept()
            peer.recv(65536)
            peer.sendall(text.encode())
            peer.close()

        threading.Thread(target=serve, daemon=True).start()
        client = skillvm.Client(f"http://127.0.0.1:{listener.getsockname()[1]}/base/", "sk-x")
        with self.assertRaises(skillvm.APIError) as caught:
            client.skills()
        listener.close()
        return caught.exception

    def test_errors(self):
        error = self.answer("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n\r\n"
                            '{"error":"overloaded","message":"full"}')
        self.assertEqual((error.status, error.code, error.retry_after), (429, "overloaded", 3.0))
        error = self.answer("HTTP/1.1 502 Bad Gateway\r\n\r\n<html>")
        self.assertEqual((error.status, error.message), (502, "<html>"))


if __name__ == "__main__":
    unittest.main()
