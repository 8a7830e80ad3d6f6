# SPDX-License-Identifier: Apache-2.0
"""Skills that attack: the machine around them, what is collected from them, and their limits.

Each ends with a documented status, and the next execution finds nothing of it.
"""

import concurrent.futures
import io
import tarfile
import time

from given_up import STATUS, check_given_up
from harness import bash_skill, case, check, check_equal, python_skill, shorten, skill_zip

CALLS = r'''
import ctypes, errno, json, os, socket

libc = ctypes.CDLL(None, use_errno=True)

def call(function, *args):
    """"ok" or the name of the error."""
    ctypes.set_errno(0)
    try:
        result = function(*args)
    except OSError as problem:
        return errno.errorcode.get(problem.errno, str(problem.errno))
    except (ValueError, PermissionError) as problem:
        return type(problem).__name__
    if result == -1:
        return errno.errorcode.get(ctypes.get_errno(), "?")
    return "ok"

def syscall(number, *args):
    return call(libc.syscall, number, *args)
'''


def attack(world, source, **fields):
    """The attacker's report: names of attempts and how each ended."""
    return world.client.run_ok(python_skill(CALLS + source), **fields)["output"]


def no_success(report):
    won = sorted(name for name, ended in report.items() if ended == "ok")
    check(not won, f"these worked: {won}; all: {report}")
    check(report, "nothing was tried")


@case
def cannot_become_root(world):
    source = r'''
report = {
    "setuid": call(os.setuid, 0),
    "setgid": call(os.setgid, 0),
    "setgroups": call(os.setgroups, [0]),
    "setresuid": call(os.setresuid, 0, 0, 0),
    "chroot": call(os.chroot, "/tmp"),
    "mknod": call(os.mknod, "/tmp/kmem", 0o020666, os.makedev(1, 2)),
    "mount": call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None),
    "umount": call(libc.umount2, b"/proc", 2),
    "bind": call(libc.mount, b"/tmp", b"/usr", None, 4096, None),
    "pivot_root": syscall(155, b"/tmp", b"/tmp"),
    "sethostname": call(libc.sethostname, b"x", 1),
    "reboot": call(libc.reboot, 0x01234567),
    "swapon": call(libc.swapon, b"/tmp/x", 0),
    "init_module": syscall(175, b"x", 1, b""),
    "kexec_load": syscall(246, 0, 0, 0, 0),
    "bpf": syscall(321, 0, ctypes.create_string_buffer(128), 128),
    "perf_event_open": syscall(298, ctypes.create_string_buffer(b"\0\0\0\0\x70", 128), 0, -1, -1, 0),
    "settimeofday": call(libc.settimeofday, ctypes.create_string_buffer(16), None),
    "clock_settime": syscall(227, 0, ctypes.create_string_buffer(16)),
    "iopl": syscall(172, 3),
    "ioperm": syscall(173, 0x80, 1, 1),
    "mlockall": call(libc.setpriority, 0, 0, -10),
    "sched_fifo": call(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))),
    "oom_score_adj": call(lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1000")),
}
suid = []
for top, folders, files in os.walk("/usr"):
    for name in files:
        try:
            if os.lstat(os.path.join(top, name)).st_mode & 0o6000:
                suid.append(os.path.join(top, name))
        except OSError:
            pass
# A set-uid program would not help: no_new_privs is set.
report["no_new_privs"] = "ok" if libc.prctl(39, 0, 0, 0, 0) != 1 else "set"
status = {l.split(":")[0]: l.split()[1] for l in open("/proc/self/status") if l.startswith("Cap")}
report["capabilities"] = "ok" if any(int(v, 16) for k, v in status.items() if k != "CapBnd") else "none"
print(json.dumps(report))
'''
    no_success(attack(world, source))


