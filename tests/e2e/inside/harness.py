# SPDX-License-Identifier: Apache-2.0
"""What the cases inside a host stand on: a daemon of their own, a client, and /proc.

Standard library only: the software host's image holds nothing more.
"""

import contextlib
import http.client
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

CASES = []
# Emulated machines are about ten times slower than real ones.
READY_TIMEOUT = 240
REQUEST_TIMEOUT = 360
PATIENCE = 3
# What a daemon may keep of a hostile case, its allocator's caches included.
KEPT_KIB_MAX = 24 * 1024


class Failed(Exception):
    """A check did not hold; the text says which."""


class Costly(Failed):
    """The daemon computed for longer than what it was to do takes."""


class Skipped(Exception):
    """The case cannot run here; the text says why."""


class Beside(threading.Thread):
    """Runs as long as a `with` lasts, whose end sets `over`."""

    def __init__(self):
        super().__init__()
        self.over = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def case(function):
    CASES.append(function)
    return function


def long_case(function):
    """Runs with --long, or where it is named: what takes too long for each `./dev test`."""
    function.long = True
    return case(function)


def asked_case(function):
    """Runs only where it is named as it is: what takes hours, or images that are not there each time."""
    function.asked = True
    return case(function)


def busy_case(function):
    """Has the daemon do work for most of its time."""
    function.share = 0.8
    return case(function)


def check(condition, text):
    if not condition:
        raise Failed(text)


def check_equal(got, want, what):
    if got != want:
        raise Failed(f"{what}: got {shorten(got)}, expected {shorten(want)}")


def check_success(result, who=""):
    if result["status"] != "success":
        raise Failed(
            f"{who}status {result['status']}, error {result['error']}, "
            f"stderr {shorten(result['stderr'], 800)}"
        )
    return result


def check_in(part, whole, what):
    if part not in (whole or ""):
        raise Failed(f"{what}: no {part!r} in {shorten(whole)}")


def shorten(value, limit=300):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[:limit] + "…"


def wait_until(condition, seconds, what):
    """The first true value of condition(), polled; Failed after so many seconds, or what they are
    worth on a machine that has others beside."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def skill_zip(files, name="probe", front="", body="A test's skill."):
    """A skill as zip bytes. files maps paths to text or bytes; SKILL.md is made unless given."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if "SKILL.md" not in files:
            archive.writestr(
                "SKILL.md",
                f"---\nname: {name}\ndescription: a skill of the tests\n{front}---\n{body}\n",
            )
        for path, content in files.items():
            archive.writestr(path, content)
    return out.getvalue()


def python_skill(source, **more):
    return skill_zip({"main.py": source}, **more)


def bash_skill(source, **more):
    return skill_zip({"main.sh": source}, **more)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def multipart(parts):
    """parts: (name, file name or None, bytes). Returns (body, content type)."""
    boundary = "skillvm-tests-" + os.urandom(8).hex()
    out = []
    for name, filename, content in parts:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if filename:
            head += f'; filename="{filename}"\r\nContent-Type: application/octet-stream'
        out += [head.encode() + b"\r\n\r\n", content, b"\r\n"]
    out.append(f"--{boundary}--\r\n".encode())
    return b"".join(out), f"multipart/form-data; boundary={boundary}"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            raise Failed(f"HTTP {self.status} without JSON: {shorten(self.body)}") from None


class Client:
    def __init__(self, path, patience=REQUEST_TIMEOUT):
        self.path, self.patience = path, patience

    def request(self, method, path, body=None, headers=None, timeout=None):
        connection = UnixConnection(self.path, timeout or self.patience)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    @staticmethod
    def execution_body(archive, fields):
        if archive is None:
            return json.dumps(fields).encode(), "application/json"
        return multipart(
            [
                ("request", None, json.dumps(fields).encode()),
                ("skill_archive", "skill.zip", archive),
            ]
        )

    def execute(self, archive=None, timeout_s=REQUEST_TIMEOUT, **fields):
        """Runs an archive, or a registered skill with skill=…; the HTTP answer."""
        body, kind = self.execution_body(archive, fields)
        return self.request(
            "POST", "/v1/executions", body, {"Content-Type": kind}, timeout=timeout_s
        )

    def run(self, archive=None, **fields):
        """execute, and the result of an execution that took place, whatever its status."""
        answer = self.execute(archive, **fields)
        check(answer.status in (200, 201), f"HTTP {answer.status}: {shorten(answer.body)}")
        return answer.json

    def run_ok(self, archive=None, **fields):
        """run, of what ends well, however slow the machine is."""
        fields.setdefault("timeout", 600)
        fields.setdefault("timeout_s", 660)
        return check_success(self.run(archive, **fields))

    @contextlib.contextmanager
    def events(self, archive=None, **fields):
        """An execution as a generator of (event, data, time it arrived)."""
        body, kind = self.execution_body(archive, fields)
        connection = UnixConnection(self.path, REQUEST_TIMEOUT)
        response = None
        try:
            connection.request(
                "POST",
                "/v1/executions",
                body,
                {"Content-Type": kind, "Accept": "text/event-stream"},
            )
            response = connection.getresponse()
            if response.status != 200:
                raise Failed(f"HTTP {response.status}: {shorten(response.read())}")
            check_in("text/event-stream", response.headers["Content-Type"], "content type")
            yield self._parse(response)
        finally:
            # The response has the socket too; both must go for the daemon to see the end.
            if response:
                response.close()
            connection.close()

    @staticmethod
    def _parse(response):
        event, data = "message", []
        for raw in response:
            line = raw.decode().rstrip("\r\n")
            if line.startswith("event:"):
                event = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].lstrip(" "))
            elif line == "" and data:
                yield event, json.loads("\n".join(data)), time.time()
                event, data = "message", []


