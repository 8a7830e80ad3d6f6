# SPDX-License-Identifier: Apache-2.0
"""A skill that its guest has as a disk: a script sees there what it would see of a stream."""

import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import tarfile

from harness import case, check, check_equal, check_in, long_case, wait_until

VERIFIER = pathlib.Path(__file__).resolve().parents[2] / "hostile-guest" / "skillvm-vmm-verify"
# How it is mounted.
DISK = "erofs ro,nosuid,nodev,relatime"
TURNS = int(os.environ.get("DISK_TURNS") or 6)

# All that is below a folder, as JSON: names, modes, owners, sizes, targets and contents.
TREE = r"""
import hashlib, json, os, stat, sys

def look(root):
    found = {}
    for folder, folders, files in os.walk(root):
        for name in [".", *folders, *files]:
            path = os.path.join(folder, name)
            s = os.lstat(path)
            what = [stat.filemode(s.st_mode), s.st_uid, s.st_gid]
            if stat.S_ISLNK(s.st_mode):
                what.append(os.readlink(path))
            elif stat.S_ISREG(s.st_mode):
                data = open(path, "rb").read()
                what += [s.st_size, s.st_nlink, hashlib.sha256(data).hexdigest()]
            elif name == ".":
                what += [s.st_nlink, sorted(os.listdir(path)), s.st_mtime > 1.7e9]
            found[os.path.relpath(path, root)] = what
    return found

def kind(path):
    # The file system of its own that is at a path.
    own = [m.split() for m in open("/proc/self/mounts") if m.split()[1] == path]
    return own[-1][2] + " " + own[-1][3] if own else "stream"

def refused(call, *args):
    try:
        call(*args)
    except OSError:
        return True
    return False
"""
MAIN = TREE + r"""
import helper.deep
tree = look("/sandbox/skill")
print(json.dumps({
    "tree": tree,
    "same": look("/sandbox/scripts") == tree,
    "module": [helper.deep.VALUE, helper.deep.__file__],
    "path": sys.path[0],
    "refused": [refused(open, "/sandbox/skill/new", "w"), refused(open, __file__, "a"),
                refused(os.unlink, "/sandbox/skill/SKILL.md"), refused(os.mkdir, "/sandbox/skill/d"),
                refused(os.chmod, "/sandbox/skill/main.py", 0o777)],
    "nodes": [n for n in os.listdir("/dev") if "skill" in n or n.startswith("vd")],
}, sort_keys=True))
print(kind("/sandbox/skill"), file=sys.stderr)
"""


def contents(name, main, files):
    front = f"---\nname: {name}\ndescription: A skill of a test.\n---\n".encode()
    return {"SKILL.md": front, "main.py": main.encode(), **files}


def archive(name, main, files, links=(), executable=()):
    """A tar with SKILL.md, main.py and files: {path: bytes}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, data in contents(name, main, files).items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            info.mode = 0o755 if path in executable else 0o600
            tar.addfile(info, io.BytesIO(data))
        for path, target in links:
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return out.getvalue()


def register(client, body):
    answer = client.request("POST", "/v1/skills", body, {"Content-Type": "application/octet-stream"})
    check(answer.status in (200, 201), f"the push: {answer.status} {answer.body[:300]}")


def many(seed, n, size):
    draw = random.Random(seed)
    return {
        f"data/{i % 37}/{'n' * (i % 50)}{i}.bin": draw.randbytes(draw.randrange(size))
        for i in range(n)
    }


def tree_of(files, links, executable):
    """What TREE finds of them."""
    found = {}
    for path, data in files.items():
        mode = "-rwxr-xr-x" if path in executable else "-rw-r--r--"
        found[path] = [mode, 0, 0, len(data), 1, hashlib.sha256(data).hexdigest()]
    found.update({path: ["lrwxrwxrwx", 0, 0, target] for path, target in links})
    folders = {str(above) for path in found for above in pathlib.PurePath(path).parents}
    for folder in folders:
        inside = {str(pathlib.PurePath(path)) for path in [*found, *folders]
                  if path != "." and str(pathlib.PurePath(path).parent) == folder}
        names = sorted(pathlib.PurePath(path).name for path in inside)
        found[folder] = ["drwxr-xr-x", 0, 0, 2 + len(inside & folders), names, True]
    return found


def check_shown(result, kind, expected, what):
    check_equal(result["stderr"], kind + "\n", f"how the skill came ({what})")
    shown = json.loads(result["stdout"])
    tree = shown.pop("tree")
    for path in sorted(tree.keys() | expected.keys()):
        check_equal(tree.get(path), expected.get(path), f"{path} ({what})")
    check_equal(shown, {"same": True, "module": ["deep", "/sandbox/scripts/helper/deep.py"],
                        "path": "/sandbox/scripts", "refused": [True] * 5, "nodes": []}, what)


@case
def a_skill_on_a_disk_is_what_a_stream_shows(world):
    few = {
        "helper/__init__.py": b"",
        "helper/deep.py": b"VALUE = 'deep'\n",
        "empty": b"",
        "big.bin": b"few",
        "bin/tool": b"#!/bin/sh\necho tool\n",
        # Names around those that every folder has, at the ends of blocks, and of two bytes.
        "!first": b"1", "-dash": b"2", "~last": b"3", "Ünicode/ß.txt": b"4",
        "long/" + "x" * 255: b"5", "long/" + "x" * 254: b"6", "long/" + "y" * 255: b"7",
        "/".join(["d" * 50] * 9) + "/leaf": b"8",
        "data/0/one": b"9",
    }
    files = {**few, "big.bin": random.Random(1).randbytes(3_000_001), **many(2, 240, 3000)}
    links = [("link", "big.bin"), ("bin/up", "../helper/deep.py"), ("to-folder", "data"),
             ("far", "/".join(["d" * 50] * 9) + "/leaf")]
    tool = ("bin/tool",)
    small, large = (archive("on-disk", MAIN, some, links, executable=tool) for some in (few, files))
    check_shown(world.client.run_ok(small), "stream", tree_of(contents("on-disk", MAIN, few), links, tool),
                "a small one")
    register(world.client, large)
    expected = tree_of(contents("on-disk", MAIN, files), links, tool)
    # On a machine that waited, one that was reset, and one that never will be; and not registered.
    for turn in ({}, {}, {"fresh": True}):
        check_shown(world.client.run_ok(skill="on-disk", **turn), DISK, expected, f"registered {turn}")
        check_shown(world.client.run_ok(large, **turn), DISK, expected, f"with the request {turn}")


# Reads and maps all of its disk, and looks for another's.
OWN = """
import json, mmap, os, sys
import own.deep
files = [os.path.join(d, f) for d, _, names in os.walk("/sandbox/skill") for f in names]
maps = [mmap.mmap(os.open(f, os.O_RDONLY), 0, prot=mmap.PROT_READ) for f in files if os.path.getsize(f)]
print(json.dumps({"sum": sum(sum(m[i] for i in range(0, len(m), 4096)) for m in maps), "n": len(files),
                  "own": own.deep.NAME, "top": sorted(os.listdir("/sandbox/skill"))}))
