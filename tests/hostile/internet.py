# SPDX-License-Identifier: Apache-2.0
"""An internet of the test's own: a network namespace where every address of IPv4 and IPv6 leads to one
server, which notes the address that somebody came for, and a DNS server that says what it is told to say.

The thread that makes it is in that namespace then, and so are the processes that it starts.
"""

import collections
import contextlib
import fcntl
import os
import pathlib
import select
import selectors
import shutil
import socket
import struct
import subprocess
import termios
import threading

from canaries import call
from harness import Skipped, wait_until

CLONE_NEWNET = 0x40000000
# Of <linux/in.h> and <linux/in6.h>: answering for addresses that no interface has.
IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75
PORTS = (22, 80, 443, 8080)
DNS = "127.0.0.53"
A, AAAA = 1, 28
CHUNK = b"x" * 65536


def setup_addresses(own):
    """All are reached by lo, and none is this machine's but loopback and those of own."""
    commands = ["link set lo up"]
    commands += [f"addr add {address}/32 dev lo" for address in own]
    # In a table of its own: what a socket can be bound to is looked for in the first one alone.
    for family, source in (("-4", "127.0.0.1"), ("-6", "::1")):
        commands.append(f"{family} rule add table 100")
        commands.append(f"{family} route add local default dev lo src {source} table 100")
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)


def listen(family, port, address="", backlog=4096):
    """The backlog has room for those who are gone before they are accepted, too."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((address, port))
    sock.listen(backlog)
    return sock


def record(kind, address):
    family = socket.AF_INET if kind == A else socket.AF_INET6
    raw = socket.inet_pton(family, address)
    return struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(raw)) + raw


class Internet:
    """floods, deaf: addresses whose servers send without an end, and read nothing; silent: one where
    nobody accepts. Other servers read what comes and end when their client does."""

    def __init__(self, own=(), floods=(), deaf=(), silent=()):
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise Skipped("it needs root and ip, for a network of its own")
        call("unshare", CLONE_NEWNET)
        setup_addresses(own)
        self.floods, self.deaf = floods, deaf
        # What a name is: addresses; None: no answer. Names that are not there are said not to be.
        self.names = {}
        # What it is from the moment on when somebody was told its first IPv4 addresses.
        self.later = {}
        self.asked, self.dialled, self.counting = collections.Counter(), collections.Counter(), threading.Lock()
        self.open, self.kept = set(), []  # those of the deaf are not looked at again
        self.snmp = f"/proc/self/task/{threading.get_native_id()}/net/snmp"
        self.selector = selectors.DefaultSelector()
        self.listeners = [listen(family, port) for port in PORTS
                          for family in (socket.AF_INET, socket.AF_INET6)]
        for listener in self.listeners:
            self.selector.register(listener, selectors.EVENT_READ, self.accept)
        self.silent = [listen(socket.AF_INET, port, address, 0) for address in silent for port in PORTS]
        self.dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.dns.bind((DNS, 53))
        self.selector.register(self.dns, selectors.EVENT_READ, self.answer)
        self.over, wakes = os.pipe()
        self.selector.register(self.over, selectors.EVENT_READ, None)
        self.wakes = wakes
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def begun(self):
        """How many connections anybody has begun in this namespace, wherever they came to."""
        head, values = (line.split() for line in pathlib.Path(self.snmp).read_text().splitlines()
                        if line.startswith("Tcp:"))
        return int(values[head.index("ActiveOpens")])

    def none_waits(self):
        with self.counting:
            return not select.select(self.listeners, [], [], 0)[0]

    def came(self):
        """How many connections came to each address and port. Who is connected may not have been accepted
        yet, and may be gone before it is: it came, and is waited for."""
        wait_until(self.none_waits, 60, "everybody who came is accepted")
        return dict(self.dialled)

    def unread(self):
        """Bytes that the deaf have not read."""
        return sum(struct.unpack("i", fcntl.ioctl(peer, termios.FIONREAD, bytes(4)))[0]
                   for peer in list(self.kept))

    def serve(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                key.data(key.fileobj)

    def accept(self, listener):
        with self.counting:
            peer, _ = listener.accept()
            address, port = peer.getsockname()[:2]
            self.dialled[address, port] += 1
        if address in self.deaf:
            self.kept.append(peer)
            return
        self.open.add(peer)
        peer.setblocking(False)
        floods = address in self.floods
        self.selector.register(peer, selectors.EVENT_WRITE if floods else selectors.EVENT_READ,
                               self.send if floods else self.read)

    def leave(self, peer):
        self.selector.unregister(peer)
        self.open.discard(peer)
        peer.close()

    def read(self, peer):
        try:
            if not peer.recv(len(CHUNK)):
                self.leave(peer)
        except OSError:
            self.leave(peer)

    def send(self, peer):
        try:
            peer.send(CHUNK)
        except BlockingIOError:
            pass
        except OSError:
            self.leave(peer)

    def answer(self, sock):
        question, client = sock.recvfrom(4096)
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]])
            at += 1 + question[at]
        name = b".".join(labels).decode("latin-1")
        kind = struct.unpack_from(">H", question, at + 1)[0]
        self.asked[name] += 1
        found = self.names.get(name, ())
        if found is None:
            return
        wanted = [address for address in found if (":" in address) == (kind == AAAA)]
        flags = 0x8180 if name in self.names else 0x8183
        head = question[:2] + struct.pack(">HHHHH", flags, 1, len(wanted), 0, 0)
        body = b"".join(record(kind, address) for address in wanted)
        sock.sendto(head + question[12 : at + 5] + body, client)
        if kind == A and name in self.later:
            self.names[name] = self.later.pop(name)

    def close(self):
        os.close(self.wakes)
        self.thread.join()
        for sock in (*self.listeners, *self.silent, *self.open, *self.kept, self.dns):
            with contextlib.suppress(OSError):
                sock.close()
        os.close(self.over)
        self.selector.close()
