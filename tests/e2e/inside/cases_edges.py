# SPDX-License-Identifier: Apache-2.0
"""The borders of the contract: sizes of input, environment, arguments, limits and time."""

import json

from harness import bash_skill, case, check, check_equal, check_in, python_skill, shorten

ECHO = """
import hashlib, json, os, sys
raw = sys.stdin.buffer.read()
print(json.dumps({
    "stdin": len(raw),
    "sha": hashlib.sha256(raw).hexdigest(),
    "file": open("/sandbox/input.json", "rb").read() == raw,
    "env": os.environ.get("SANDBOX_INPUT", None) == raw.decode(),
    "has_env": "SANDBOX_INPUT" in os.environ,
}))
"""


@case
def inputs_of_all_sizes(world):
    archive = python_skill(ECHO)
    for size in (0, 1, 65530, 131000, 140000, 5 << 20):
        output = world.client.run_ok(archive, input="x" * size)["output"]
        check_equal(output["stdin"], size + 2, f"bytes on standard input for {size}")
        check_equal(output["file"], True, "input.json equals standard input")
        # One environment string may not pass 128 KiB.
        check_equal(output["has_env"], size < 131000 - 20 or output["has_env"], "SANDBOX_INPUT")
        if output["has_env"]:
            check_equal(output["env"], True, "SANDBOX_INPUT equals standard input")
        else:
            check(size >= 130000, f"no SANDBOX_INPUT for {size} bytes")
    output = world.client.run_ok(archive)["output"]
    check_equal(output["stdin"], 2, "no input is {}")


@case
def input_over_16_mib_is_refused(world):
    archive = python_skill(ECHO)
    output = world.client.run_ok(archive, input="x" * ((16 << 20) - 64))["output"]
    check_equal(output["stdin"], (16 << 20) - 62, "bytes on standard input")
    answer = world.client.execute(archive, input="x" * (20 << 20))
    check_equal(answer.status, 413, "HTTP status")
    check_equal(answer.json["error"], "too_large", "error")
    check_in("MiB", answer.json["message"], "message")


@case
def environment_of_the_caller(world):
    source = """
import json, os
print(json.dumps({k: os.environ.get(k) for k in ("MINE", "EMPTY", "LINES_", "PATH", "HOME")}))
"""
    archive = python_skill(source)
    value = "two\nlines = \u00e9"
    env = {"MINE": "yes", "EMPTY": "", "LINES_": value}
    output = world.client.run_ok(archive, env=env)["output"]
    check_equal((output["MINE"], output["EMPTY"], output["LINES_"]), ("yes", "", value), "env")
    check_equal(output["HOME"], "/tmp", "HOME")
    for name in (
        "PATH HOME LD_PRELOAD PYTHONPATH NODE_OPTIONS SANDBOX_INPUT SKILL_NAME".split()
    ):
        result = world.client.run_ok(archive, env={name: "x"})
        check_in(f"variable {name} is reserved", str(result["warnings"]), "warnings")
        check_equal(result["output"]["HOME"], "/tmp", "HOME")
    result = world.client.run_ok(
        python_skill('import sys; print(sys.stdout.write_through)'),
        env={"PYTHONUNBUFFERED": "1"},
    )
    check_equal(result["stdout"], "True\n", "an unbuffered interpreter")
    check_equal(result["warnings"], [], "warnings")
    for env in ({"A=B": "x"}, {"": "x"}, {"A": "x\0y"}, {"A": 1}, ["A"], {"A": "x" * 70000}):
        answer = world.client.execute(archive, env=env)
        check(answer.status in (400, 413), f"HTTP {answer.status} for {shorten(env)}")
        check(answer.json["message"], "no message")


@case
def arguments_of_the_caller(world):
    archive = bash_skill('for a in "$@"; do printf "<%s>" "$a"; done')
    args = ["", " ", "-c", "$(id)", "a\nb", "\u00e9"]
    result = world.client.run_ok(archive, args=args)
    check_equal(result["stdout"], "".join(f"<{a}>" for a in args), "arguments")
    for args in ("text", [1], ["a\0b"], ["x" * 70000]):
        answer = world.client.execute(archive, args=args)
        check(answer.status in (400, 413), f"HTTP {answer.status} for {shorten(args)}")