sys.stdout.flush()
os._exit(0)
"""


@long_case
def disks_leave_nothing_to_the_next(world):
    """Two skills by turns on machines of one owner, each reset compared with the snapshot."""
    options = ["--grace", "60"]  # of a busy software host
    if VERIFIER.exists():
        vmm = world.root / VERIFIER.name
        shutil.copy(VERIFIER, vmm)
        options += ["--vmm", str(vmm)]
    daemon = world.copy_of_snapshots("disks", options)
    daemon.environment["SKILLVM_MACHINES_REUSE"] = "tenant"
    daemon.start()
    try:
        for name, seed, n in (("one", 3, 300), ("two", 4, 500)):
            files = {"own/deep.py": f"NAME = {name!r}\n".encode(), f"{name}-file": b"x" * 70_000,
                     **many(seed, n, 2000)}
            register(daemon.client, archive(name, OWN, files))
        first, kinds = {}, []
        for turn in range(TURNS):
            name = ("one", "two")[turn % 2]
            result = daemon.client.run_ok(skill=name)
            kinds.append(result["machine"])
            check_in(f'"own": "{name}"', result["stdout"], "the module")
            check_equal(result["stdout"], first.setdefault(name, result["stdout"]), name)
            other = ("two", "one")[turn % 2]
            check(f"{other}-file" not in result["stdout"], f"{name} has files of {other}")
        check("reused" in kinds[1:], f"the machines were {kinds}")
        # A module in the skill's root, by name and from the root.
        result = daemon.client.run_ok(skill="one", module="own.deep")
        check_equal(result["stdout"], "", "a module that prints nothing")
        # And one that has none after those that had one.
        small = archive("small", "import os; print(sorted(os.listdir('/sandbox/skill')))", {})
        register(daemon.client, small)
        result = daemon.client.run_ok(skill="small")
        check_equal(result["stdout"], "['SKILL.md', 'main.py']\n", "what a small one finds")
        wait_until(lambda: daemon.metrics("skillvm_machines_behind")[""] == 0, 60, "the resets")
        resets = daemon.metrics("skillvm_machine_resets_total")
        check(resets['result="ok"'] >= TURNS - 1, f"resets: {resets}")
        check_equal(resets['result="failed"'], 0, "resets that failed")
    finally:
        daemon.stop()


@case
def a_disk_larger_than_its_memory_is_read(world):
    data = random.Random(5).randbytes(1 << 20) * 56
    source = """
import hashlib
h = hashlib.sha256()
with open("/sandbox/skill/large", "rb") as f:
    while piece := f.read(1 << 20):
        h.update(piece)
print(h.hexdigest())
"""
    register(world.client, archive("larger", source, {"large": data}))
    result = world.client.run_ok(skill="larger", limits={"memory": "40Mi"})
    check_equal(result["stdout"], hashlib.sha256(data).hexdigest() + "\n", "the content")
