# SPDX-License-Identifier: Apache-2.0
"""Measures skillvm and its peers, and keeps what it found: results.json (schema.json says what is
in it), results.md and plots, in a folder.

Each host runs the same programs: `soft` is the software host, `counting` the same with a clock
that counts one nanosecond for each instruction (figures repeat, and are what --compare looks at),
`native` this machine, which needs usable KVM and root.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from compare import compare
from peers import BROUGHT, PEERS
from promises import hold
from report import markdown, plots

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SCHEMA = "skillvm-bench/1"
PARTS = ("executions", "memory", "peers")
ASKED = ("crowd", "images", "jail")  # these only by name
IMAGES = ("node", "data")  # of the part of that name, beside python
CROWD_GAIN = 5  # executions a second with machines that are used again, by those without
# Seconds for a whole run in a host; the counting one emulates without haste.
LIMIT = {"soft": 3600, "counting": 7200, "native": 3600}


def arguments(words=None):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in ("soft", "counting", "native"):
        parser.add_argument(f"--{kind}", dest="kinds", action="append_const", const=kind,
                            help="measure there (default: --soft --counting)")
    parser.add_argument("--kernel", action="append", metavar="VERSION",
                        help="the emulated hosts' kernel: default, or 6.12; may repeat")
    parser.add_argument("--vmx", action="store_true",
                        help="the emulated hosts are Bochs, with Intel's VMX")
    parser.add_argument("--kvm", action="append", default=[], metavar="OPTION=VALUE",
                        help="an option of the emulated hosts' module kvm; may repeat")
    parser.add_argument("--runs", type=int, default=60, help="executions of a serial lane (default 60)")
    parser.add_argument("--only", action="append", choices=PARTS + ASKED,
                        metavar="PART",
                        help=f"measure one part: {', '.join(PARTS + ASKED)}; may repeat")
    parser.add_argument("--peers", default="all", metavar="NAMES",
                        help=f"all (default), or some of {','.join(PEERS)}; python3 is always there")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench-results",
                        metavar="DIR", help="where the results go (default build/bench-results)")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE",
                        help="measure nothing: take the results of FILE")
    parser.add_argument("--no-plots", action="store_true", help="draw nothing")
    parser.add_argument("--compare", type=Path, metavar="OLD.json",
                        help="end with status 1 when a count of a counting host grew by 2 %%")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help=argparse.SUPPRESS)
    parser.add_argument("--share", type=Path, metavar="DIR",
                        help="measure in the hosts of this folder, as they are; without it the "
                        "bench makes its own, with more peers")
    options = parser.parse_args(words)
    if not 1 <= options.runs <= 10000:
        parser.error("--runs takes 1 to 10000")
    options.kinds = list(dict.fromkeys(options.kinds or ["soft", "counting"]))
    return options


def chosen(names):
    wanted = list(PEERS) if names == "all" else names.split(",")
    unknown = [name for name in wanted if name not in PEERS]
    if unknown:
        sys.exit(f"bench: no peer {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    return [name for name in PEERS if name in wanted or name == "python3"]


def peers_of(options):
    """A bare python3, where no others are asked for, too: it is the unit of all ratios."""
    return chosen(options.peers if "peers" in (options.only or PARTS) else "python3")


def make_hosts(options):
    """Software hosts with more peers than the usual ones have. The folder of their files."""
    share, usual = options.build / "share" / "bench", options.build / "share" / "skillvm"
    share.mkdir(parents=True, exist_ok=True)
    for link in share.iterdir():
        if link.is_symlink():
            link.unlink()
    images = ["python", *(IMAGES if "images" in (options.only or []) else ())]
    parts = [f"{image}.{part}" for image in images for part in ("erofs", "sha256", "modules", "manifest")]
    for name in ("vmlinux", "vmlinux.sha256", *parts):
        if not (usual / name).exists():
            sys.exit(f"bench: {usual / name} is not there; build it: ./dev build, or for another "
                     "image cmake/build.sh release image-NAME")
        (share / name).symlink_to((usual / name).resolve())
    command = [str(ROOT / "images" / "softhost" / "build.sh"), "--build", str(options.build),
               "--share", str(share), "--packages", str(HERE / "packages")]
    if options.vmx:
        command.append("--vmx")
    for kernel in options.kernel or ["default"]:
        print(f"bench: the host with the kernel {kernel}", file=sys.stderr, flush=True)
        subprocess.run(command + (["--kernel", kernel] if kernel != "default" else []), check=True)
    return share


def bring_peers(options):
    """The folder of what some peers need beside packages, where one of them is asked for."""
    if not BROUGHT & set(peers_of(options)):
        return Path("/nonexistent")
    print("bench: gathering peers", file=sys.stderr, flush=True)
    done = subprocess.run([str(HERE / "peers.sh"), "--share", str(options.build / "share" / "skillvm")],
                          stdout=subprocess.PIPE, text=True, check=False)
    return Path(done.stdout.strip() or "/nonexistent")


def plan(options, kind, **paths):
    parts = options.only or list(PARTS)
    return json.dumps({"kind": kind, "runs": options.runs, "peers": peers_of(options),
                       "parts": list(dict.fromkeys([*parts, "peers"])), **paths})


def native(options):
    words = plan(options, "native", programs=str(options.build / "bin"), share=str(options.share),
                 bench=str(HERE), lane=str(options.build / "bench" / "lane"),
                 scratch=os.environ.get("TMPDIR", "/tmp"), peers_folder=str(options.peers_folder))
    client = str(ROOT / "api" / "clients" / "python")
    return [sys.executable, "-B", str(HERE / "inside.py"), words], {**os.environ, "PYTHONPATH": client}


def hosted(options, kind, kernel):
    words = plan(options, kind, programs="/opt/skillvm/bin", share="/opt/skillvm/share/skillvm",
                 bench="/mnt/bench", lane="/mnt/build/lane", scratch="/run/scratch",
                 peers_folder="/mnt/peers")
    command = [str(ROOT / "images" / "softhost" / "run.sh"), "--share", str(options.share),
               "--memory", "6144", "--timeout", str(LIMIT[kind])]
    if kind == "counting":
        command.append("--counting")
    if kernel != "default":
        command += ["--kernel", kernel]
    if options.vmx:
        command.append("--vmx")
    for option in options.kvm:
        command += ["--kvm", option]
    folders = [(HERE, "bench"), (options.build / "bench", "build"),
               (ROOT / "api" / "clients" / "python", "client")]
    if BROUGHT & set(peers_of(options)) and options.peers_folder.is_dir():
        folders.append((options.peers_folder, "peers"))
    for folder, where in folders:
        command += ["--mount", f"{folder}:/mnt/{where}"]
    return [*command, "--env", "PYTHONPATH=/mnt/client", "--", "python3", "-B",
            "/mnt/bench/inside.py", words], None


def measure(options, kind, kernel):
    """One host of the document, also when nothing could be measured in it."""
    name = "-".join([kind, *([kernel] if kernel not in (None, "default") else []),
                     *(["vmx"] if options.vmx and kernel else []),
                     *([o.replace("=", "-") for o in options.kvm] if kernel else [])])
    print(f"bench: {name}, {options.runs} runs", file=sys.stderr, flush=True)
    command, environment = native(options) if kind == "native" else hosted(options, kind, kernel)
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        return {"name": name, "kind": kind, "problem": str(error)}
    found = last(done.stdout) or {"kind": kind, "problem": None}
    if done.returncode != 0:
        told = found["problem"]
        found["problem"] = (f"{told}; " if told else "") + f"ended early, status {done.returncode}"
    return {"name": name, **found}


def last(text):
    """The last line that is whole: a host that had to end may have been at one."""
    for line in reversed(text.split("\n")):
        try:
            return json.loads(line)
        except ValueError:
            pass
    return None


def tree():
    done = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--tags"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def document(options):
    began, measured = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), tree()
    options.peers_folder = Path("/nonexistent")
    if not options.share:
        options.peers_folder = bring_peers(options)
        emulated = set(options.kinds) - {"native"}
        options.share = make_hosts(options) if emulated else options.build / "share" / "skillvm"
    kernels = options.kernel or ["default"]
    hosts = [measure(options, kind, kernel) for kind in options.kinds
             for kernel in (kernels if kind != "native" else [None])]
    return {"schema": SCHEMA, "tree": measured, "date": began, "runs": options.runs, "hosts": hosts}


def load(path):
    found = json.loads(path.read_text())
    if found.get("schema") != SCHEMA:
        sys.exit(f"bench: {path} is not of {SCHEMA}")
    return found


def failures(results):
    """What of ours went wrong; a peer that fails is its own affair."""
    lines = []
    for host in results["hosts"]:
        rows = [*host.get("executions", []), *host.get("counts", [])]
        found = [row["problem"] for row in rows] + [host.get("machine_alone", {}).get("problem")]
        lines += [f"{host['name']}: {text}" for text in [host["problem"], *found] if text]
    return lines


def crowd_gains(results):
    """How many times the executions a second that used machines bring, of each host with a crowd."""
    gains = {}
    for host in results["hosts"]:
        found = {row["machine"]: row["per_second"] for row in host.get("executions", [])
                 if row["clients"] > 1 and row["skill"] == "hello" and row["per_second"]}
        if {"fresh", "reused"} <= found.keys():
            gains[host["name"]] = found["reused"] / found["fresh"]
    return gains


def main():
    options = arguments()
    results = load(options.source) if options.source else document(options)
    options.output.mkdir(parents=True, exist_ok=True)
    # The folder keeps what was measured, whatever becomes of the drawing of it.
    (options.output / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = markdown(results)
    (options.output / "results.md").write_text(text + "\n")
    print(text)
    for path in [] if options.no_plots else plots(results, options.output):
        print(f"plot: {path}", file=sys.stderr)
    bad = failures(results)
    if "crowd" in (options.only or []):
        gains = crowd_gains(results)
        print("\n".join(f"{name}: {gain:.2f} times as many a second" for name, gain in gains.items()))
        bad += [f"{name}: less than {CROWD_GAIN} times" for name, gain in gains.items() if gain < CROWD_GAIN]
    held, broken = hold(results)
    print("\n".join(held))
    bad += broken
    for line in bad:
        print(f"bench: {line}", file=sys.stderr)
    grown = compare(load(options.compare), results) if options.compare else []
    for line in grown:
        print(f"grew: {line}")
    sys.exit(1 if bad or grown else 0)


if __name__ == "__main__":
    main()