@case
def requests_that_make_no_sense(world):
    archive = python_skill("print(1)")
    for fields in (
        {"timeout": -1},
        {"timeout": "soon"},
        {"timeout": 0},
        {"limits": {"memory": "lots"}},
        {"limits": []},
        {"script": "../main.py"},
        {"script": "/etc/passwd"},
        {"script": "missing.py"},
        {"script": "main.py", "module": "main"},
        {"module": "no such"},
        {"module": 5},
        {"script": ""},
        {"surprise": 1},
    ):
        answer = world.client.execute(archive, **fields)
        check_equal(answer.status, 400, f"HTTP status for {fields}")
        check(answer.json["error"] and answer.json["message"], f"no message for {fields}")


@case
def limits_are_clamped(world):
    archive = python_skill("print(1)")
    check_equal(world.client.run_ok(archive, timeout=100000)["stdout"], "1\n", "timeout")
    check_equal(world.client.run_ok(archive, timeout="60s")["stdout"], "1\n", "timeout text")
    for memory in ("64Gi", "1Ki"):
        result = world.client.run_ok(archive, limits={"memory": memory})
        check_equal(result["stdout"], "1\n", f"memory {memory}")


@case
def memory_limit_is_the_skills(world):
    source = """
held = b"x" * (%d << 20)
print(len(held) >> 20)
"""
    front = "resources:\n  memory: 320Mi\n"
    result = world.client.run_ok(python_skill(source % 270, front=front))
    check_equal(result["stdout"], "270\n", "within its limit")
    check(result["usage"]["peak_memory_bytes"] > 270 << 20, f"peak {result['usage']}")
    result = world.client.run(python_skill(source % 60), limits={"memory": "48Mi"})
    check_equal(result["status"], "failed", "over its limit")
    check_in("48", result["error"], "error")


@case
def largest_memory_limit(world):
    """1 GiB is clamped to what the guest has, and most of that is the skill's to use."""
    source = """
import mmap
held = mmap.mmap(-1, 800 << 20)
for at in range(0, len(held), 64 << 12):
    held[at] = 1
print("held")
"""
    result = world.client.run_ok(python_skill(source), limits={"memory": "1Gi"})
    check_equal(result["stdout"], "held\n", "stdout")


@case
def timeout_of_the_front_matter(world):
    front = "timeout: 1s\n"
    result = world.client.run(python_skill("import time; time.sleep(60)", front=front))
    check_equal(result["status"], "timeout", "status")
    result = world.client.run_ok(python_skill("print(1)", front=front), timeout=30)
    check_equal(result["stdout"], "1\n", "stdout")


@case
def folders_are_where_they_should_be(world):
    source = """
import json, os, pathlib
print(json.dumps({
    "in": sorted(os.listdir(os.environ["SANDBOX_INPUT_DIR"])),
    "names": {k: v for k, v in os.environ.items() if k.startswith(("SANDBOX_", "SKILL_"))},
    "df": os.statvfs("/tmp").f_frsize * os.statvfs("/tmp").f_blocks > 0,
    "hosts": pathlib.Path("/etc/hosts").exists(),
    "net": sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else ["lo"],
}))
"""
    output = world.client.run_ok(python_skill(source))["output"]
    names = output["names"]
    check_equal(names["SANDBOX_OUTPUT"], "/sandbox/out/output.json", "SANDBOX_OUTPUT")
    check_equal(names["SANDBOX_FILES_DIR"], "/sandbox/out/files/", "SANDBOX_FILES_DIR")
    check_equal(names["SANDBOX_INPUT_DIR"], "/sandbox/in/", "SANDBOX_INPUT_DIR")
    check_equal(output["in"], [], "/sandbox/in")
    check_equal(output["net"], ["lo"], "network interfaces")


@case
def skill_files_keep_their_shape(world):
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        def add(name, content=b"", mode=0o644, kind=tarfile.REGTYPE, link=""):
            info = tarfile.TarInfo("wrapped/" + name)
            info.size, info.mode, info.type, info.linkname = len(content), mode, kind, link
            tar.addfile(info, io.BytesIO(content))

        add("SKILL.md", b"---\nname: wrapped\ndescription: d\n---\n")
        add("run.sh", b"#!/bin/bash\nexec bin/tool\n", 0o755)
        add("main.sh", b"cd /sandbox/skill; bin/tool; cat link; ls -l data | cut -c1-10 | tail -1\n")
        add("bin/tool", b"#!/bin/sh\necho tool\n", 0o755)
        add("data/" + "n" * 120 + ".txt", b"long name\n")
        add("link", kind=tarfile.SYMTYPE, link="data/" + "n" * 120 + ".txt")
    result = world.client.run_ok(out.getvalue(), script="main.sh")
    check_equal(result["stdout"], "tool\nlong name\n-rw-r--r--\n", "stdout")
    check_equal(json.loads(json.dumps(result["skill"]))["name"], "wrapped", "name")
