# SPDX-License-Identifier: Apache-2.0
"""Servers of the host that note everybody who comes to them."""

import contextlib
import os
import random
import socket
import threading

from harness import wait_until


class Servers:
    """A web server and a bare port on 127.0.0.1, and a DNS server on an address of its own."""

    def __init__(self, secret):
        self.secret, self.seen = secret.encode(), []
        self.web = socket.create_server(("127.0.0.1", 0))
        self.bare = socket.create_server(("127.0.0.1", 0))
        self.dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.dns_address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.53"
        self.dns.bind((self.dns_address, 53))
        for serve in (self._serve_web, self._serve_bare, self._serve_dns):
            threading.Thread(target=serve, daemon=True).start()

    def _serve_web(self):
        head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.secret)
        self._serve(self.web, "the web server was asked", head)

    def _serve_bare(self):
        self._serve(self.bare, "the port was connected to", b"")

    def _serve(self, listener, what, head):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                self.seen.append(what)
                with peer, contextlib.suppress(OSError):
                    peer.sendall(head + self.secret)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(4096):
                        pass

    def _serve_dns(self):
        with contextlib.suppress(OSError):
            while True:
                question, peer = self.dns.recvfrom(512)
                if peer is None:
                    return
                self.seen.append("the DNS server was asked")
                # The same with the bit of an answer: there is no such name.
                self.dns.sendto(question[:2] + b"\x81\x83" + question[4:], peer)

    def close(self):
        for sock in (self.web, self.bare, self.dns):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def is_listening(port):
    """Whether somebody answers at a port of this host."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
            return bool(sock.recv(1))
    except OSError:
        return False


class Victim:
    """A process that wants one processor for itself, and what it gets of it."""

    def __init__(self, command):
        self.cpu = min(os.sched_getaffinity(0))
        self.pid = os.posix_spawn(command[0], command, os.environ)
        os.sched_setaffinity(self.pid, {self.cpu})

    def _ticks(self):
        """Its own, and those that its processor was busy for."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            own = file.read().rpartition(")")[2].split()
        with open("/proc/stat", encoding="ascii") as file:
            line = next(line for line in file if line.startswith(f"cpu{self.cpu} "))
        user, nice, system, _, _, irq, softirq = map(int, line.split()[1:8])
        return int(own[11]) + int(own[12]), user + nice + system + irq + softirq

    def share(self, busy_s):
        """What it had of so many seconds that its processor was busy."""
        begin = self._ticks()
        ticks = busy_s * os.sysconf("SC_CLK_TCK")
        wait_until(lambda: self._ticks()[1] - begin[1] >= ticks, 120, "the processor is busy")
        end = self._ticks()
        return (end[0] - begin[0]) / (end[1] - begin[1])

    def close(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