def processes(name):
    """Ids of the live processes whose program has this name; zombies are not alive."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            target = os.path.basename(os.readlink(f"/proc/{entry}/exe"))
        except OSError:
            continue
        if target == name or target == f"{name} (deleted)":
            found.append(int(entry))
    return found


def parent_of(pid):
    """0: it has none, or has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(re.search(r"^PPid:\s+(\d+)", status, re.M)[1])


def joins(cgroup=None, user=None):
    """For the child that is to be in a folder of cgroup v2, and to be a user of passwd(5)."""

    def join():
        if cgroup:
            (cgroup / "cgroup.procs").write_text("0")
        if user:
            os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)

    return join


def check_reused(run, what):
    """The result of a run that had a machine of an earlier one. One that took more than it may of
    the processor while it waited is exchanged, on a busy host more often."""
    for _ in range(5):
        result = run()
        if result["machine"] == "reused":
            return result
    raise Failed(f"{what} had no machine of an earlier run")


def copy_sparse(source, target):
    """A folder; shutil would fill the holes of files that are mostly holes."""
    subprocess.run(["cp", "-r", "--sparse=always", source, target], check=True)


class Daemon:
    """A skillvmd on a data directory of its own. Without `kept` it makes no snapshots of profiles:
    in a software host each takes a minute of the processor that the other cases run on."""

    common = ()  # options of all

    def __init__(self, bin_dir, share, data, options=(), kept=0):
        self.program = os.path.join(bin_dir, "skillvmd")
        self.share, self.data, self.options = share, pathlib.Path(data), list(options)
        self.socket = self.data / "skillvm.sock"
        self.log = self.data.parent / (self.data.name + ".log")
        self.environment = {**os.environ, "SKILLVM_SNAPSHOTS_KEPT": str(kept)}
        self.process = None
        self.client = Client(self.socket)

    def start(self, ready=True, cgroup=None, user=None):
        """In a cgroup and as a user, which joins knows, or as this process."""
        self.data.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--socket", str(self.socket), "--data", str(self.data)]
                + ["--share", self.share, *self.common]
                + self.options,
                env=self.environment,
                preexec_fn=(cgroup or user) and joins(cgroup, user),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(self._answers, 30, "the daemon answers /health")
        if ready:
            self.wait_ready()

    def _answers(self):
        if self.process.poll() is not None:
            raise Failed(f"skillvmd ended with {self.process.returncode}: {self.log_tail()}")
        try:
            return self.client.get("/health", timeout=5).status == 200
        except OSError:
            return False

    def kill_jail(self):
        """Kills what starts its machines, which end with it; the daemon knows when this returns:
        a machine is taken before its end is heard of, too."""
        (jail,) = (pid for pid in processes("skillvm-jail") if parent_of(pid) == self.pid)
        before = self.machines()
        check(before, "it has machines")
        os.kill(jail, signal.SIGKILL)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in before), 20,
                   "its machines end")

    def wait_ready(self, seconds=READY_TIMEOUT):
        def ready():
            if self.process.poll() is not None:
                raise Failed(f"skillvmd ended with {self.process.returncode}: {self.log_tail()}")
            try:
                return self.client.get("/ready", timeout=10).status == 200
            except OSError:
                return False

        try:
            wait_until(ready, seconds, "the daemon is ready")
        except Failed as problem:
            raise Failed(f"{problem}; log: {self.log_tail()}") from None

    def stop(self):
        """SIGTERM; the exit status."""
        if not self.process:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(60 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("skillvmd did not end in time after SIGTERM") from None
        self.process = None
        return status

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def log_tail(self, lines=12):
        with contextlib.suppress(OSError):
            return " | ".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return "no log"

    @property
    def pid(self):
        return self.process.pid

    def descriptors(self):
        """Without the three of each machine that waits."""
        return len(os.listdir(f"/proc/{self.pid}/fd")) - 3 * len(self.machines())

    def machines(self):
        """Ids of the processes of its machines. Asked of the kernel: it takes no connection."""
        return [pid for pid in processes("skillvm-vmm") if parent_of(pid) == self.pid]

    def metrics(self, name):
        """The values of a metric, by what is between its braces."""
        text = self.client.get("/metrics").body.decode()
        found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.M)
        return {labels: float(value) for labels, value in found}

    def parked(self):
        """How many machines wait for an execution, once none is being reset or ended."""
        wait_until(lambda: not self.metrics("skillvm_machines_behind")[""], 20, "resets are done")
        return int(sum(self.metrics("skillvm_machines_parked").values()))

    def look_at_waiting(self, look):
        """look(pids) with all its machines, a guest in each, that wait. One goes now and then, for
        another or as nobody wants it: then it looks again."""
        machines = []

        def all_wait():
            machines[:] = self.machines()
            return 0 < len(machines) == self.parked()

        for _ in range(5):
            wait_until(all_wait, 60, "all machines wait")
            try:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    return look(machines)
            except Failed:
                self.parked()  # waits for the end of one that goes, which may be what is wrong with it
                if set(machines) <= set(self.machines()):
                    raise
        raise Failed("machines do not wait for long enough to look at them")

    def rss_kib(self):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"^RssAnon:\s+(\d+)", text, re.M).group(1))

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cost(self):
        """What it has used so far, and when that was."""
        return self.pid, time.monotonic(), self.cpu_seconds(), self.rss_kib()

    def check_cost(self, before, share=0.5):
        """It neither spun nor kept memory since; in words. Nothing of one that was restarted."""
        after = self.cost()
        if after[0] != before[0]:
            return ""
        seconds, cpu, kept = (after[i] - before[i] for i in (1, 2, 3))
        if cpu > 2 + seconds * share:
            raise Costly(f"the daemon used {cpu:.1f} s of {seconds:.1f} s")
        check(kept <= KEPT_KIB_MAX, f"the daemon keeps {kept} KiB")
        return f"; the daemon {cpu:.1f} s, {kept:+d} KiB"

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def leftovers(self):
        """Names in the daemon's folder for temporary files."""
        return sorted(path.name for path in (self.data / "tmp").glob("*"))


