# SPDX-License-Identifier: Apache-2.0
import http.client
import socket


def get(host):
    connection = http.client.HTTPConnection(host, GIVEN["http"], timeout=10)
    connection.request("GET", "/")
    return connection.getresponse().read()


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(10)
        sock.connect(address)
        return sock.recv(100)


begin()
for host in ("127.0.0.1", "localhost", "canary.test"):
    attempt(f"GET of {host}", lambda: get(host))
attempt("a port", lambda: connect(socket.AF_INET, ("127.0.0.1", GIVEN["port"])))
for cid in (1, 2):
    attempt(f"vsock {cid}", lambda: connect(socket.AF_VSOCK, (cid, GIVEN["port"])))
attempt("the daemon's socket", lambda: connect(socket.AF_UNIX, GIVEN["socket"]))
end()
