# SPDX-License-Identifier: Apache-2.0
"""No execution sees another: not its files, processes, environment, random numbers or time.
CLONES says how many are looked at for what is equal in them."""

import collections
import concurrent.futures
import os
import time

from harness import (
    Failed,
    case,
    check,
    check_equal,
    check_reused,
    long_case,
    python_skill,
    shorten,
    wait_until,
)
from snapshot_file import kernel_places
from traces import TRACES

RUNS = 20
# Executions before the daemon's memory and descriptors are taken as its resting state: its page
# cache and the allocator's arenas have reached their limits by then.
RUNS_UNTIL_REST = 60
# The pool's threads each take an arena of the allocator's when they first have work to do.
RSS_GROWTH_KIB = 1024
LEAK_ROUNDS = 4

TWIN = r"""
import json, os, random, secrets, tempfile, time, uuid

values = {
    "os.urandom": os.urandom(16).hex(),
    "uuid.uuid4": str(uuid.uuid4()),
    "random.random": random.random(),
    "random.Random": random.Random().random(),
    "random.SystemRandom": random.SystemRandom().random(),
    "secrets.token_hex": secrets.token_hex(16),
    "tempfile.mkdtemp": tempfile.mkdtemp(),
    "tempfile.mktemp": tempfile.mktemp(),
    "kernel uuid": open("/proc/sys/kernel/random/uuid").read().strip(),
    "boot_id": open("/proc/sys/kernel/random/boot_id").read().strip(),
    "/dev/urandom": open("/dev/urandom", "rb").read(16).hex(),
}
json.dump(values, open(os.environ["SANDBOX_OUTPUT"], "w"))
for _ in range(20):
    print(repr(time.time()), flush=True)
    time.sleep(0.02)
"""

CLONES = int(os.environ.get("CLONES") or 10)
# Where things are, and what was drawn when the snapshot was made, in the zygote's copy that runs
# this and in an interpreter that it starts. "" is the mappings without a name.
PLACES = r"""
import ctypes, json, os, random, subprocess, sys, uuid

def look():
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    libc.getauxval.argtypes = [ctypes.c_ulong]
    found = {
        "os.urandom": [os.urandom(16).hex()],
        "random.random": [random.random().hex()],
        "uuid.uuid4": [str(uuid.uuid4())],
        "hash seed": [hash("a string")],
        "id of an object made before": [id(sys.modules)],
        "id of an object made now": [id(object())],
        "address of a function of libc": [ctypes.cast(libc.getauxval, ctypes.c_void_p).value],
        "address of malloc's next": [libc_malloc(libc)],
        "AT_RANDOM, 16 bytes": [ctypes.string_at(libc.getauxval(25), 16).hex()],
    }
    # What a processor or a kernel has, and who runs: no secrets.
    known = {4, 5, 6, 8, 11, 12, 13, 14, 16, 17, 23, 26, 27, 28, 29, 30, 51}
    for kind in range(3, 64):
        value = libc.getauxval(kind)
        if kind not in known and value:
            found[f"auxv {kind}"] = [value]
    last, name = "", ""
    for line in open("/proc/self/maps"):
        parts = line.split(None, 5)
        first, end = parts[0].split("-")
        path = parts[5].strip() if len(parts) > 5 else ""
        # What lies right behind a file's own data is the rest of it, which is zero at first.
        if path or first != last:
            name = os.path.basename(path)
        last = end
        if path.startswith("/"):
            name = ("libc" if name.startswith("libc.so")
                    else "a library" if ".so" in name
                    else "the interpreter" if name.startswith("python") else "another file")
        found.setdefault(f"mapping {name}", []).append(int(first, 16))
    return found

def libc_malloc(libc):
    libc.malloc.restype = ctypes.c_void_p
    return libc.malloc(40)

if len(sys.argv) > 1:
    json.dump(look(), sys.stdout)
else:
    own = look()
    other = json.loads(subprocess.run([sys.executable, __file__, "other"], check=True,
                                      stdout=subprocess.PIPE).stdout)
    json.dump({"clone": own, "started": other}, open(os.environ["SANDBOX_OUTPUT"], "w"))
"""
# All that docs/snapshot-format.md says clones share.
EQUAL_IN_CLONES = {
    "hash seed",
    "id of an object made before",
    "id of an object made now",
    "address of a function of libc",
    "address of malloc's next",
    "AT_RANDOM, 16 bytes",
    "auxv 3",  # the interpreter's program headers
    "auxv 7",  # the dynamic linker
    "auxv 9",  # the interpreter's entry
    "auxv 15",  # these three: in the stack
    "auxv 25",
    "auxv 31",
    "auxv 33",  # the vdso
    "mapping ",
    "mapping [heap]",
    "mapping [stack]",
    "mapping [vdso]",
    "mapping [vvar]",
    "mapping libc",
    "mapping a library",
    "mapping the interpreter",
    "mapping another file",
}
# An interpreter started in a clone has all of it for itself.
EQUAL_IN_STARTED = set()
# The kernel's text has some 490 places: snapshots that are made anew until none has the first's.
ANEW_MAX = 3


