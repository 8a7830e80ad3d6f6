# SPDX-License-Identifier: Apache-2.0
"""Callers that attack the daemon: broken HTTP, broken JSON, broken multipart, broken archives."""

import contextlib
import json
import socket
import time

import archives
from harness import Failed, busy_case, case, check, check_equal, check_in, python_skill, shorten

# What a bad archive is called: see docs/protocol.md.
STATUS = {"invalid_skill": 400, "too_large": 413}


def raw(world, data, wait=60.0, then_close=False):
    """Bytes as they are; what came back."""
    answer = b""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(wait)
        s.connect(str(world.daemon.socket))
        # What nobody reads is not sent; the answer may be there all the same.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            s.sendall(data)
        if then_close:
            return b""
        with contextlib.suppress(ConnectionResetError, TimeoutError):
            while len(answer) < 1 << 20:
                piece = s.recv(65536)
                if not piece:
                    break
                answer += piece
                head, split, body = answer.partition(b"\r\n\r\n")
                if split and b"ontent-" in head:
                    for line in head.split(b"\r\n"):
                        if line.lower().startswith(b"content-length:"):
                            if len(body) >= int(line.split(b":")[1]):
                                return answer
        return answer


def alive(world):
    check(world.daemon.process.poll() is None, f"the daemon died: {world.daemon.log_tail()}")
    check_equal(world.client.get("/health").status, 200, "/health")


