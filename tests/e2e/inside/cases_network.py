# SPDX-License-Identifier: Apache-2.0
"""The daemon on TCP, and among clients that only hold connections."""

import json
import resource
import socket
import threading
import time

from callers import TcpClient, check_health, free_port
from harness import Skipped, case, check, check_equal, check_in, long_case, python_skill, shorten

CROWD = 1000
HELLO = 'print("hello from TCP")'


@case
def tcp_needs_a_key_and_takes_one(world):
    port = free_port()
    daemon = world.copy_of_snapshots("tcp", ["--listen", f"127.0.0.1:{port}"])
    daemon.start()
    try:
        stranger = TcpClient(port)
        check_equal(stranger.status("GET", "/health"), 200, "health without a key")
        check_equal(stranger.status("GET", "/ready"), 200, "ready without a key")
        for method, path in (
            ("GET", "/v1/skills"),
            ("POST", "/v1/skills"),
            ("POST", "/v1/executions"),
            ("GET", "/metrics"),
            ("GET", "/v1/admin/keys"),
        ):
            status, headers, body = stranger.request(method, path)
            check_equal(status, 401, f"{method} {path} without a key")
            check_in("Bearer", headers["WWW-Authenticate"], "WWW-Authenticate")
            check_equal(json.loads(body)["error"], "unauthorized", "the error")

        made = daemon.client.request(
            "POST",
            "/v1/admin/keys",
            json.dumps({"name": "over TCP"}),
            {"Content-Type": "application/json"},
        )
        check_equal(made.status, 201, "a key made on the unix socket")
        client = TcpClient(port, made.json["key"])
        pushed = client.request(
            "POST", "/v1/skills", python_skill(HELLO, name="tcp"), **{"Content-Type": "application/zip"}
        )
        check_equal(pushed[0], 201, f"a push over TCP: {shorten(pushed[2].decode())}")
        status, _, body = client.request(
            "POST",
            "/v1/executions",
            json.dumps({"skill": "tcp"}),
            **{"Content-Type": "application/json"},
        )
        check_equal(status, 200, "an execution over TCP")
        check_in("hello from TCP", json.loads(body)["stdout"], "its output")
        check_equal(client.status("GET", "/v1/admin/keys"), 401, "a tenant's key at the operator's")

        gone = daemon.client.request("DELETE", f"/v1/admin/keys/{made.json['id']}")
        check_equal(gone.status, 204, "the key is revoked")
        check_equal(client.status("GET", "/v1/skills"), 401, "the revoked key")
    finally:
        daemon.stop()


def idle_crowd(daemon, port):
    """Connections that say nothing, half a head, or have had one answer; half of them TCP."""
    crowd = []
    for i in range(CROWD):
        if i % 2:
            sock = socket.create_connection(("127.0.0.1", port))
        else:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(daemon.socket))
        if i % 4 == 0:
            sock.sendall(b"GET /hea")
        elif i % 4 == 1:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            check(sock.recv(4096), "an answer before it is idle")
        crowd.append(sock)
    return crowd


@long_case
def a_thousand_idle_connections(world):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CROWD + 200:
        raise Skipped(f"only {hard} descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port = free_port()
    daemon = world.copy_of_snapshots("crowd", ["--listen", f"127.0.0.1:{port}"])
    daemon.start()
    crowd = []
    try:
        check_health(daemon, "nothing else happens")
        before = daemon.rss_kib()
        crowd = idle_crowd(daemon, port)
        grown = daemon.rss_kib() - before
        print(f"  memory with {CROWD} idle connections: {grown} KiB more", flush=True)
        check(grown < 32 * 1024, f"{grown} KiB for idle connections")
        check_health(daemon, "1,000 connections are idle")
        result = daemon.client.run_ok(python_skill(HELLO))
        check_in("hello", result["stdout"], "an execution meanwhile")
    finally:
        for sock in crowd:
            sock.close()
        daemon.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@long_case
def executions_leave_health_quick(world):
    """Eight executions that wait, not compute: there may be one processor for all of this."""
    daemon = world.copy_of_snapshots("busy", ["--max-running", "8"])
    daemon.start()
    done = []

    def run():
        done.append(daemon.client.run(python_skill("import time\ntime.sleep(20)")))

    threads = [threading.Thread(target=run) for _ in range(8)]
    try:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            listed = daemon.client.get("/v1/executions?status=running").json["executions"]
            if len(listed) == 8:
                break
            time.sleep(0.2)
        time.sleep(2)
        check_health(daemon, "8 executions run")
    finally:
        for thread in threads:
            thread.join()
        daemon.stop()
    check_equal([r["status"] for r in done], ["success"] * 8, "the executions")