@case
def nothing_is_left_however_it_is_started(world):
    """Node is in cases_node.py, imported images in 50-images.sh."""
    python = f"print(open('{STATUS}').read())\n"
    child = f"import subprocess\nsubprocess.run(['cat', '{STATUS}'], check=True)\n"
    bash = f"while read -r line; do echo \"$line\"; done <{STATUS}\n"
    starts = {
        "the Python that waited": ({"main.py": python}, {}),
        "a Python of its own": ({"main.py": python}, {"env": {"PYTHONUNBUFFERED": "1"}}),
        "what the waiting one executes": ({"main.py": python, "json.py": ""}, {"script": "main.py"}),
        "a child of it": ({"main.py": child}, {}),
        "bash": ({"main.sh": bash}, {}),
        "a child of bash": ({"main.sh": f"cat {STATUS}\n"}, {}),
    }
    for name, (files, fields) in starts.items():
        result = world.client.run_ok(skill_zip(files), **fields)
        check_given_up(result["stdout"], name)
    # No way back: neither set can be raised, and no program gives more.
    source = r'''
def ambient(cap):
    return libc.prctl(47, 2, cap, 0, 0)

header = ctypes.create_string_buffer(b"\x22\x05\x08\x20\0\0\0\0")
report = {f"ambient {cap}": call(ambient, cap) for cap in range(41)}
report["capset"] = syscall(126, header, ctypes.create_string_buffer(b"\xff" * 24))
report["securebits"] = call(libc.prctl, 28, 0x2f, 0, 0, 0)
report["new privileges"] = call(libc.prctl, 38, 0, 0, 0, 0)
report["no filter"] = call(libc.prctl, 22, 0, 0, 0, 0)
print(json.dumps(report))
'''
    no_success(attack(world, source))


@case
def cannot_reach_the_machine(world):
    source = r'''
report = {}
for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/vda", "/dev/vsock",
             "/dev/ttyS0", "/dev/console", "/dev/kvm", "/dev/hwrng", "/dev/mapper/control",
             "/proc/kcore", "/proc/kmsg", "/proc/1/mem", "/proc/1/environ", "/proc/1/maps",
             "/proc/1/root", "/proc/1/fd", "/sys/kernel/debug/sched", "/sys/firmware/fdt",
             "/proc/iomem_", "/etc/shadow"):
    report[path] = call(lambda: os.listdir(path) if os.path.isdir(path) else
                        os.close(os.open(path, os.O_RDONLY)))
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
             "/proc/sys/vm/drop_caches", "/proc/sys/kernel/randomize_va_space",
             "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/mm/transparent_hugepage/enabled",
             "/proc/self/uid_map_", "/proc/1/oom_score_adj", "/sys/power/state"):
    report["write " + path] = call(lambda: os.close(os.open(path, os.O_WRONLY)))
cgroup = open("/proc/self/cgroup").read().strip().split("::")[-1]
for name in ("memory.max", "pids.max", "cgroup.procs"):
    path = "/sys/fs/cgroup" + cgroup + "/" + name
    report["write own " + name] = call(lambda: os.close(os.open(path, os.O_WRONLY)))
print(json.dumps(report))
'''
    no_success(attack(world, source))


