# SPDX-License-Identifier: Apache-2.0
"""Where a program runs: in a machine, as a process of the host's, or in what else is called a sandbox.

Each gives a Run. Its end is "exit N", "signal N", "out of memory", "stopped" by who held it, or
what else the sandbox says.
"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import threading

from harness import Client, Failed, UnixConnection, check_equal, python_skill, shorten
from verdict import Run

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
PATIENCE_S = 300
READY = '["ready", null]'


def source_of(category, given):
    given = f"GIVEN = {given!r}\n"
    return given + "".join((PROGRAMS / f"{name}.py").read_text() for name in ("prelude", category))


class Skillvm:
    """As a tenant's skill, in a session that another tenant has one of the same name of."""

    name = "skillvm"

    def __init__(self, daemon, key, session, front=""):
        self.daemon, self.session, self.front = daemon, session, front
        self.headers = {"Authorization": f"Bearer {key}"}
        self.logged = 0

    def run(self, source, when_ready, limits):
        fields = {"session_id": self.session, "timeout": PATIENCE_S, "limits": limits}
        body, kind = Client.execution_body(python_skill(source, front=self.front), fields)
        headers = {**self.headers, "Content-Type": kind, "Accept": "text/event-stream"}
        connection = UnixConnection(self.daemon.socket, 2 * PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/executions", body, headers)
            response = connection.getresponse()
            check_equal(response.status, 200, f"HTTP status: {response.headers}")
            with contextlib.closing(response):
                result = self.follow(Client._parse(response), when_ready)
        return Run(result["stdout"], self.ended(result), self.seen(result))

    def follow(self, events, when_ready):
        """The result, after what has to be done meanwhile."""
        name, out = None, ""
        for event, data, _ in events:
            name = data.get("execution_id", name)
            if event == "stdout" and READY not in out:
                out += data["data"]
                if READY in out:
                    when_ready()
                    self.request("DELETE", f"/v1/executions/{name}")
            if event == "result":
                return data
        raise Failed("the events ended without a result")

    def request(self, method, path):
        return self.daemon.client.request(method, path, headers=self.headers)

    @staticmethod
    def ended(result):
        if result["truncated"]:
            return "more output than is kept"
        if result["status"] == "cancelled":
            return "stopped"
        if (result["error"] or "").startswith("out of memory"):
            return "out of memory"
        if result["exit_code"] is not None and result["status"] in ("success", "failed"):
            return f"exit {result['exit_code']}"
        return f"{result['status']}: {result['error']}"

    def seen(self, result):
        """The result, its files, and what the daemon's log has had since the last one."""
        with self.daemon.log.open("rb") as log:
            log.seek(self.logged)
            text = log.read()
            self.logged = log.tell()
        left = ""
        if result["files_list"]:
            answer = self.request("GET", f"/v1/executions/{result['execution_id']}/files")
            check_equal(answer.status, 200, f"the files: {shorten(answer.body)}")
            left = in_archive(answer.body)
        return json.dumps(result) + text.decode(errors="replace") + left


def in_archive(content):
    """Names and contents of what a program left."""
    found = ""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            found += f"{member.name} {member.linkname}\n"
            found += file.read().decode(errors="replace") if file else ""
    return found


class Process:
    """A command of the host's, with the program as its last argument."""

    def __init__(self, name, command, environment, folder):
        self.name, self.command = name, command
        self.environment = {**os.environ, **environment}
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()

    def prepare(self, source):
        return [*self.command, "python3", "-B", "-c", source]

    def run(self, source, when_ready, _):
        with (self.folder / "stderr").open("w+") as stderr:
            process = subprocess.Popen(
                self.prepare(source), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                env=self.environment, cwd=self.folder, text=True, errors="replace",
                start_new_session=True,
            )
            late = threading.Timer(PATIENCE_S, self.kill, (process,))
            late.start()
            try:
                out = self.follow(process, when_ready)
                status = process.wait()
            finally:
                late.cancel()
                self.kill(process)
            stderr.seek(0)
            said = stderr.read()
        ended = f"exit {status}" if status >= 0 else f"signal {-status}"
        return Run(out, f"{ended}: {shorten(said)}" if status else ended, out + said)

    @staticmethod
    def follow(process, when_ready):
        out = ""
        for line in process.stdout:
            out += line
            if line.startswith(READY):
                when_ready()
                process.stdin.write("stop\n")
                process.stdin.flush()
        return out

    @staticmethod
    def kill(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def mount(kind, at, *options):
    source = at if kind == "bind" else kind
    return {"destination": at, "type": kind, "source": source, "options": list(options)}


class Crun(Process):
    """An OCI bundle of the host's own programs, read-only, with all namespaces but the user's."""

    def prepare(self, source):
        bundle = self.folder / "bundle"
        shutil.rmtree(bundle, ignore_errors=True)
        for top in ("usr", "proc", "dev", "tmp"):
            (bundle / "rootfs" / top).mkdir(parents=True)
        for link in ("bin", "lib", "lib64"):
            (bundle / "rootfs" / link).symlink_to(f"usr/{link}")
        (bundle / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs", "readonly": True},
            "process": {
                "terminal": False, "user": {"uid": 0, "gid": 0}, "cwd": "/", "noNewPrivileges": True,
                "args": ["python3", "-B", "-c", source], "env": ["PATH=/usr/bin"],
            },
            "mounts": [
                mount("proc", "/proc"), mount("bind", "/usr", "rbind", "ro"),
                mount("tmpfs", "/dev", "nosuid", "mode=755", "size=64k"),
                mount("tmpfs", "/tmp", "nosuid", "nodev"),
            ],
            "linux": {"namespaces": [
                {"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")
            ]},
        }))
        return ["crun", "--root", str(self.folder / "state"), "run", "--bundle", str(bundle), "probe"]


# As its own pages begin: the host's programs, and new namespaces of every kind.
BUBBLEWRAP = [
    "bwrap", "--unshare-all", "--new-session", "--die-with-parent", "--ro-bind", "/usr", "/usr",
    "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
    "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
]


def peers(names, environment, folder):
    made = {"python3": (Process, []), "bubblewrap": (Process, BUBBLEWRAP), "crun": (Crun, [])}
    return [made[name][0](name, made[name][1], environment, folder / name) for name in names]
