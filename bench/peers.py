# SPDX-License-Identifier: Apache-2.0
"""What else runs a script: each peer set up as its users would, tried once, then timed by others.

A peer is a function that gives its command, or raises with the reason why there is none here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = ["python3", "-c", "pass"]
PEERS = {}
# Those that need what bench/peers.sh brings.
BROUGHT = {"microvm", "msb-run", "msb-restore", "msb-exec"}
# Seconds for a step of setting up. None in a counting host, whose clock leaps from one timer to
# the next while a disk is waited for: it would leap over any of them.
PATIENCE = {"soft": 600, "native": 120}
patience = None


def peer(key, name, version):
    """Registers a peer: how --peers calls it, its name, and the command that tells its version."""
    def register(function):
        PEERS[key] = (name, function, version)
        return function
    return register


def run(command):
    """Runs a step of setting up; its error text becomes the peer's message."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, errors="replace", timeout=patience)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing")[-600:]
        raise RuntimeError(f"{command[0]}: status {done.returncode}: {said}")
    return done.stdout


def version_of(place, command):
    try:
        if command == MSB_VERSION:
            command = [str(place.peers / "microsandbox" / "bin" / "msb"), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    text = (done.stdout or done.stderr).strip().split("\n")[0]
    found = re.search(r"\d+(\.\d+)+[^\s,)]*", text)
    return found[0] if found else text


@peer("python3", "python3 -c pass", ["python3", "--version"])
def bare(place):
    return SCRIPT


@peer("hello", "python3, the hello script", ["python3", "--version"])
def hello(place):
    os.environ["SANDBOX_OUTPUT"] = str(place.work / "hello.json")
    return ["python3", str(place.skills / "hello" / "main.py")]


@peer("node", "node -e 0", ["node", "--version"])
def node(place):
    return ["node", "-e", "0"]


@peer("bubblewrap", "bubblewrap", ["bwrap", "--version"])
def bubblewrap(place):
    return ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
            "--unshare-all", *SCRIPT]


def bundle(place, name):
    """An OCI bundle of this machine's own files: (folder, its configuration)."""
    folder = place.work / name
    (folder / "rootfs").mkdir(parents=True)
    return folder, {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": True},
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": SCRIPT, "cwd": "/",
                    "env": ["PATH=/usr/bin"], "noNewPrivileges": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                   {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                    "options": ["nosuid", "mode=755", "size=64k"]}]
        + [{"destination": f"/{top}", "type": "bind", "source": f"/{top}",
            "options": ["rbind", "ro"]} for top in ("usr", "etc")],
        "linux": {"namespaces": [{"type": kind} for kind in
                                 ("pid", "network", "ipc", "uts", "mount")]},
    }


def write_bundle(folder, config):
    for top in ("usr", "etc", "proc", "dev"):
        (folder / "rootfs" / top).mkdir()
    for link in ("bin", "lib", "lib64"):
        (folder / "rootfs" / link).symlink_to(f"usr/{link}")
    (folder / "config.json").write_text(json.dumps(config))


@peer("crun", "crun", ["crun", "--version"])
def crun(place):
    folder, config = bundle(place, "crun")
    write_bundle(folder, config)
    return ["crun", "--root", str(place.work / "crun-state"), "run", "--bundle", str(folder),
            "bench"]


def runsc(place, platform):
    folder, config = bundle(place, f"runsc-{platform}")
    write_bundle(folder, config)
    return ["runsc", "--root", str(place.work / f"runsc-{platform}-state"), "--network=none",
            f"--platform={platform}", "run", "--bundle", str(folder), f"bench-{platform}"]


@peer("gvisor", "gVisor (ptrace, its default)", ["runsc", "--version"])
def gvisor(place):
    return runsc(place, "ptrace")


@peer("gvisor-kvm", "gVisor (kvm)", ["runsc", "--version"])
def gvisor_kvm(place):
    return runsc(place, "kvm")


