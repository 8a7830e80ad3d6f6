# SPDX-License-Identifier: Apache-2.0
"""Three nats-servers on the loopback interface and nodes with a stand-in for the VMM, of a
measurement's own, and what /proc says of their processes."""

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import skillvm
import stand_in

WAIT_S = 300
TICKS = os.sysconf("SC_CLK_TCK")


def wait_for(what, done, limit_s=WAIT_S, pause_s=0.01):
    """Until done() gives something true, which is returned."""
    deadline = time.monotonic() + limit_s
    while True:
        found = done()
        if found:
            return found
        if time.monotonic() > deadline:
            raise RuntimeError(f"never: {what}")
        time.sleep(pause_s)


def status_mib(pid, name):
    """VmRSS (now) or VmHWM (the most so far) of a process in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{name}:\s*(\d+)", text)[1]) / 1024


def cpu_seconds(pid):
    """What a process has used of processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def free_ports(n):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Servers:
    """Three in a cluster, from `with` to its end; their files are in one folder."""

    def __init__(self, n=3):
        self.folder = Path(tempfile.mkdtemp(prefix="skillvm-fleet."))
        self.n, self.processes = n, []
        self.urls = []

    def __enter__(self):
        ports = free_ports(2 * self.n)
        routes = ", ".join(f'"nats-route://127.0.0.1:{p}"' for p in ports[self.n:])
        for i in range(self.n):
            config = self.folder / f"{i}.conf"
            config.write_text(
                f'server_name: s{i}\nlisten: "127.0.0.1:{ports[i]}"\n'
                f'jetstream {{ store_dir: "{self.folder}/{i}", max_file_store: 16GB }}\n'
                f'cluster {{ name: bench, listen: "127.0.0.1:{ports[self.n + i]}", '
                f'routes: [{routes}] }}\n')
            self.processes.append(subprocess.Popen(
                ["nats-server", "-c", str(config), "-l", str(self.folder / f"{i}.log")]))
            self.urls.append(f"nats://127.0.0.1:{ports[i]}")
        # A server answers before there is a leader; the first node's cluster init is repeated.
        for port in ports[:self.n]:
            wait_for("a server listens", lambda port=port: self._listens(port))
        return self

    @staticmethod
    def _listens(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def cpu_seconds(self):
        return [cpu_seconds(p.pid) for p in self.processes]

    def resident_mib(self):
        return [status_mib(p.pid, "VmRSS") for p in self.processes]


class Node:
    """A skillvmd that is to be a node, from `with` to its end."""

    def __init__(self, servers, name, lines=""):
        self.config = servers.folder / f"{name}.yaml"
        self.config.write_text(f"cluster:\n  servers: {' '.join(servers.urls)}\n"
                               f"  node: {name}\n  replicas: {servers.n}\n{lines}")
        self.daemon = None

    def __enter__(self):
        self.daemon = stand_in.Daemon("--config", str(self.config), "--log-level", "warn")
        self.client = skillvm.Client(self.daemon.socket)
        self.pid = self.daemon.process.pid
        return self

    def __exit__(self, *_):
        self.daemon.close()

    def ask(self, method, path, body=None):
        return self.client._json(method, path, body)

    def sure(self, method, path, body=None):
        """The same until it is no 503, as while the servers elect a leader."""
        def attempt():
            try:
                return self.ask(method, path, body) or True
            except skillvm.APIError as error:
                if error.status != 503:
                    raise
                return None
        return wait_for(f"{method} {path}", attempt, 60, 0.1)

    def cluster(self):
        return self.ask("GET", "/v1/admin/cluster")

    def wait_revision(self, revision):
        """Until it is joined and has made every change up to this one."""
        return wait_for(f"revision {revision}", lambda: self._at(revision))

    def rows(self, table):
        """How many its database has."""
        path = self.daemon.dir / "data" / "skillvm.db"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def _at(self, revision):
        said = self.cluster()
        return said if said["state"] == "joined" and said["changes"]["revision"] >= revision else None
