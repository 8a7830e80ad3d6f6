# SPDX-License-Identifier: Apache-2.0
"""One tenant holds all the connections it can get, in each way that costs the daemon something for
as long as it likes, and the others notice nothing. SIEGE_S: for how many seconds in each way."""

import contextlib
import json
import os
import resource
import socket
import threading
import time

from callers import TcpClient, check_health, free_port
from harness import (
    Beside,
    Skipped,
    check,
    check_equal,
    check_in,
    check_success,
    long_case,
    python_skill,
    shorten,
    wait_until,
)
from tenants import JSON, make_tenant

SECONDS = int(os.environ.get("SIEGE_S") or 5)
PROBES = 1000 if SECONDS > 60 else 300
MIB = 1 << 20
WATERMARK = 256 * MIB  # what the daemon's default leaves of the disk
STORAGE = 64 * MIB  # what the tenant may store
CONNECTIONS = 1000
# A file, zeros that take long to be passed over in search of another, and a result of some 8 MiB:
# what is printed is there twice, and six times as long.
BIG = """
import os
open("/sandbox/out/big", "wb").write(os.urandom(4 << 20))
os.truncate(os.open("/sandbox/out/zeros", os.O_CREAT | os.O_WRONLY), 64 << 20)
print("\\x01" * 700000)
"""
# What never ends a line, so slowly that it lasts.
LOG = """
import os, time
while True:
    os.write(1, b"x")
    time.sleep(0.001)
"""


class Siege(Beside):
    """Keeps so many connections, and steps each about once a second. What the daemon ends begins
    anew."""

    def __init__(self, port, n, begin, step):
        super().__init__()
        self.port, self.n, self.begin, self.step = port, n, begin, step
        self.full = threading.Event()
        self.crowd, self.ended, self.problem = [], 0, None

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        with contextlib.suppress(OSError):
            self.begin(sock)
        sock.setblocking(False)
        return sock

    def turn(self, i):
        try:
            self.step(self.crowd[i])
        except BlockingIOError:
            pass
        except OSError:
            self.crowd[i].close()
            self.ended += 1
            self.crowd[i] = self.connect()

    def besiege(self):
        while not self.over.is_set():
            if len(self.crowd) < self.n:
                self.crowd.append(self.connect())
                continue
            self.full.set()
            for i in range(self.n):
                self.turn(i)
            self.over.wait(1)

    def run(self):
        try:
            self.besiege()
        except OSError as problem:
            self.problem = problem
            self.full.set()
        for sock in self.crowd:
            sock.close()


def a_byte_of_a_head(sock):
    sock.sendall(b"a")


def a_byte_of_a_body(sock):
    # The daemon's word on it, where there is one, ends this connection.
    with contextlib.suppress(BlockingIOError):
        if sock.recv(4096):
            raise OSError("refused")
        raise OSError("ended")
    sock.sendall(b"a")


def a_look_again(request):
    """Takes what there is of the answers before, and asks for one more."""

    def step(sock):
        with contextlib.suppress(BlockingIOError):
            if not sock.recv(1 << 16):
                raise OSError("ended")
        sock.sendall(request)

    return step


def a_byte_of_an_answer(sock):
    if not sock.recv(1):
        raise OSError("ended")


def what_there_is(heard):
    """Takes that, and notes which connections hear of a log."""

    def step(sock):
        events = sock.recv(1 << 16)
        if not events:
            raise OSError("ended")
        if b"event: stdout" in events:
            heard.add(sock)

    return step


def push(client, source, name):
    pushed = client.request(
        "POST", "/v1/skills", python_skill(source, name=name), **{"Content-Type": "application/zip"}
    )
    check_equal(pushed[0], 201, f"a push of {name}: {shorten(pushed[2].decode())}")


def run(client, skill):
    status, _, body = client.request(
        "POST", "/v1/executions", json.dumps({"skill": skill}), **JSON
    )
    check_equal(status, 200, f"an execution of {skill}: {shorten(body.decode())}")
    return check_success(json.loads(body))