class Runs:
    """Of one skill, none of which may see of another or draw what one drew."""

    def __init__(self, world):
        self.world, self.archive = world, python_skill(TRACES)
        self.numbers, self.machines = set(), collections.Counter()

    def run(self, runs):
        for _ in range(runs):
            result = self.world.client.run_ok(self.archive)
            report = result["output"]
            where = f"run {self.machines.total()}"
            self.machines[result["machine"]] += 1
            check_equal(report["marker"], False, f"{where}: a file in /tmp")
            check_equal(report["tmp"], [], f"{where}: /tmp")
            check_equal(report["env"], None, f"{where}: an environment variable")
            check_equal(report["processes"], [], f"{where}: processes")
            check_equal(report["sandbox"], ["files"], f"{where}: /sandbox/out")
            for value in report["random"]:
                check(value not in self.numbers, f"{where}: {value} came before")
                self.numbers.add(value)

    def check_reused(self):
        runs = self.machines.total()
        check(self.machines["reused"] >= runs * 9 // 10, f"machines were {dict(self.machines)}")


@case
def runs_share_nothing(world):
    runs = Runs(world)
    runs.run(RUNS)
    runs.check_reused()


@long_case
def runs_leave_the_daemon_as_it_was(world):
    started = time.monotonic()
    runs = Runs(world)
    runs.run(RUNS_UNTIL_REST)
    states = [resting_state(world, None)]
    growth = None
    # What leaks grows each time; a thread that did something for the first time did it once.
    while (growth is None or growth > RSS_GROWTH_KIB) and len(states) <= LEAK_ROUNDS:
        runs.run(RUNS_UNTIL_REST)
        states.append(resting_state(world, states[0]))
        growth = states[-1]["rss_kib"] - states[-2]["rss_kib"]
    check(growth <= RSS_GROWTH_KIB, f"the daemon grows each time: {states}")
    runs.check_reused()
    world.check_clean()
    print(f"{runs.machines.total()} runs in {time.monotonic() - started:.1f} s; at rest {states}", flush=True)


def resting_state(world, first):
    """Once the threads of closed connections are gone, and descriptors and threads are those of the first such
    state, if there was one."""
    daemon = world.daemon
    # A machine that is being reset has a descriptor more.
    daemon.parked()
    if first:
        wait_until(lambda: (daemon.descriptors(), daemon.threads()) == (first["descriptors"], first["threads"]), 60,
                   f"descriptors and threads of the daemon are those of {first}")
    last = None
    for _ in range(50):
        now = daemon.descriptors(), daemon.threads()
        if now == last:
            break
        last = now
        time.sleep(0.2)
    return {"descriptors": now[0], "threads": now[1], "rss_kib": daemon.rss_kib()}


def run_twin(world):
    """The values of one clone and, for each time it printed, how long ago that was."""
    lags = []
    with world.client.events(python_skill(TWIN)) as events:
        for event, data, at in events:
            if event == "stdout":
                lags += [at - float(line) for line in data["data"].split()]
            if event == "result":
                result = data
    if result["status"] != "success":
        raise Failed(f"{result['status']}: {shorten(result['stderr'])}")
    return result["output"], lags


def check_clock(world, lags):
    """A line arrives after it is printed, so the smallest lag is the nearest to the difference of
    the clocks. On a busy machine all may be late: a wrong clock is so each time."""
    for _ in range(20):
        check(lags, "no time was printed")
        if min(lags) <= 0.1:
            break
        lags = run_twin(world)[1]
    check(
        -0.1 <= min(lags) <= 0.1, f"the guest's clock is {-min(lags):+.3f} s from the host's"
    )


@case
def clones_never_agree(world):
    """Two clones of one snapshot, started together, three times over."""
    seen = {}
    for _ in range(3):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            twins = [pool.submit(run_twin, world) for _ in range(2)]
            for twin in twins:
                values, lags = twin.result()
                for name, value in values.items():
                    others = seen.setdefault(name, set())
                    check(value not in others, f"two clones agree on {name}: {value}")
                    others.add(value)
                check_clock(world, lags)


def equal_in_most(reports):
    """The names of what more than half of the reports have a value in common of."""
    common = set()
    for name in {name for report in reports for name in report}:
        seen = collections.Counter()
        for report in reports:
            seen.update(set(report.get(name, [])))
        if seen and max(seen.values()) > len(reports) // 2:
            common.add(name)
    return common


@long_case
def what_clones_share_is_known(world):
    archive = python_skill(PLACES, name="places")
    reports = []
    for number in range(CLONES):
        result = world.client.run_ok(archive, fresh=True)
        check_equal(result["machine"], "fresh", f"the machine of run {number}")
        reports.append(result["output"])
    for kind, allowed in (("clone", EQUAL_IN_CLONES), ("started", EQUAL_IN_STARTED)):
        common = equal_in_most([report[kind] for report in reports])
        print(f"equal in {kind}: {sorted(common)}", flush=True)
        print(f"not equal in {kind}: {sorted(allowed - common)}", flush=True)
        check_equal(sorted(common - allowed), [], f"equal in {kind} and not in the list")


def places(daemon):
    """What clones of the daemon's snapshot share, and where its kernel lies."""
    clone = daemon.client.run_ok(python_skill(PLACES, name="places"), fresh=True)["output"]["clone"]
    # Where each of them lies behind a file's, no mapping is without a name.
    check_equal(sorted(EQUAL_IN_CLONES - set(clone) - {"mapping "}), [], "not told")
    (folder,) = (daemon.data / "snapshots").glob("*/")
    return {name: clone.get(name, []) for name in EQUAL_IN_CLONES} | kernel_places(folder)


@long_case
def another_snapshot_shares_none_of_it(world):
    """The same kernel, image and host: all that clones share is drawn when a snapshot is made."""
    first = places(world.daemon)
    shared = set(first)
    for number in range(ANEW_MAX):
        daemon = world.new_daemon(f"anew-{number}")
        daemon.start()
        try:
            other = places(daemon)
        finally:
            daemon.stop()
        shared = {name for name in shared if set(first[name]) & set(other[name])}
        print(f"equal in snapshot {number}: {sorted(shared)}", flush=True)
        if not shared:
            break
    check_equal(sorted(shared), [], "equal in all snapshots")


@case
def a_skill_has_its_machine_again(world):
    archive = python_skill("print(1)", name="again")
    check_equal(world.client.run_ok(archive)["machine"], "fresh", "the first")
    check_reused(lambda: world.client.run_ok(archive), "the second")
    check_equal(world.client.run_ok(archive, fresh=True)["machine"], "fresh", "one alone")
    check_reused(lambda: world.client.run_ok(archive), "the next")
    other = python_skill("print(2)", name="again")
    check_equal(world.client.run_ok(other)["machine"], "fresh", "another skill of this name")
    failed = world.client.run(python_skill("raise SystemExit(3)", name="again"))
    check_equal((failed["status"], failed["machine"]), ("failed", "fresh"), "one that fails")
    failed = check_reused(
        lambda: world.client.run(python_skill("raise SystemExit(3)", name="again")), "failing again"
    )
    check_equal(failed["status"], "failed", "failing again")
    slow = python_skill("import time; time.sleep(100)", name="slow")
    for number in range(2):
        late = world.client.run(slow, timeout=1)
        check_equal((late["status"], late["machine"]), ("timeout", "fresh"), f"late {number}")
    check_equal(world.daemon.metrics("skillvm_machine_resets_total")['result="failed"'], 0, "failed")
    world.check_clean()


@case
def parallel_runs_do_not_mix(world):
    source = """
import json, os, sys, time
mine = json.loads(os.environ["SANDBOX_INPUT"])["mine"]
for _ in range(5):
    print(mine, flush=True)
    time.sleep(0.05)
open(os.environ["SANDBOX_FILES_DIR"] + "/mine.txt", "w").write(mine)
json.dump({"mine": mine}, open(os.environ["SANDBOX_OUTPUT"], "w"))
"""
    archive = python_skill(source)

    def one(number):
        mine = f"caller-{number}"
        result = world.client.run_ok(archive, input={"mine": mine})
        check_equal(result["output"], {"mine": mine}, "output")
        check_equal(result["stdout"], (mine + "\n") * 5, "stdout")

    # More than run at once, so that some wait in the queue.
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))


@case
def waiting_runs_say_so(world):
    daemon = world.copy_of_snapshots("queue", ["--max-running", "1"])
    daemon.start()
    try:
        slow = python_skill("import time; time.sleep(20)")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(daemon.client.run_ok, slow)
            wait_until(lambda: daemon.client.get("/v1/executions?status=running")
                       .json["executions"], 60, "the first runs")
            second = daemon.client.run_ok(python_skill("print(1)"))
            first.result()
        check(second["phases_ms"]["queue"] > 500, f"queued {second['phases_ms']['queue']} ms")
    finally:
        daemon.stop()
