# SPDX-License-Identifier: Apache-2.0
"""Scripts that behave badly: the documented status, what they left, and a clean next run."""

import functools
import io
import tarfile

from harness import bash_skill, case, check, check_equal, check_in, long_case, python_skill, shorten

LOG_LIMIT = 1 << 20
FILES_MAX = 10000
FILES_BYTES = 100 << 20


def then_a_clean_run(function):
    """After it, one more execution has to find nothing of it."""

    @functools.wraps(function)
    def wrapped(world):
        function(world)
        source = """
import os
print(sorted(os.listdir("/tmp")), sorted(os.listdir("/sandbox/out")))
"""
        result = world.client.run_ok(python_skill(source))
        check_equal(result["stdout"], "[] ['files']\n", "the next run")

    return wrapped


def files_of(world, result):
    answer = world.client.get(result["files_url"])
    check_equal(answer.status, 200, "HTTP status of the files")
    with tarfile.open(fileobj=io.BytesIO(answer.body), mode="r:gz") as tar:
        return {
            member.name.removeprefix("./").removeprefix("files/"): tar.extractfile(member).read()
            for member in tar
            if member.isreg()
        }


@case
@then_a_clean_run
def prints_forever(world):
    source = """
lines = "\\n".join(["x" * 79] * 200)
while True:
    print(lines)
"""
    result = world.client.run(python_skill(source), timeout=15)
    check_equal(result["status"], "timeout", "status")
    check_equal(result["truncated"], True, "truncated")
    kept = len(result["stdout"]) + len(result["stderr"])
    check(LOG_LIMIT // 2 <= kept <= LOG_LIMIT, f"{kept} bytes of logs were kept")
    check_equal(set(result["stdout"][:79]), {"x"}, "stdout")


@case
@then_a_clean_run
def exits_42_after_output(world):
    source = """
import os, sys
open(os.environ["SANDBOX_OUTPUT"], "w").write('{"half": true}')
open(os.environ["SANDBOX_FILES_DIR"] + "/part.txt", "w").write("part")
print("before"); print("why", file=sys.stderr)
sys.exit(42)
"""
    result = world.client.run(python_skill(source))
    check_equal(result["status"], "failed", "status")
    check_equal(result["exit_code"], 42, "exit_code")
    check_equal(result["signal"], None, "signal")
    check_equal(result["output"], {"half": True}, "output")
    check_equal((result["stdout"], result["stderr"]), ("before\n", "why\n"), "streams")
    check(result["error"], "no error text")
    check_equal(files_of(world, result), {"part.txt": b"part"}, "files")


@case
@then_a_clean_run
def raises(world):
    source = """
import os
open(os.environ["SANDBOX_OUTPUT"], "w").write("[1]")
def inner():
    raise RuntimeError("on purpose")
inner()
"""
    result = world.client.run(python_skill(source))
    check_equal((result["status"], result["exit_code"]), ("failed", 1), "status, exit_code")
    check_equal(result["output"], [1], "output")
    check_in("Traceback (most recent call last):", result["stderr"], "stderr")
    check_in("RuntimeError: on purpose", result["stderr"], "stderr")
    check_in("in inner", result["stderr"], "stderr")
    check("runpy" not in result["stderr"], f"frames of the zygote: {shorten(result['stderr'])}")
    check("zygote" not in result["stderr"], f"frames of the zygote: {shorten(result['stderr'])}")


@case
@then_a_clean_run
def killed_by_a_signal(world):
    source = """
import os, signal
print("before", flush=True)
open(os.environ["SANDBOX_OUTPUT"], "w").write("7")
os.kill(os.getpid(), signal.SIG%s)
"""
    for name, number in (("KILL", 9), ("SEGV", 11), ("TERM", 15)):
        result = world.client.run(python_skill(source % name))
        check_equal(result["status"], "failed", f"status after SIG{name}")
        check(str(result["signal"]) in (str(number), f"SIG{name}"), f"signal {result['signal']}")
        check_equal(result["stdout"], "before\n", "stdout")
        check_equal(result["output"], 7, "output")


@case
@then_a_clean_run
def sleeps_past_its_timeout(world):
    source = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("partial", flush=True)
open(os.environ["SANDBOX_OUTPUT"], "w").write('{"partial": 1}')
open(os.environ["SANDBOX_FILES_DIR"] + "/partial.txt", "w").write("so far")
time.sleep(1000)
"""
    result = world.client.run(python_skill(source), timeout=40)
    check_equal(result["status"], "timeout", "status")
    check_equal(result["output"], {"partial": 1}, "output")
    check_equal(result["stdout"], "partial\n", "stdout")
    check_equal(files_of(world, result), {"partial.txt": b"so far"}, "files")
    check_in("40", result["error"], "error")
    check(39000 <= result["phases_ms"]["run"] <= 118000, f"ran {result['phases_ms']['run']} ms")


@case
@then_a_clean_run
def leaves_children(world):
    source = """
import os, subprocess, sys, time
for _ in range(20):
    subprocess.Popen(["sleep", "1000"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
print("parent is done")
"""
    # Children that were waited for would be there for longer than it may run.
    result = world.client.run_ok(python_skill(source))
    check_equal(result["stdout"], "parent is done\n", "stdout")


@long_case
@then_a_clean_run
def writes_10000_files(world):
    source = """
import os
os.chdir(os.environ["SANDBOX_FILES_DIR"])
for number in range(10000):
    with open(f"f{number:05}", "w") as file:
        file.write(str(number))
print("written")
"""
    result = world.client.run_ok(python_skill(source))
    check_equal(result["stdout"], "written\n", "stdout")
    check_equal(len(result["files_list"]), FILES_MAX, "number of files")
    files = files_of(world, result)
    check_equal(len(files), FILES_MAX, "number of files in the archive")
    check_equal(files["f09999"], b"9999", "the last file")


@case
@then_a_clean_run
def writes_too_many_files(world):
    source = """
for n in $(seq 1 10050); do : >"$SANDBOX_FILES_DIR/$n"; done
"""
    result = world.client.run_ok(bash_skill(source))
    check_equal(result["truncated"], True, "truncated")
    check(0 < len(result["files_list"]) <= FILES_MAX, f"{len(result['files_list'])} files")


@case
@then_a_clean_run
def fills_its_disk(world):
    source = """
import errno, os
path = os.environ["SANDBOX_FILES_DIR"] + "/big"
written = 0
block = os.urandom(1 << 20)
try:
    with open(path, "wb", buffering=0) as file:
        while True:
            written += file.write(block)
except OSError as problem:
    print(errno.errorcode[problem.errno], flush=True)
    raise SystemExit(3)
"""
    result = world.client.run(python_skill(source), timeout=300)
    check(result["status"] in ("failed", "timeout"), f"status {result['status']}")
    # Its disk is memory: it meets the end of the disk or of its memory, whichever is nearer.
    ended = (result["stdout"], result["exit_code"])
    out_of_memory = result["signal"] in (9, "SIGKILL")
    check(
        ended in (("ENOSPC\n", 3), ("EDQUOT\n", 3)) or out_of_memory,
        f"ended with {ended}, signal {result['signal']}, error {result['error']}",
    )


@case
@then_a_clean_run
def uses_too_much_memory(world):
    source = """
print("before", flush=True)
held = []
while True:
    held.append(bytearray(b"x" * (4 << 20)))
"""
    result = world.client.run(
        python_skill(source), limits={"memory": "64Mi"}, timeout=300
    )
    check_equal(result["status"], "failed", "status")
    check_equal(result["stdout"], "before\n", "stdout")
    check_equal(result["error"], "out of memory: the limit is 64 MiB", "error")


@long_case
@then_a_clean_run
def a_memory_that_is_nearly_over_is_named(world):
    # Large files of the image, more than fit beside what it holds: read from one end to the other, as
    # the code of a large program is.
    source = """
import os
found = [os.path.join(top, name) for top, _, names in os.walk("/usr") for name in names]
found = sorted((path for path in found if not os.path.islink(path)), key=os.path.getsize)
held = bytearray(b"x" * (8 << 20))
print("before", flush=True)
while True:
    for path in found[-8:]:
        with open(path, "rb") as file:
            while file.read(1 << 18):
                pass
"""
    plain, why = "timed out after 1 s", ", its memory full: the limit is 32 MiB, and what "
    result = world.client.run(python_skill(source), limits={"memory": "32Mi"}, timeout=60)
    check_equal((result["status"], result["stdout"]), ("timeout", "before\n"), "how it ended")
    check_in("timed out after 60 s" + why, result["error"], "error")
    result = world.client.run(python_skill("import time; time.sleep(99)"), timeout=1)
    check_equal((result["status"], result["error"]), ("timeout", plain), "one that sleeps")


@case
@then_a_clean_run
def limits_are_named(world):
    # It keeps what may be its last lines, of which there is not even one.
    hog = "tail /dev/zero"
    many = "for (1 .. 20) { defined(my $child = fork) or last; $child or sleep 99 }"
    forks = """
import os, threading, time
try:
    for _ in range(20):
        if os.fork() == 0:
            time.sleep(99)
except BlockingIOError:
    pass
try:
    threading.Thread(target=print).start()
except RuntimeError:
    pass
"""
    memory, processes = "out of memory: the limit is 32 MiB", "times): the limit is 16"
    limits = {"memory": "32Mi", "pids": 16}
    result = world.client.run(bash_skill(f"exec {hog}"), limits=limits, timeout=300)
    check_equal((result["status"], result["error"]), ("failed", memory), "bash's own process")
    for skill, text in {
        bash_skill(f"{hog}; exit 0"): memory,
        python_skill(f"import os\nos.system({hog!r})"): memory,
        bash_skill(f"perl -e '{many}'"): "(1 " + processes,
        python_skill(forks): "(2 " + processes,
        python_skill("print(1)"): "",
    }.items():
        result = world.client.run_ok(skill, limits=limits)
        check_equal(len(result["warnings"]), 1 if text else 0, f"warnings {result['warnings']}")
        check_in(text, "".join(result["warnings"]), "warnings")


@case
@then_a_clean_run
def too_large_an_output(world):
    source = """
import os
with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
    file.write('"' + "x" * (5 << 20) + '"')
print("done")
"""
    result = world.client.run(python_skill(source))
    check_equal(result["output"], None, "output")
    check_equal(result["stdout"], "done\n", "stdout")
    check(result["truncated"] or result["error"] or result.get("warnings"), "nothing was said")


@case
def a_forged_end_ends_only_itself(world):
    # What the interpreter does at its end (see guest-init/zygote/end.h), done by the script.
    source = """
import ctypes, os, re, signal, subprocess, sys
page = int(re.search("([0-9a-f]+)-.*/memfd:end", open("/proc/self/maps").read())[1], 16)
child = subprocess.Popen(["sleep", "60"]) if len(sys.argv) > 1 else None
ctypes.c_uint32.from_address(page + 4).value = 5
ctypes.c_uint32.from_address(page).value = 1
os.kill(os.getpid(), signal.SIGSTOP)
print("went on", flush=True)
child.kill()
child.wait()
sys.exit(6)
"""
    result = world.client.run(python_skill(source))
    check_equal((result["exit_code"], result["stdout"]), (5, ""), "alone")
    result = world.client.run(python_skill(source), args=["child"])
    check_equal((result["exit_code"], result["stdout"]), (6, "went on\n"), "with a child")
