# SPDX-License-Identifier: Apache-2.0
"""The daemon's own life: killed, stopped, started on damaged data, out of disk."""

import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

from harness import (
    Failed,
    Skipped,
    case,
    check,
    check_equal,
    check_in,
    copy_sparse,
    long_case,
    processes,
    python_skill,
    wait_until,
)

SLEEPER = """
import os, time
open(os.environ["SANDBOX_OUTPUT"], "w").write("1")
print("started", flush=True)
time.sleep(%d)
"""


def start_in_background(client, archive, **fields):
    """An execution in a thread. Returns (its id, once its first line came; the thread)."""
    seen = {}
    started = threading.Event()

    def follow():
        try:
            with client.events(archive, **fields) as events:
                for event, data, _ in events:
                    if "execution_id" in data:
                        seen["id"] = data["execution_id"]
                    if event == "stdout":
                        started.set()
                    if event == "result":
                        seen["result"] = data
        except Exception as problem:  # the daemon is killed under it
            seen["problem"] = problem
        started.set()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    if not started.wait(180):
        raise Failed("the execution did not start within 180 s")
    if "id" not in seen:
        raise Failed(f"no event named the execution: {seen}")
    return seen, thread


@case
def killed_daemon_leaves_no_machine(world):
    seen, thread = start_in_background(world.client, python_skill(SLEEPER % 300), timeout=600)
    check(processes("skillvm-vmm"), "no skillvm-vmm process while it runs")
    world.daemon.kill()
    wait_until(lambda: not processes("skillvm-vmm"), 20, "the machine ends with its daemon")
    thread.join(10)
    world.daemon.start()
    answer = world.client.get("/v1/executions/" + seen["id"])
    check_equal(answer.status, 200, "HTTP status after the restart")
    check_equal(answer.json["status"], "failed", "status")
    check_in("daemon", answer.json["error"], "error")
    check_equal(world.daemon.leftovers(), [], "temporary files")
    check_equal(world.client.run_ok(python_skill("print(1)"))["stdout"], "1\n", "the next run")


@case
def stopped_daemon_ends_its_runs(world):
    seen, thread = start_in_background(world.client, python_skill(SLEEPER % 300), timeout=600)
    begin = time.monotonic()
    check_equal(world.daemon.stop(), 0, "exit status after SIGTERM")
    check(time.monotonic() - begin < 90, f"it took {time.monotonic() - begin:.1f} s")
    check(not world.daemon.socket.exists(), "the socket is left")
    wait_until(lambda: not processes("skillvm-vmm"), 20, "no machine is left")
    thread.join(10)
    world.daemon.start()
    answer = world.client.get("/v1/executions/" + seen["id"])
    check_equal(answer.status, 200, "HTTP status")
    check(answer.json["status"] in ("failed", "cancelled"), f"status {answer.json['status']}")
    check(answer.json["error"], "no reason")


@case
def data_survives_a_restart(world):
    source = """
import os
open(os.environ["SANDBOX_FILES_DIR"] + "/kept.txt", "w").write("kept")
print("kept")
"""
    archive = python_skill(source, name="survivor", front="version: 2.0.0\n")
    answer = world.client.request(
        "POST", "/v1/skills", archive, {"Content-Type": "application/zip"}
    )
    check_equal(answer.status, 201, "HTTP status of the push")
    result = world.client.run_ok(skill="survivor")
    files = world.client.get(result["files_url"])
    check_equal(world.daemon.stop(), 0, "exit status")
    begin = time.monotonic()
    world.daemon.start()
    print(f"ready {time.monotonic() - begin:.1f} s after the restart", flush=True)
    after = world.client.get("/v1/executions/" + result["execution_id"])
    for name in ("status", "stdout", "files_list", "skill"):
        check_equal(after.json[name], result[name], name)
    check_equal(world.client.get(result["files_url"]).body, files.body, "artifacts")
    check_equal(world.client.run_ok(skill="survivor")["stdout"], "kept\n", "the skill")


def snapshot_files(daemon):
    found = [path.parent for path in (daemon.data / "snapshots").glob("*/manifest.json")]
    check_equal(len(found), 1, "number of snapshots")
    return found[0]


def flip_byte(path, offset):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x40]))


@long_case
def damaged_snapshots_are_refused(world):
    """One byte wrong in the state, in the memory, no manifest: said, made anew, and then it runs."""
    daemon = world.copy_of_snapshots("damaged")
    folder = snapshot_files(daemon)
    whole = folder.parent.parent / "whole"
    copy_sparse(folder, whole)
    try:
        for name, damage, said in (
            ("state", lambda path: flip_byte(path, 100), "state is damaged"),
            ("memory", lambda path: flip_byte(path, 9 << 20), "memory is damaged"),
            ("manifest.json", lambda path: path.write_text('{"schema": 999}'), "schema is not"),
        ):
            shutil.rmtree(folder)
            copy_sparse(whole, folder)
            damage(folder / name)
            before = len(daemon.log.read_text()) if daemon.log.exists() else 0
            daemon.start(ready=False)
            text = wait_until(
                lambda: re.search("snapshot making .*", daemon.log.read_text()[before:]),
                60,
                f"the log says that the snapshot with a damaged {name} is refused",
            ).group()
            check_in(said, text, "the log")
            if name != "manifest.json":
                daemon.kill()
        daemon.wait_ready()
        check_equal(daemon.client.run_ok(python_skill("print(1)"))["stdout"], "1\n", "run")
        daemon.stop()
        daemon.start()
        check_equal(daemon.log.read_text().count("snapshot made"), 1, "made anew")
    finally:
        daemon.kill()