@peer("microvm", "QEMU microvm, cold boot", ["qemu-system-x86_64", "--version"])
def microvm(place):
    kernel = place.peers / "vmlinux"
    if not kernel.exists():
        raise RuntimeError(f"no kernel for it: {kernel}")
    command = ["qemu-system-x86_64", "-M", "microvm,acpi=off,rtc=off,auto-kernel-cmdline=off",
               "-accel", "kvm", "-cpu", "host", "-m", "256", "-nodefaults", "-no-user-config",
               "-display", "none", "-no-reboot", "-kernel", str(kernel),
               "-global", "virtio-mmio.force-legacy=false",
               "-drive", f"id=root,file={place.share / 'python.erofs'},format=raw,if=none,readonly=on",
               "-device", "virtio-blk-device,drive=root,bus=virtio-mmio-bus.0"]
    # QEMU would name the device behind the last word, which here is one of python3's.
    words = ("console=ttyS0 root=/dev/vda ro panic=-1 reboot=t virtio_mmio.device=512@0xfeb00000:5 "
             "init=/usr/bin/python3")
    # The end of its first process is a panic that tells the status; with it silent, the end of
    # QEMU is all that is seen. So once aloud.
    said = run([*command, "-serial", "stdio", "-append", f"{words} loglevel=1 -- -c pass"])
    if "exitcode=0x00000000" not in said:
        raise RuntimeError(f"python3 did not end with 0: {said[-600:]}")
    return [*command, "-append", f"{words} loglevel=0 -- -c pass"]


IMAGE = "skillvm-python:bench"


def msb(place):
    """microsandbox with our image loaded: its program, set up once for all of its peers."""
    program = place.work / "msb" / "bin" / "msb"
    if not program.exists():
        source = place.peers / "microsandbox"
        if not source.exists():
            raise RuntimeError("its npm package is not here")
        shutil.copytree(source, place.work / "msb")
        program.chmod(0o755)
        os.environ["HOME"] = str(place.work / "h")
        os.environ["SSL_CERT_FILE"] = str(place.peers / "certificates.pem")
        Path(os.environ["HOME"]).mkdir()
    if IMAGE not in run([str(program), "image", "list"]):
        run([str(program), "load", "-i", str(place.peers / "image.tar")])
    return str(program)


def msb_sandbox(place):
    """(msb, the name of a sandbox that runs and has a full snapshot)."""
    program = msb(place)
    if "bench" not in run([program, "list"]).split():
        run([program, "create", "--name", "bench", IMAGE])
        run([program, "exec", "bench", "--", *SCRIPT])
        run([program, "snapshot", "create", "--full", "--from-sandbox", "bench", "full"])
    return program


MSB_VERSION = ["msb", "--version"]


@peer("msb-run", "microsandbox, run", MSB_VERSION)
def msb_run(place):
    return [msb(place), "run", IMAGE, "--", *SCRIPT]


@peer("msb-restore", "microsandbox, a restored fork", MSB_VERSION)
def msb_restore(place):
    program = msb_sandbox(place)
    return ["sh", "-c", f"{program} restore --forked --name s$$ bench:full && "
            f"{program} exec s$$ -- {' '.join(SCRIPT)} && {program} remove --force s$$"]


@peer("msb-exec", "microsandbox, exec in a running one", MSB_VERSION)
def msb_exec(place):
    return [msb_sandbox(place), "exec", "bench", "--", *SCRIPT]


class Place:
    """Where things are: work (writable), skills, share, and peers, what was brought for them."""

    def __init__(self, work, skills, share, peers):
        self.work, self.skills, self.share = Path(work), Path(skills), Path(share)
        self.peers = Path(peers)
        self.work.mkdir()


def measure(place, kind, keys, lane):
    """Yields each peer's row twice: before it is tried and when it was measured. lane(command)
    times it: (summary or None, problem or None)."""
    global patience
    patience = PATIENCE.get(kind)
    for key in keys:
        name, function, version = PEERS[key]
        row = {"name": name, "version": version_of(place, version), "command": None,
               "time_ms": None, "problem": "it was still going on when the host had to end"}
        yield row
        try:
            command = function(place)
            row["command"] = " ".join(command)
            run(command)
            row["time_ms"], row["problem"] = lane(command)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            row["problem"] = str(error)
        print(f"bench: {name}: {row['problem'] or row['time_ms']['p50']}", file=sys.stderr, flush=True)
        yield row