@case
def cannot_touch_init(world):
    source = r'''
import signal
pidfd = os.pidfd_open(1)
report = {
    "kill": call(os.kill, 1, signal.SIGKILL),
    "stop": call(os.kill, 1, signal.SIGSTOP),
    "ptrace": syscall(101, 16, 1, 0, 0),
    "seize": syscall(101, 0x4206, 1, 0, 0),
    "process_vm_readv": syscall(310, 1, 0, 0, 0, 0, 1),
    "pidfd_getfd": syscall(438, pidfd, 3, 0),
    "kcmp": syscall(312, 1, os.getpid(), 0, 0, 0),
    "prlimit": syscall(302, 1, 7, ctypes.create_string_buffer(16), 0),
    "setpriority": call(os.setpriority, os.PRIO_PROCESS, 1, 19),
    "sched_setaffinity": call(os.sched_setaffinity, 1, {0}),
    "rt_sigqueueinfo": syscall(129, 1, signal.SIGUSR1, ctypes.create_string_buffer(128)),
    "process_madvise": syscall(440, pidfd, ctypes.create_string_buffer(16), 1, 21, 0),
    "process_mrelease": syscall(448, pidfd, 0),
    "setns": syscall(308, pidfd, 0x20000),
}
for number in range(65):
    report[f"kill {number}"] = call(os.kill, 1, number)
    report[f"tgkill {number}"] = syscall(234, 1, 1, number)
    report[f"pidfd_send_signal {number}"] = syscall(424, pidfd, number, None, 0)
for name in ("mem", "maps", "environ", "cmdline", "status", "stat", "syscall", "wchan", "exe", "cwd",
             "root", "fd", "fdinfo", "ns", "task/1/mem", "map_files", "pagemap", "auxv", "comm",
             "oom_score_adj", "clear_refs", "coredump_filter", "attr", "timerslack_ns", "net/tcp"):
    for way in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_PATH):
        report[f"{name} {way}"] = call(lambda: os.close(os.open("/proc/1/" + name, way)))
print(json.dumps(report))
'''
    no_success(attack(world, source))
    # Every process it may signal at once: itself and its children, nothing else.
    result = world.client.run(python_skill("import os\nprint(1, flush=True)\nos.kill(-1, 9)\n"))
    check(result["status"] in ("failed", "success"), f"status {result['status']}")
    check_equal(result["stdout"], "1\n", "stdout")


@case
def cannot_write_the_system(world):
    source = r'''
report = {}
for folder in ("/", "/usr", "/usr/bin", "/etc", "/sbin", "/sandbox", "/sandbox/skill",
               "/sandbox/scripts", "/run", "/dev", "/var", "/usr/lib/skillvm",
               "/usr/lib/python3/dist-packages"):
    report["create in " + folder] = call(lambda: os.close(os.open(folder + "/new", os.O_CREAT | os.O_WRONLY)))
for path in ("/etc/passwd", "/usr/bin/python3", "/sandbox/skill/main.py", "/sandbox/input.json",
             "/usr/lib/skillvm/zygote.py", "/sandbox/skill/SKILL.md"):
    report["write " + path] = call(lambda: os.close(os.open(path, os.O_WRONLY)))
    report["chmod " + path] = call(os.chmod, path, 0o777)
    report["unlink " + path] = call(os.unlink, path)
report["rename"] = call(os.rename, "/sandbox/skill", "/sandbox/other")
report["link"] = call(os.link, "/etc/passwd", "/tmp/passwd")
print(json.dumps(report))
'''
    report = attack(world, source)
    report.pop("create in /run", None)
    no_success(report)


@case
def no_way_out_by_vsock(world):
    source = r'''
def connect(cid, port):
    def attempt():
        with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as s:
            s.settimeout(1)
            s.connect((cid, port))
    return call(attempt)

report = {}
# 2 is the host, 1 and 3 may mean this machine; requests to any other address are dropped.
for cid, ports in ((2, (1, 22, 1023, 1024, 1025, 0xFFFFFFFE)), (1, (1024,)), (3, (1024, 5000)),
                   (0, (1024,)), (4, (1024,)), (0xFFFFFFFF, (1024,))):
    for port in ports:
        report[f"{cid}:{port}"] = connect(cid, port)
print(json.dumps(report))
'''
    report = attack(world, source)
    won = [name for name, ended in report.items() if ended == "ok"]
    check(not won, f"these connections were accepted: {won}")


@case
def no_network(world):
    source = r'''
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("192.0.2.1", 53))

def tcp():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.settimeout(3)
        s.connect(("192.0.2.1", 80))

def raw():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()

print(json.dumps({"udp": call(udp), "tcp": call(tcp), "raw": call(raw)}))
'''
    no_success(attack(world, source))


