#!/usr/bin/env python3
"""
Starts one or more servers, waits until they answer, runs a command, and cleans up.

    python scripts/with_server.py --server "python scripts/app.py {port}" -- python scripts/client.py {port}
"""

import argparse
import os
import shlex
import signal
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_ready(port):
    try:
        with socket.create_connection(("localhost", port), timeout=1):
            return True
    except OSError:
        return False


def wait_for(server, port, timeout):
    deadline = time.monotonic() + timeout
    while not is_ready(port):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with status {server.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"no answer on port {port} within {timeout} s")
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", action="append", dest="servers", required=True)
    parser.add_argument("--timeout", type=int, default=120, help="seconds to wait for each server")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error("no command")
    servers, ports = [], []
    try:
        for line in args.servers:
            port = free_port()
            print(f"starting: {line} on port {port}", file=sys.stderr)
            server = subprocess.Popen(
                shlex.split(line.replace("{port}", str(port))), start_new_session=True
            )
            servers.append(server)
            ports.append(port)
            wait_for(server, port, args.timeout)
        command = [word.replace("{port}", str(ports[0])) for word in command]
        status = subprocess.run(command).returncode
    finally:
        for server in servers:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(timeout=10)
    left = [port for port in ports if is_ready(port)]
    if left:
        sys.exit(f"still listening: {left}")
    sys.exit(status)


if __name__ == "__main__":
    main()