def ways(key, result, heard):
    """Title, connections, what each begins with, and its step."""
    who = f"Host: x\r\nAuthorization: Bearer {key}\r\n".encode()
    upload = b"POST /v1/files HTTP/1.1\r\n" + who + b"Content-Type: application/octet-stream\r\n"
    large = f"/v1/executions/{result['execution_id']}".encode()
    big = large + b"/files/big"
    look = b"HEAD " + large + b" HTTP/1.1\r\n" + who + b"\r\n"
    search = b"HEAD " + large + b"/files/none HTTP/1.1\r\n" + who + b"\r\n"
    # One execution for all.
    wanted = {"skill": "log", "timeout": "600s", "idempotency_key": "log"}
    body = json.dumps(wanted).encode()
    follow = (b"POST /v1/executions HTTP/1.1\r\n" + who + b"Content-Type: application/json\r\n"
        + b"Accept: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    # All bodies together are what the tenant may store; of the connections at work it has half.
    return (
        ("heads by the byte", CONNECTIONS,
         lambda s: s.sendall(b"GET /v1/skills HTTP/1.1\r\n" + who + b"X-A: "), a_byte_of_a_head),
        ("bodies by the byte", CONNECTIONS // 2,
         lambda s: s.sendall(upload + b"Content-Length: 65536\r\n\r\n"), a_byte_of_a_body),
        ("bodies that stop", CONNECTIONS // 2,
         lambda s: s.sendall(upload + b"Content-Length: 131072\r\n\r\n" + bytes(100 * 1024)),
         a_byte_of_a_body),
        ("answers that nobody reads", CONNECTIONS // 2,
         lambda s: s.sendall(b"GET " + big + b" HTTP/1.1\r\n" + who + b"\r\n"), a_byte_of_an_answer),
        ("looks at a large result", CONNECTIONS // 2, lambda s: s.sendall(look), a_look_again(look)),
        ("searches for a file", CONNECTIONS // 2, lambda s: s.sendall(search), a_look_again(search)),
        ("followers of a log", CONNECTIONS // 2, lambda s: s.sendall(follow), what_there_is(heard)),
    )


def check_others(daemon, other, what):
    check_health(daemon, what, PROBES)
    ran = run(other, "hello")
    check_in("hello", ran["stdout"], f"another's execution during {what}")
    search = other.request("GET", f"/v1/executions/{ran['execution_id']}/files/none")
    check_equal(search[0], 404, f"another's search for a file during {what}")
    disk = os.statvfs(daemon.data)
    free = disk.f_bavail * disk.f_frsize
    check(free >= WATERMARK, f"{free >> 20} MiB of disk left during {what}")


@long_case
def a_tenant_besieges_the_others_in_vain(world):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * CONNECTIONS + 400:
        raise Skipped(f"only {hard} descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port = free_port()
    daemon = world.copy_of_snapshots("siege", ["--listen", f"127.0.0.1:{port}"])
    daemon.start()
    try:
        key = make_tenant(daemon, "hostile", storage_bytes=STORAGE)
        hostile = TcpClient(port, key)
        other = TcpClient(port, make_tenant(daemon, "other"))
        push(hostile, BIG, "big")
        push(hostile, LOG, "log")
        push(other, 'print("hello"); open("/sandbox/out/here", "w").close()', "hello")
        result = run(hostile, "big")
        path = f"/v1/executions/{result['execution_id']}"
        check_equal(hostile.request("HEAD", path)[0], 200, "a look at a large result")
        check_equal(hostile.request("HEAD", f"{path}/files/none")[0], 404, "a search")
        run(other, "hello")
        heard = set()
        for title, n, begin, step in ways(key, result, heard):
            until = time.monotonic() + SECONDS
            with Siege(port, n, begin, step) as siege:
                wait_until(siege.full.is_set, 120, f"{n} connections with {title}")
                check_others(daemon, other, title)
                while time.monotonic() < until:
                    check_others(daemon, other, title)
                check(siege.problem is None, f"the siege ended: {siege.problem!r}")
            print(f"  {title}: {siege.n} connections, {siege.ended} of them ended by the daemon "
                f"in {SECONDS} s", flush=True)
        check(len(heard) >= CONNECTIONS // 4, f"only {len(heard)} followers heard of the log")
    finally:
        daemon.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
