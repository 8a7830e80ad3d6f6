# SPDX-License-Identifier: Apache-2.0
"""Callers by TCP, and how long the daemon's health takes beside what this machine takes for any."""

import http.client
import os
import signal
import socket
import tempfile
import time

from harness import Failed, UnixConnection, check_equal

WARM_UP = 100
PROBES = 1000


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class TcpClient:
    """Requests to a port, with a key or without."""

    def __init__(self, port, key=None):
        self.port = port
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=180)
        try:
            connection.request(method, path, body, {**self.headers, **headers})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def status(self, method, path, body=None, **headers):
        return self.request(method, path, body, **headers)[0]


class BareResponder:
    """A process whose answers nothing had to be done for: what this machine takes for any."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.folder.name, "sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.socket)
        listener.listen(10)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._serve(listener)
            finally:
                os._exit(1)
        listener.close()
        return self

    def _serve(self, listener):
        while True:
            peer, _ = listener.accept()
            if peer.recv(4096):
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            peer.close()

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.folder.cleanup()


def health_time(path):
    """Seconds of one GET /health on a connection of its own."""
    begin = time.perf_counter()
    connection = UnixConnection(path, 30)
    connection.request("GET", "/health")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    check_equal(answer.status, 200, "health")
    return time.perf_counter() - begin


def measure_health(daemon, what, probes):
    """One GET /health after another, each beside one that a bare process answers. Whether the
    daemon's took hardly longer, and the figures."""
    took, bare = [], []
    with BareResponder() as responder:
        for _ in range(WARM_UP + probes):
            bare.append(health_time(responder.socket))
            took.append(health_time(daemon.socket))
    # An emulated machine translates what it runs for the first time.
    took, bare = sorted(took[WARM_UP:]), sorted(bare[WARM_UP:])
    p50, p99, bare_p99 = took[probes // 2], took[probes * 99 // 100], bare[probes * 99 // 100]
    shown = (
        f"health while {what}: p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, "
        f"max {took[-1] * 1000:.1f} ms; bare p99 {bare_p99 * 1000:.1f} ms"
    )
    print(f"  {shown}", flush=True)
    return p99 < 2 * bare_p99 + 0.05, shown


def check_health(daemon, what, probes=PROBES):
    """What somebody holds up he holds up each time; what else the machine does may come between."""
    for _ in range(5):
        fine, shown = measure_health(daemon, what, probes)
        if fine:
            return
    raise Failed(shown)