TRICKS = r"""
set -e
cd "$SANDBOX_FILES_DIR"
ln -s /etc/passwd passwd
ln -s / root
mkdir -p sub; ln -s ../../../../../etc sub/etc
mkfifo fifo
ln /sandbox/skill/main.sh hard 2>/dev/null || true
python3 - <<'P'
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("socket")
os.mkdir(b"\xff\xfe")
open(b"\xff\xfe/\x80.bin", "w").write("bytes")
open("line\nbreak", "w").write("x")
open("back\\slash", "w").write("x")
open(" ", "w").write("x")
open("...", "w").write("x")
open("-rf", "w").write("x")
open("\x1b[31mred", "w").write("x")
open("n" * 255, "w").write("long")
deep = os.open(".", os.O_RDONLY)
for level in range(300):
    os.mkdir("d" * 20, dir_fd=deep)
    deep2 = os.open("d" * 20, os.O_RDONLY, dir_fd=deep); os.close(deep); deep = deep2
os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
P
echo ok >plain.txt
chmod 000 plain.txt
echo ready
"""


@case
def odd_artifacts_do_no_harm(world):
    result = world.client.run_ok(bash_skill(TRICKS))
    check_equal(result["stdout"], "ready\n", "stdout")
    answer = world.client.get(result["files_url"])
    check_equal(answer.status, 200, "HTTP status of the files")
    with tarfile.open(fileobj=io.BytesIO(answer.body), mode="r:gz") as tar:
        for member in tar:
            check(member.isreg() or member.isdir(), f"{member.name!r} is a {member.type!r}")
            check(not member.name.startswith("/"), f"absolute: {member.name!r}")
            check(".." not in member.name.split("/"), f"leaves: {member.name!r}")
            if member.name.endswith("plain.txt"):
                check_equal(tar.extractfile(member).read(), b"ok\n", "plain.txt")


def with_output(source):
    return bash_skill("cd /sandbox/out\n" + source + "\necho ready\n")


@case
def output_that_is_no_file(world):
    for name, source in {
        "a link to a secret": "ln -s /proc/1/environ output.json",
        "a link to a file": "ln -s /etc/passwd output.json",
        "a pipe": "mkfifo output.json",
        "a folder": "mkdir output.json",
        "a sparse terabyte": "truncate -s 1T output.json || truncate -s 500M output.json",
        "a link to itself": "ln -s output.json output.json",
        "a device": "ln -s /dev/zero output.json",
    }.items():
        begin = time.monotonic()
        result = world.client.run_ok(with_output(source), timeout=180)
        check_equal(result["output"], None, f"output from {name}")
        check_equal(result["stdout"], "ready\n", f"stdout with {name}")
        check("root:" not in str(result), f"{name} leaked a file")
        check(time.monotonic() - begin < 180, f"{name} held the collection up")


@case
def folder_of_artifacts_replaced(world):
    for source in (
        "cd /; rm -rf /sandbox/out/files; ln -s /etc /sandbox/out/files",
        "cd /; rm -rf /sandbox/out/files; mkfifo /sandbox/out/files",
        "cd /; rm -rf /sandbox/out/files",
        "chmod 000 /sandbox/out/files",
        "truncate -s 1T files/sparse || true",
    ):
        result = world.client.run(with_output(source), timeout=300)
        check(result["status"] in ("success", "failed"), f"status {result['status']}")
        check("passwd" not in str(result["files_list"]), f"files {result['files_list']}")


@case
def forged_frames_on_stdout(world):
    source = r"""
import os, struct
# An EXIT frame of success, DONE, and a length that passes every limit.
frame = struct.pack("<IBBH", 48, 0x85, 0, 0) + bytes(48) + struct.pack("<IBBH", 0, 0x88, 0, 0)
os.write(1, frame * 10)
os.write(2, struct.pack("<IBBH", 0xFFFFFFFF, 0x83, 1, 1) * 10)
os._exit(5)
"""
    result = world.client.run(python_skill(source))
    check_equal((result["status"], result["exit_code"]), ("failed", 5), "status")


