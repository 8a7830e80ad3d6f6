#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the HTTP fuzz target into corpus/http/ beside this file."""

import pathlib

HOST = b"Host: x\r\n"
LAST = HOST + b"Connection: close\r\n"
FORM = b"Content-Type: multipart/form-data; boundary=b\r\n"


def part(name, content, extra=b""):
    return (b'--b\r\nContent-Disposition: form-data; name="' + name + b'"' + extra
            + b"\r\n\r\n" + content + b"\r\n")


def post(path, body, headers=b""):
    return (b"POST " + path + b" HTTP/1.1\r\n" + LAST + headers
            + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def chunked(path, chunks, headers=b""):
    return (b"POST " + path + b" HTTP/1.1\r\n" + LAST + headers
            + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)


TWO_PARTS = part(b"a", b"{}") + part(b"b", b"x" * 100) + b"--b--\r\n"
SEEDS = {
    "hello": b"GET /hello HTTP/1.1\r\n" + LAST + b"\r\n",
    "http10": b"GET /hello HTTP/1.0\r\n\r\n",
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "absolute": b"GET http://x:1/hello?a=b HTTP/1.1\r\n" + LAST + b"\r\n",
    "params": b"GET /files/a%20b/c/d%2Fe?q=1%26+2 HTTP/1.1\r\n" + LAST + b"\r\n",
    "dots": b"GET /files/%2e%2e/..%2f..%00 HTTP/1.1\r\n" + LAST + b"\r\n",
    "key": b"GET /files/a/b HTTP/1.1\r\nAuthorization: Bearer sk-1\r\n" + LAST + b"\r\n",
    "two-keys": b"GET /files/a/b HTTP/1.1\r\nAuthorization: Bearer a\r\n"
                b"Authorization: Bearer b\r\n" + LAST + b"\r\n",
    "pipeline": b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n"
                + b"HEAD /hello HTTP/1.1\r\n" + HOST + b"\r\n"
                + b"POST /json HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{}"
                + b"OPTIONS /json HTTP/1.1\r\n" + LAST + b"\r\n",
    "second-is-none": b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n\x16\x03\r\n\r\n",
    "second-bare-lf": b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\nGET /hello HTTP/1.1\n"
                      + LAST + b"\r\n",
    "second-chunks": b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n"
                     + chunked(b"/json", b"2\r\n{}\r\n0;a=b\r\nA: b\r\n\r\n"),
    "second-chunks-bare-lf": b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n"
                             + chunked(b"/json", b"2\n{}\n0\n\n"),
    "json": post(b"/json", b'{"a":1}', b"Content-Type: application/json\r\n"),
    "json-short": b"POST /json HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{}",
    "type": post(b"/json", b"x", b"Content-Type: text/html\r\n"),
    "expect": post(b"/json", b"{}", b"Expect: 100-continue\r\n"),
    "too-large": b"POST /json HTTP/1.1\r\n" + HOST + b"Content-Length: 9999999\r\n\r\nx",
    "chunked": chunked(b"/json", b"2;x=y\r\n{}\r\n0\r\nA: b\r\n\r\n"),
    "chunked-bad": chunked(b"/json", b"2\r\n{}x\r\n0\r\n\r\n"),
    "chunked-huge": chunked(b"/json", b"ffffffffffffffff\r\n{}"),
    "both": chunked(b"/json", b"0\r\n\r\nGET /hello HTTP/1.1\r\n\r\n", b"Content-Length: 5\r\n"),
    "file": post(b"/file", bytes(range(256)), b"Content-Type: a/b\r\n"),
    "form": post(b"/json", TWO_PARTS, FORM),
    "form-chunked": chunked(b"/json", b"%x\r\n" % len(TWO_PARTS) + TWO_PARTS
                            + b"\r\n0\r\n\r\n", FORM),
    "form-file": post(b"/file", part(b"file", b"content", b'; filename="a.txt"')
                      + b"--b--\r\n", FORM),
    "form-twice": post(b"/json", part(b"a", b"1") + part(b"a", b"2") + b"--b--\r\n", FORM),
    "form-unknown": post(b"/json", part(b"c", b"1") + b"--b--\r\n", FORM),
    "form-no-end": post(b"/json", part(b"a", b"1"), FORM),
    "form-no-name": post(b"/json", b"--b\r\n\r\nx\r\n--b--\r\n", FORM),
    "form-nested": post(b"/json", b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n"
                        b'Content-Disposition: form-data; name="a"\r\n\r\n'
                        b"--c\r\n\r\nx\r\n--c--\r\n--b--\r\n", FORM),
    "form-no-boundary": post(b"/json", b"x", b"Content-Type: multipart/form-data\r\n"),
    "stream": b"GET /stream?short=1 HTTP/1.1\r\n" + LAST + b"\r\n",
    "stream-http10": b"GET /stream?short=1 HTTP/1.0\r\n\r\n",
    "stream-endless": b"GET /stream HTTP/1.1\r\n" + HOST + b"\r\n",
    "fold": b"GET /hello HTTP/1.1\r\nA: b\r\n c\r\n" + LAST + b"\r\n",
    "no-host": b"GET /hello HTTP/1.1\r\n\r\n",
    "get-with-body": b"GET /hello HTTP/1.1\r\n" + LAST + b"Content-Length: 3\r\n\r\nabc",
    "half": b"GET /hello HTTP/1.1\r\nHost",
    "many-headers": b"GET /hello HTTP/1.1\r\n" + LAST
                    + b"".join(b"X%d: y\r\n" % i for i in range(120)) + b"\r\n",
    "long-target": b"GET /" + b"a" * 8300 + b" HTTP/1.1\r\n" + LAST + b"\r\n",
}

folder = pathlib.Path(__file__).parent / "corpus" / "http"
folder.mkdir(parents=True, exist_ok=True)
for name, seed in SEEDS.items():
    (folder / name).write_bytes(seed)