def need_node(world):
    if not pathlib.Path(world.share, "node.erofs").exists():
        raise Skipped("image-node is not built")


class World:
    """One directory and one long-lived daemon for all the cases."""

    def __init__(self, bin_dir, share, scratch):
        self.bin_dir, self.share = bin_dir, share
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="skillvm-e2e.", dir=scratch))
        self.daemons = []
        self.daemon = self.new_daemon("main", ["--max-running", "4"])

    def new_daemon(self, name, options=(), kept=0):
        daemon = Daemon(self.bin_dir, self.share, self.root / name, options, kept)
        self.daemons.append(daemon)
        return daemon

    def print_state(self, since):
        """What room is left, and the ends of the logs of the first daemon and of a case's own."""
        disk = os.statvfs(self.root)
        memory = re.search(r"MemAvailable: *(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]
        lines = [f"{disk.f_bavail * disk.f_frsize >> 20} MiB of disk are free, {int(memory) >> 10} MiB of memory"]
        for daemon in self.daemons[:1] + self.daemons[since:]:
            lines.append(f"log of the daemon {daemon.data.name}: {daemon.log_tail(30)}")
        print("\n".join(lines), file=sys.stderr, flush=True)

    def stopped_guests(self):
        """How many have, by the logs of the daemons that are there."""
        words = b'fault="the guest stopped before it had finished'
        return sum(d.log.read_bytes().count(words) for d in self.daemons if d.log.exists())

    def copy_of_snapshots(self, name, options=(), kept=0):
        """A daemon whose data directory begins with the main daemon's snapshots."""
        daemon = self.new_daemon(name, options, kept)
        daemon.data.mkdir(parents=True)
        copy_sparse(self.daemon.data / "snapshots", daemon.data)
        return daemon

    def end_daemons(self, since):
        """Ends what a case made, with its data: where /data is memory, the next case needs it."""
        for daemon in self.daemons[since:]:
            daemon.kill()
            if daemon.data != self.daemon.data:
                shutil.rmtree(daemon.data, ignore_errors=True)
        del self.daemons[since:]

    @property
    def client(self):
        return self.daemon.client

    def check_clean(self):
        """Nothing runs and nothing temporary is left, soon after the last answer."""
        wait_until(
            lambda: len(processes("skillvm-vmm")) == self.daemon.parked(),
            20,
            "no skillvm-vmm process is left but those that wait",
        )
        wait_until(lambda: not self.daemon.leftovers(), 5, f"{self.daemon.data}/tmp is empty")

    def finish(self):
        self.daemon.kill()
        shutil.rmtree(self.root, ignore_errors=True)
