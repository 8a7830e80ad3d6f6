# SPDX-License-Identifier: Apache-2.0
"""A real skillvmd with the stand-in for the VMM and the guest, in a folder of its own.

The environment says where the programs are: SKILLVMD and FAKE_VMM. What an execution does is
the request's variable FAKE (tests/unit/fake_vmm.c).
"""

import atexit
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "api/clients/python"))


class Daemon:
    def __init__(self, *options):
        self.dir = Path(tempfile.mkdtemp(prefix="skillvm-client."))
        self.socket = str(self.dir / "sock")
        self.build("vmlinux", "boot")
        self.build("python.erofs", "restore")
        self.options = options
        self.process = None
        # A test that ends by an exception would leave it, and with it its standard output open.
        atexit.register(self.close)
        self.start()

    def build(self, name, content, folder=None):
        """A guest kernel or image, with the checksum that the builders write."""
        file = (folder or self.dir) / name
        file.write_text(content)
        digest = hashlib.sha256(content.encode()).hexdigest()
        file.with_suffix(".sha256").write_text(f"{digest}  {name}\n")

    def start(self):
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen(
                [os.environ["SKILLVMD"], "--socket", self.socket,
                 "--data", str(self.dir / "data"), "--share", str(self.dir),
                 "--vmm", os.environ["FAKE_VMM"], "--grace", "4", *self.options],
                stderr=log)
        import skillvm  # after sys.path was set
        client = skillvm.Client(self.socket)
        for _ in range(4500):
            try:
                # A node begins before its cluster does.
                if client.ready()["status"] in ("ready", "cut_off"):
                    return
            except skillvm.APIError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError("skillvmd did not get ready:\n" + (self.dir / "log").read_text())

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(120)

    def close(self):
        if self.process and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


class NatsServer:
    """A nats-server with JetStream on the loopback interface, in a folder of its own."""

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="skillvm-nats."))
        self.start()
        atexit.register(self.close)
        for _ in range(3000):
            if self.process.poll() is not None:
                # Somebody else has its port by now.
                self.start()
            try:
                self.publish("x", b"")
                # Who answered may have been somebody else, at the port of one that ended.
                if self.process.poll() is None:
                    return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("nats-server does not answer")

    def start(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = free.getsockname()
        self.url = "nats://{}:{}".format(*self.address)
        self.process = subprocess.Popen(
            ["nats-server", "-a", self.address[0], "-p", str(self.address[1]), "-js",
             "-sd", str(self.dir / "data"), "-l", str(self.dir / "log")])

    def publish(self, subject, data):
        """As a stranger would, in the protocol's own words."""
        with socket.create_connection(self.address, timeout=10) as s:
            s.sendall(b'CONNECT {"verbose":false}\r\n' +
                      f"PUB {subject} {len(data)}\r\n".encode() + data + b"\r\nPING\r\n")
            said = b""
            while b"PONG" not in said:
                more = s.recv(65536)
                if not more:
                    raise ConnectionError("nats-server hung up")
                said += more

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def skill_folder(parent, name, version="1.0.0", script="print(1)"):
    """A skill that anybody would write, in a new folder."""
    folder = Path(parent) / name
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\nversion: \"{version}\"\ndescription: Made by a test.\n---\nDo it.\n")
    (folder / "scripts" / "main.py").write_text(script)
    return folder