@case
def the_hosts_time_goes_as_it_should(world):
    """By its other clock. An emulated host whose kernel measured its processor's counter on a busy
    machine may go twenty times as fast."""
    clock = pathlib.Path("/sys/class/rtc/rtc0/since_epoch")
    if not clock.exists():
        raise Skipped("there is no clock to compare with")
    apart = time.time() - int(clock.read_text())
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    check(abs(apart) < 3 + up / 50, f"its time is {apart:.1f} s off {up:.0f} s after its start")


@case
def the_guest_boots_without_complaint(world):
    log = (snapshot_files(world.daemon) / "boot.log").read_text(errors="replace")
    check_in("Linux version", log, "what its kernel says before it has found the serial port")
    check_in("ready port=", log, "what the guest says when it boots")
    check(not re.search("WARNING|BUG|Call Trace|rror", log), f"it complains: {log[-2000:]}")


@case
def a_second_daemon_is_refused(world):
    """Two daemons on one data directory would empty each other's temporary files."""
    other = world.new_daemon("main")
    other.socket = world.root / "other.sock"
    done = subprocess.run(
        [other.program, "--socket", str(other.socket), "--data", str(other.data)]
        + ["--share", other.share],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    check(done.returncode != 0, "it started")
    check(done.stderr, "it said nothing")
    check_equal(world.client.get("/health").status, 200, "the first one")


@case
def a_full_disk_is_said(world):
    if os.geteuid() != 0:
        raise Skipped("mounting a small disk needs root")
    disk = world.root / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "skillvm-test", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        raise Skipped("tmpfs cannot be mounted here")
    daemon = world.new_daemon("small/data")
    daemon.log = world.root / "small.log"
    # The watermark would keep the disk from ever filling up.
    settings = world.root / "small.yaml"
    # And what the disk has no room for is to be why it fails, however slow the machine is.
    settings.write_text("watermarks: {disk_free: 0}\ngrace: 30s\n")
    daemon.options += ["--config", str(settings)]
    try:
        # The snapshot is not on the small disk: restoring it is not what has to fail.
        snapshots = daemon.data / "snapshots"
        snapshots.mkdir(parents=True)
        source = world.daemon.data / "snapshots"
        subprocess.run(["mount", "--bind", str(source), str(snapshots)], check=True)
        daemon.start()
        free = os.statvfs(disk)
        room = free.f_bavail * free.f_frsize
        check(room > 4 << 20, f"{room} bytes are free")
        (disk / "filler").write_bytes(bytes(room - (4 << 20)))
        fills = python_skill(
            "import os\n"
            'open(os.environ["SANDBOX_FILES_DIR"] + "/big", "wb").write(os.urandom(12 << 20))\n'
            'print("written")\n'
        )
        answer = daemon.client.execute(fills, timeout=300)
        text = answer.json.get("message") or answer.json.get("error") or ""
        check(
            answer.status in (500, 507) or answer.json.get("status") == "failed",
            f"HTTP {answer.status}: {answer.json.get('status')}",
        )
        check("space" in text or "disk" in text, f"the message is {text!r}")
        check_equal(daemon.leftovers(), [], "temporary files")
        result = daemon.client.run_ok(python_skill("print('after')"))
        check_equal(result["stdout"], "after\n", "the next run")
        check(pathlib.Path(daemon.data, "skillvm.db").exists(), "no database")
    finally:
        daemon.kill()
        subprocess.run(["umount", "-l", str(snapshots)], check=False)
        subprocess.run(["umount", "-l", str(disk)], check=False)


@case
def a_caller_that_leaves(world):
    """The execution goes on without its caller, can be looked at, and can be cancelled."""
    client = world.client
    with client.events(python_skill(SLEEPER % 300), timeout=600) as events:
        for event, data, _ in events:
            if event == "status":
                name = "/v1/executions/" + data["execution_id"]
            if event == "stdout":
                break
    check_equal(client.get(name).json["status"], "running", "status after the caller left")
    before = set(processes("skillvm-vmm"))
    check(before, "the machine went with its caller")
    answer = client.request("DELETE", name)
    check(answer.status in (200, 202), f"DELETE: HTTP {answer.status}")
    # Others wait for the next execution; its own is given to nobody.
    wait_until(
        lambda: before - set(processes("skillvm-vmm")), 60, "the machine ends when cancelled"
    )
    wait_until(lambda: client.get(name).json["status"] != "running", 60, "it is over")
    result = client.get(name).json
    check_equal(result["status"], "cancelled", "status")
    check_equal(result["stdout"], "started\n", "stdout so far")
    check_equal(result["output"], 1, "output so far")
    check(client.request("DELETE", name).status in (200, 202, 404, 409), "DELETE again")
    missing = "/v1/executions/exec_" + "0" * 32
    check_equal(client.request("DELETE", missing).status, 404, "DELETE of an unknown one")
    check_equal(client.run_ok(python_skill("print(1)"))["stdout"], "1\n", "the next run")
