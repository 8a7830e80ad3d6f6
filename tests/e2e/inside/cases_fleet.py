# SPDX-License-Identifier: Apache-2.0
"""Two daemons with real machines are one service, over a server of NATS."""

import contextlib
import io
import pathlib
import shutil
import socket
import subprocess
import tarfile

from harness import (
    Failed,
    Skipped,
    check_equal,
    check_in,
    check_success,
    long_case,
    python_skill,
    wait_until,
)

COUNTER = """
import json, os, pathlib, sys
given = json.loads(os.environ["SANDBOX_INPUT"])
out = pathlib.Path(os.environ["SANDBOX_FILES_DIR"])
(out / "squares.txt").write_text("\\n".join(str(n * n) for n in range(given["n"])))
json.dump({"sum": sum(range(given["n"]))}, open(os.environ["SANDBOX_OUTPUT"], "w"))
print("counted", given["n"])
"""
SLEEPER = """
import time
print("asleep", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def nats_server(folder):
    """Its port. It is a server with JetStream, and ends with the `with`."""
    if not shutil.which("nats-server"):
        raise Skipped("there is no nats-server here")
    folder.mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "nats.conf"
    settings.write_text(
        f'listen: "127.0.0.1:{port}"\n'
        f'jetstream {{ store_dir: "{folder}/store", max_file_store: 16GB }}\n'
    )
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(["nats-server", "-c", settings], stdout=log, stderr=log)
    try:

        def listens():
            if server.poll() is not None:
                raise Failed(f"nats-server ended: {(folder / 'log').read_text()[-500:]}")
            with socket.socket() as tried:
                return tried.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, 30, "nats-server listens")
        yield port
    finally:
        server.kill()
        server.wait()


def node(world, name, port, slots):
    """A daemon that is to be a node of that name, with the main daemon's snapshots."""
    daemon = world.copy_of_snapshots(
        f"node-{name}", ["--config", str(world.root / f"{name}.yaml"), "--max-running", str(slots)]
    )
    (world.root / f"{name}.yaml").write_text(
        f"cluster:\n  servers: nats://127.0.0.1:{port}\n  node: {name}\n  replicas: 1\n"
    )
    daemon.start(ready=False)
    return daemon


def joined(daemon):
    return daemon.client.get("/v1/admin/cluster").json["state"] == "joined"


def ended(daemon, execution):
    answer = daemon.client.get(f"/v1/executions/{execution}")
    result = answer.json if answer.status == 200 else {"status": ""}
    return result if result["status"] in ("success", "failed", "cancelled") else None


def files_of(daemon, execution):
    body = daemon.client.get(f"/v1/executions/{execution}/files").body
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return {pathlib.PurePath(member.name).name: archive.extractfile(member).read()
                for member in archive if member.isfile()}


def begin(daemon, **fields):
    answer = daemon.client.execute(**fields, **{"async": True})
    check_equal(answer.status, 202, "of an asynchronous one")
    return answer.json["execution_id"]


@long_case
def two_nodes_are_one_service(world):
    """What is pushed at one runs in machines of both, and is read at both, also when one is gone."""
    with nats_server(world.root / "nats") as port:
        a, b = (node(world, name, port, 1) for name in "ab")
        check_equal(a.client.request("POST", "/v1/admin/cluster", b"").status, 200, "of init")
        for daemon in (a, b):
            wait_until(lambda daemon=daemon: joined(daemon), 60, "a node joins")
            daemon.wait_ready()
        for name, source in (("counter", COUNTER), ("sleeper", SLEEPER)):
            answer = a.client.request("POST", "/v1/skills", python_skill(source, name=name),
                                      {"Content-Type": "application/zip"})
            check_equal(answer.status, 201, f"of the push of {name}")
        wait_until(lambda: b'"sleeper"' in b.client.get("/v1/skills").body, 30, "b has the skills")

        result = b.client.run_ok(skill="counter", input={"n": 5})
        check_equal(result["output"], {"sum": 10}, "what a machine of b counted")
        here = wait_until(lambda: ended(a, result["execution_id"]), 30, "a knows of it")
        check_equal(here["output"], result["output"], "what a says of it")
        check_in("counted 5", here["stdout"], "its log at a")
        check_equal(files_of(a, result["execution_id"])["squares.txt"], b"0\n1\n4\n9\n16",
                    "what it left, at a")

        # The slot of a is taken: the next one runs in a machine of b, and a answers with it.
        held = begin(a, skill="sleeper", timeout=900)
        forwarded = a.client.run_ok(skill="counter", input={"n": 3})
        check_equal(forwarded["output"], {"sum": 3}, "what was passed on")
        line = f"execution={forwarded['execution_id']} "
        for daemon, words in ((a, "sent_to=b"), (b, "taken_from=a"), (b, "begun node=b"),
                              (b, "skill=")):
            wait_until(lambda daemon=daemon, words=words: line + words in daemon.log.read_text(),
                       20, f"a log says {words}")

        # Both are full: what waits at a is run by b when a is lost.
        also = begin(b, skill="sleeper", timeout=900)
        waits = begin(a, skill="counter", input={"n": 4})
        a.kill()
        answer = b.client.request("DELETE", f"/v1/executions/{also}")
        check_equal(answer.status, 202, "of the end of one at b")
        result = wait_until(lambda: ended(b, waits), 180, "b runs what waited at a")
        check_equal(check_success(result)["output"], {"sum": 6}, "what waited at a")
        lost = wait_until(lambda: ended(b, held), 60, "what ran at a has ended")
        check_in("the node a was lost", lost["error"], "why")

        a.start(ready=False)
        wait_until(lambda: joined(a), 90, "a joins again")
        for execution in (waits, held, also):
            here = wait_until(lambda execution=execution: ended(a, execution), 30, "a knows")
            check_equal(here["status"], ended(b, execution)["status"], "what both say")
        for daemon in (a, b):
            check_equal(daemon.stop(), 0, "exit status of a node")
