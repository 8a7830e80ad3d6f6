# SPDX-License-Identifier: Apache-2.0
"""Times the machine without the daemon: boot and restore, through the VMM's control socket.

Milliseconds from the start of the VMM process: first entry of the guest, its init accepting the
connection, its READY frame, the end of the process.
"""
import os
import select
import socket
import struct
import subprocess
import time
from pathlib import Path

RESUMED, CONNECTED, FAILED = 1, 2, 5
READY = 0x81


def run(vmm, args, paths):
    """One machine, from spawn to READY."""
    control, control_far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    vsock, vsock_far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    files = {name: os.open(path, os.O_RDONLY) for name, path in paths.items()}
    command = [vmm, *args, "--control-fd", str(control_far.fileno()), "--vsock-fd",
               str(vsock_far.fileno())]
    for name, fd in files.items():
        command += [f"--{name}-fd", str(fd)]
    start = time.monotonic_ns()
    process = subprocess.Popen(
        command, pass_fds=[control_far.fileno(), vsock_far.fileno(), *files.values()]
    )
    control_far.close()
    vsock_far.close()
    for fd in files.values():
        os.close(fd)
    out = {}
    frame = b""
    deadline = time.monotonic() + 120
    while "ready" not in out:
        ready, _, _ = select.select([control, vsock], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise RuntimeError("machine: no READY in 120 s")
        if control in ready:
            message = control.recv(4096)
            if not message:
                raise RuntimeError("machine: the VMM ended early")
            _, kind, when, _ = struct.unpack_from("<IIQQ", message)
            if kind == FAILED:
                raise RuntimeError("machine: " + message[24:].split(b"\0")[0].decode())
            if kind == RESUMED:
                out["resumed"] = (when - start) / 1e6
            if kind == CONNECTED:
                out["connected"] = (when - start) / 1e6
        if vsock in ready:
            frame += vsock.recv(12 - len(frame))
            if len(frame) >= 5 and frame[4] != READY:
                raise RuntimeError("machine: the first frame is not READY")
            if len(frame) == 12:
                out["ready"] = (time.monotonic_ns() - start) / 1e6
    control.close()
    vsock.close()
    process.wait()
    out["ended"] = (time.monotonic_ns() - start) / 1e6
    return out


def median(runs):
    return {k: sorted(r[k] for r in runs)[len(runs) // 2] for k in runs[0] if all(k in r for r in runs)}


def measure(programs, share, data):
    """Boot and restore, medians, and what the files take; `data` is a daemon's folder."""
    vmm, image = f"{programs}/skillvm-vmm", f"{share}/python.erofs"
    snapshot = next(Path(data, "snapshots").glob("*/state")).parent
    try:
        boot = [
            run(vmm, ["boot", "--memory-mib", "1024"], {"kernel": f"{share}/vmlinux", "image": image})
            for _ in range(2)
        ]
        restore = [
            run(vmm, ["restore"],
                {"image": image, "state": f"{snapshot}/state", "memory": f"{snapshot}/memory"})
            for _ in range(7)
        ]
    except (OSError, RuntimeError) as error:
        return {"problem": str(error), "boot_ms": {}, "restore_ms": {}, "bytes": {}}
    sizes = {"vmlinux": os.stat(f"{share}/vmlinux").st_size, "image": os.stat(image).st_size,
             "state": os.stat(f"{snapshot}/state").st_size,
             "memory_allocated": os.stat(f"{snapshot}/memory").st_blocks * 512}
    return {"problem": None, "boot_ms": median(boot), "restore_ms": median(restore), "bytes": sizes}