@case
def broken_http(world):
    execute = b"POST /v1/executions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    push = b"POST /v1/skills HTTP/1.1\r\nHost: x\r\nContent-Length: "
    for status, data in (
        (400, b"\0" * 4096),
        (400, b"GET\r\n\r\n"),
        (505, b"GET / HTTP/9.9\r\n\r\n"),
        (400, b"\r\n\r\n\r\n"),
        (431, b"GET /health HTTP/1.1\r\n" + b"X: " + b"y" * (1 << 20) + b"\r\n\r\n"),
        (414, b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
        (431, b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 50000 + b"\r\n"),
        (400, push + b"-5\r\n\r\nhello"),
        (413, push + b"99999999999999999999\r\n\r\nx"),
        (400, execute + b"ZZZ\r\n"),
        (400, execute + b"FFFFFFFFFFFFFFFF\r\nx"),
    ):
        answer = raw(world, data)
        found = int(answer.split()[1]) if answer else None
        check_equal(found, status, f"{data[:40]!r}: {answer[:80]!r}")
        alive(world)


@case
def body_shorter_than_it_says(world):
    head = b"POST /v1/skills HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\n"
    for _ in range(20):
        raw(world, head + b"Content-Length: 1000000\r\n\r\nPK\x03\x04", then_close=True)
    alive(world)


@busy_case
def body_over_the_limit(world):
    """More than 288 MiB in chunks, with no length given: refused before it is all read."""
    head = (
        b"POST /v1/skills HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    answer = raw(world, head + chunk * 300 + b"0\r\n\r\n", wait=600)
    check_in(b" 413 ", answer[:40], "the answer")
    alive(world)


@case
def slow_callers_do_not_block_others(world):
    """What they hold up they hold up each time, until the daemon ends them after 20 s."""
    for _ in range(5):
        with contextlib.ExitStack() as held:
            for number in range(60):
                s = held.enter_context(socket.socket(socket.AF_UNIX))
                s.settimeout(60)
                s.connect(str(world.daemon.socket))
                s.sendall(b"GET /health HTTP/1.1\r\nX-Slow: " + str(number).encode())
            begin = time.monotonic()
            world.client.run_ok(python_skill("print(1)"))
            if time.monotonic() - begin < 20:
                return
    raise Failed("a run had to wait for idle connections")


@case
def broken_json(world):
    for body in (
        b"",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"text"',
        b"{}",
        b'{"skill": 5}',
        b'{"skill": ""}',
        b'{"skill": "x", "input": }',
        b'{"skill": "\xff\xfe"}',
        b'{"skill": "a\\u0000b"}',
        b'{"skill": "../../etc/passwd"}',
        b'{"skill": "x", "timeout": 1e400}',
        b'{"skill": "x", "timeout": {}}',
        b'{"a": ' + b"[" * 100000 + b"]" * 100000 + b"}",
        b"[" * 1000000,
        b'{"skill": "x"} trailing',
        b"\0" * 1000,
    ):
        answer = world.client.request(
            "POST", "/v1/executions", body, {"Content-Type": "application/json"}
        )
        check(answer.status in (400, 404, 413), f"HTTP {answer.status} for {body[:40]!r}")
        check(answer.json["error"] and answer.json["message"], f"no message for {body[:40]!r}")
    alive(world)


@case
def broken_multipart(world):
    kind = "multipart/form-data; boundary=b"
    zip_head = b'--b\r\nContent-Disposition: form-data; name="skill_archive"; filename="x"\r\n\r\n'
    request = b'--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n'
    for content_type, body in (
        (kind, b""),
        (kind, b"--b--\r\n"),
        (kind, zip_head + b"no zip\r\n--b--\r\n"),
        (kind, request + b"{}\r\n--b--\r\n"),
        (kind, request + b"{\r\n" + zip_head + b"x\r\n--b--\r\n"),
        (kind, b"--b\r\n\r\nno name\r\n--b--\r\n"),
        (kind, request * 1000 + b"\r\n--b--\r\n"),
        ("multipart/form-data", b"--b--\r\n"),
        ("multipart/form-data; boundary=", b"----\r\n"),
        ("application/x-www-form-urlencoded", b"skill=x"),
        ("text/plain", b"hello"),
        ("", b"hello"),
    ):
        answer = world.client.request(
            "POST", "/v1/executions", body, {"Content-Type": content_type}
        )
        check(400 <= answer.status < 500, f"HTTP {answer.status} for {body[:60]!r}")
        check(answer.json["message"], "no message")
    alive(world)


@case
def addresses_that_do_not_exist(world):
    get = world.client.get
    for path in (
        "/",
        "/v1",
        "/v1/executions/",
        "/v1/executions/exec_" + "0" * 32,
        "/v1/executions/exec_" + "0" * 31,
        "/v1/executions/exec_" + "0" * 32 + "/files",
        "/v1/executions/exec_" + "0" * 32 + "/other",
        "/v1/executions/..%2f..%2f..%2fetc%2fpasswd/files",
        "/v1/executions/../../../../etc/passwd",
        "/v1/executions/%00/files",
        "/v1/executions/' OR 1=1 --",
        "/v1/executions/" + "x" * 4000,
        "//v1//executions",
        "/health/",
        "/%68ealth/../v1",
    ):
        answer = get(path.replace(" ", "%20"))
        check(answer.status in (400, 404, 405), f"HTTP {answer.status} for {path[:60]}")
        check(answer.json["message"], f"no message for {path[:60]}")
    for method, path in (
        ("DELETE", "/health"),
        ("PUT", "/v1/skills"),
        ("PATCH", "/v1/executions"),
        ("PUT", "/v1/executions"),
        ("POST", "/v1/skills/a/b"),
        ("BREW", "/health"),
    ):
        answer = world.client.request(method, path)
        check(answer.status in (404, 405, 501), f"HTTP {answer.status} for {method} {path}")
    alive(world)


@case
def malicious_archives(world):
    """Every one is refused, some by both ways in, with a message, and nothing is left."""
    before = sorted(path.name for path in (world.daemon.data / "objects").rglob("*"))
    for name, (expected, content) in archives.all_archives().items():
        answer = world.client.request(
            "POST", "/v1/skills", content, {"Content-Type": "application/octet-stream"}
        )
        check_equal(answer.status, STATUS[expected], f"{name}: HTTP status")
        check_equal(answer.json["error"], expected, f"{name}: error")
        check(len(answer.json["message"]) > 10, f"{name}: message {answer.json['message']!r}")
        if name not in ("parent", "link-out-tar", "entries-20001", "ratio", "no-skill-md"):
            continue
        answer = world.client.execute(content)
        check_equal(answer.status, STATUS[expected], f"{name}: HTTP status of a run")
        check_equal(answer.json["error"], expected, f"{name}: error of a run")
    after = sorted(path.name for path in (world.daemon.data / "objects").rglob("*"))
    check_equal(after, before, "stored objects")
    alive(world)


@case
def many_callers_at_once(world):
    """100 connections that each ask for something wrong, all open together."""
    body = json.dumps({"skill": "none-such"}).encode()
    request = (
        b"POST /v1/executions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    ) + body
    held = []
    for _ in range(100):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(180)
        s.connect(str(world.daemon.socket))
        s.sendall(request)
        held.append(s)
    for s in held:
        head = s.recv(65536)
        check(head.startswith(b"HTTP/1.1 404") or b" 503 " in head[:40], shorten(head))
        s.close()
    alive(world)