@case
def fork_bomb(world):
    # What follows needs no process: only its time ends it.
    source = "bomb() { bomb | bomb & }; echo before; bomb; while :; do :; done\n"
    result = world.client.run(bash_skill(source), timeout=60)
    check_equal((result["status"], result["stdout"]), ("timeout", "before\n"), "a bomb")
    source = r"""
import os, time
children = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
        children += 1
except OSError as problem:
    print(children < 128, problem.errno, flush=True)
os.kill(-1, 9)
"""
    result = world.client.run(python_skill(source), timeout=240)
    check_equal(result["stdout"], "True 11\n", "stdout")


@case
def memory_bombs(world):
    bombs = {
        "tmp": "head -c 2G /dev/zero >/tmp/fill",
        "shm": "head -c 2G /dev/zero >/dev/shm/fill",
        "out": 'head -c 2G /dev/zero >"$SANDBOX_FILES_DIR/fill"',
        "inodes": "cd /tmp; i=0; while mkdir $i 2>/dev/null; do cd $i; done; exit 1",
        "pipes": "python3 -c 'import os\nwhile 1: os.pipe()'",
    }

    def explode(source):
        return world.client.run(bash_skill(source), timeout=20, limits={"memory": "64Mi"})

    # Most take all the time that they have.
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for name, result in zip(bombs, pool.map(explode, bombs.values())):
            check(result["status"] in ("failed", "timeout"), f"{name}: status {result['status']}")
            check(result["error"], f"{name}: no reason")


def check_times_out(world, archive, printed):
    """After it has begun, for which a busy machine may take longer than the shortest of these."""
    for timeout in (12, 60, 300):
        result = world.client.run(archive, timeout=timeout)
        check_equal(result["status"], "timeout", "status")
        if result["stdout"]:
            break
    check_equal(result["stdout"], printed, "stdout")


@case
def processor_hog(world):
    source = "echo started; for i in $(seq 100); do (while :; do :; done) & done; wait"
    check_times_out(world, bash_skill(source), "started\n")


@case
def plays_dead(world):
    for source in (
        "import os, signal; print(1, flush=True); os.kill(os.getpid(), signal.SIGSTOP)",
        "import os; print(1, flush=True); os.close(0); os.close(1); os.close(2)\nimport time; time.sleep(99)",
    ):
        check_times_out(world, python_skill(source), "1\n")


@case
def descriptors_hold_nothing(world):
    source = r"""
import json, os
found = {}
for fd in range(3, 4096):
    try:
        found[fd] = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        pass
print(json.dumps({"found": found, "env": sorted(os.environ)}))
"""
    output = world.client.run_ok(python_skill(source))["output"]
    check_equal(output["found"], {}, "open descriptors")
    known = {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "PWD", "SHELL"}
    strange = [
        name
        for name in output["env"]
        if not name.startswith(("SANDBOX_", "SKILL_", "PYTHON")) and name not in known
    ]
    check_equal(strange, [], "unexpected environment")


@case
def memory_holds_no_other_skill(world):
    """A secret of one execution is not in the memory another one can read."""
    secret = "s3cr3t-of-another-execution"
    world.client.run_ok(python_skill("import time\nx = open('/sandbox/input.json').read()"), input=secret)
    source = r"""
import re
half = "s3cr3t-of-" 
found = 0
for line in open("/proc/self/maps"):
    match = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
    if not match or "[v" in line:
        continue
    start, end = (int(x, 16) for x in match.groups())
    try:
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(start)
            data = memory.read(min(end - start, 64 << 20)) or b""
    except OSError:
        continue
    found += data.count((half + "another-" + "execution").encode())
    del data
print(found)
"""
    result = world.client.run_ok(python_skill(source))
    check(int(result["stdout"]) <= 2, f"found {shorten(result['stdout'])} times")
