# SPDX-License-Identifier: Apache-2.0
"""A guest that is the attacker's from its kernel up: its PID 1 breaks the frame protocol.

The daemon runs an image of its own here, whose init is tests/hostile/hostile_init.c.
"""

import os
import pathlib
import re
import shutil
import time

from harness import Daemon, Skipped, case, check, check_equal, check_in, long_case, python_skill, shorten

IMAGE = pathlib.Path(__file__).resolve().parents[1] / "hostile-image" / "python.erofs"
ARCHIVE = python_skill("never run")

# A breach in frames: the execution fails, and the error says why.
BREACHES = """
length-max length-over chunk-over reserved reserved16 unknown-type host-type second-ready
second-started done-first output-first exit-short half-a-header half-a-payload not-started
flood-output
""".split()

# Artifacts that break a rule: left out or refused, but never written outside their archive.
TARS = """
tar-parent tar-inner-parent tar-absolute tar-link tar-hard-link tar-device tar-pipe tar-unknown
tar-empty-name tar-dot tar-terabyte tar-negative tar-short tar-control-name tar-noise tar-cut
tar-many tar-twice tar-file-folder tar-pax-parent tar-pax-lie tar-flood
""".split()


def install_image(daemon):
    """Beside what the daemon has, as `hostile`; before it starts."""
    if not IMAGE.exists():
        raise Skipped("mkfs.erofs is not installed, so there is no hostile image")
    images = daemon.data / "images"
    images.mkdir()
    shutil.copy(IMAGE, images / "hostile.erofs")
    checksum = IMAGE.with_suffix(".sha256").read_text()
    (images / "hostile.sha256").write_text(checksum.replace(IMAGE.name, "hostile.erofs"))


def check_image(daemon):
    """Has its snapshot made, which is there from then on."""
    first = daemon.client.run(ARCHIVE, args=[""], image="hostile")
    check_equal((first["status"], first["stdout"]), ("success", "hostile\n"), f"a hostile guest ({first.get('error')})")


class HostileDaemon:
    """A daemon on the attacker's image, for one case."""

    def __init__(self, world, share=0.5):
        """share: of the case's time that the daemon may compute."""
        self.share = share
        if not IMAGE.exists():
            raise Skipped("mkfs.erofs is not installed, so there is no hostile image")
        share = world.root / "hostile-share"
        share.mkdir(exist_ok=True)
        built = pathlib.Path(world.share)
        for file in (built / "vmlinux", built / "vmlinux.sha256", IMAGE, IMAGE.with_suffix(".sha256")):
            if not (share / file.name).is_symlink():
                os.symlink(file, share / file.name)
        self.daemon = Daemon(world.bin_dir, str(share), world.root / "hostile")

    def __enter__(self):
        try:
            self.daemon.start()
        except BaseException:
            self.daemon.kill()
            raise
        self.before = self.daemon.cost()
        return self.daemon

    def __exit__(self, failure, *_):
        try:
            if not failure:
                print(f"cost{self.daemon.check_cost(self.before, self.share)}", flush=True)
        finally:
            self.daemon.kill()


def play(daemon, mode, timeout=60):
    """Most end by themselves, on a slow machine late."""
    result = daemon.client.run(ARCHIVE, args=[mode], timeout=timeout)
    check(daemon.process.poll() is None, f"{mode}: the daemon died: {daemon.log_tail()}")
    return result


@case
def breaches_of_the_protocol(world):
    with HostileDaemon(world) as daemon:
        result = play(daemon, "")
        check_equal((result["status"], result["stdout"]), ("success", "hostile\n"), "no breach")
        before = daemon.rss_kib()
        for mode in BREACHES:
            begin = time.monotonic()
            result = play(daemon, mode)
            check_equal(result["status"], "failed", f"{mode}: status")
            check(len(result["error"] or "") > 10, f"{mode}: error {result['error']!r}")
            check(result["exit_code"] in (None, 0), f"{mode}: exit_code {result['exit_code']}")
            seconds = time.monotonic() - begin
            print(f"{mode}: {shorten(result['error'], 120)} ({seconds:.1f} s)", flush=True)
            check(seconds < 120, f"{mode}: it took {seconds:.0f} s")
        growth = daemon.rss_kib() - before
        check(growth < 8192, f"the daemon grew by {growth} KiB")


@long_case
def artifacts_of_a_hostile_guest(world):
    with HostileDaemon(world) as daemon:
        for mode in TARS:
            result = play(daemon, mode, timeout=1)
            listed = [str(name) for name in result["files_list"] or []]
            for name in listed:
                check(not name.startswith("/"), f"{mode}: {name!r}")
                check(".." not in name.split("/"), f"{mode}: {name!r}")
                check("\n" not in name and "\x1b" not in name, f"{mode}: {name!r}")
            check(len(listed) <= 10000, f"{mode}: {len(listed)} files")
            print(f"{mode}: {result['status']} {shorten(result['error'], 100)} {listed[:3]}")
            # Where their names lead from any of the daemon's folders, and all of these.
            roots = [pathlib.Path(place) for place in ("/tmp", "/")] + list(daemon.data.parents)
            written = [place for place in roots if (place / "hostile-was-here").exists()]
            written += daemon.data.rglob("hostile-was-here")
            check_equal(written, [], f"{mode}: files written")
        check_equal(daemon.leftovers(), [], "temporary files")


@case
def odd_ends_of_a_hostile_guest(world):
    with HostileDaemon(world) as daemon:
        for mode in ("reboot", "halt", "panic"):
            result = play(daemon, mode)
            check_equal(result["status"], "failed", f"{mode}: status")
            check(result["error"], f"{mode}: no error")
        check(re.search(r'said="[^"\n]*Kernel panic', daemon.log_tail(200)), "no last words in the log")
        for mode in ("fail", "fail-long"):
            result = play(daemon, mode)
            check_equal(result["status"], "failed", f"{mode}: status")
            check("\x1b" not in result["error"], f"{mode}: {result['error']!r}")
            check(len(result["error"]) < 2048, f"{mode}: {len(result['error'])} bytes")
        for mode, error in (
            ("exit-odd", "an EXIT that cannot be"),
            ("after-done", "the guest broke the protocol"),
        ):
            result = play(daemon, mode)
            check_equal(result["status"], "failed", f"{mode}: status")
            check_in(error, result["error"], mode)
        result = play(daemon, "connect-out")
        check_equal(result["status"], "success", "connect-out: status")
        check("CONNECTED" not in result["stdout"], f"the guest got out: {result['stdout']}")
        check_in("1024 E", result["stdout"], "connect-out")
        result = play(daemon, "serial")
        check_equal((result["status"], result["stdout"]), ("success", "hostile\nnobody\n"), "serial")


@case
def floods_of_a_hostile_guest(world):
    """Endless logs, endless empty frames, silence: the host's own deadline ends them."""
    # What comes is read as fast as it comes, at its tenant's cost; in silence there is nothing to do.
    with HostileDaemon(world, 0.9) as daemon:
        play(daemon, "", timeout=1)
        before = daemon.rss_kib()
        for mode in ("flood-logs", "empty-frames", "silence"):
            begin = time.monotonic()
            result = play(daemon, mode, timeout=1)
            check(result["status"] in ("timeout", "failed"), f"{mode}: {result['status']}")
            check(len(result["stderr"]) <= 1 << 20, f"{mode}: {len(result['stderr'])} bytes")
            check(time.monotonic() - begin < 90, f"{mode}: {time.monotonic() - begin:.0f} s")
        growth = daemon.rss_kib() - before
        check(growth < 16384, f"the daemon grew by {growth} KiB")
