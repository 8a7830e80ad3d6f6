# SPDX-License-Identifier: Apache-2.0
"""No execution sees another: not its files, processes, environment, random numbers or time."""

import concurrent.futures
import time

from harness import Failed, case, check, check_equal, python_skill, shorten

RUNS = 200
# Executions before the daemon's memory and descriptors are taken as its resting state: its page
# cache and the allocator's arenas have reached their limits by then.
WARM_UP = 100
RSS_GROWTH_KIB = 512

TRACES = r"""
import json, os, pathlib, random, subprocess, sys, uuid

def processes():
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                uid = os.stat(f"/proc/{entry}").st_uid
                line = open(f"/proc/{entry}/cmdline").read().replace("\0", " ").strip()
            except OSError:
                continue
            if uid == os.getuid():
                found.append(line)
    return found

marker = pathlib.Path("/tmp/marker")
report = {
    "marker": marker.exists(),
    "tmp": sorted(os.listdir("/tmp")),
    "env": os.environ.get("LEFT_BY_ANOTHER"),
    "processes": processes(),
    "sandbox": sorted(os.listdir("/sandbox/out")),
    "random": [random.random(), os.urandom(16).hex(), str(uuid.uuid4())],
}
marker.write_text("left")
os.environ["LEFT_BY_ANOTHER"] = "1"
pathlib.Path("/sandbox/out/files/left.txt").write_text("left")
subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
json.dump(report, open(os.environ["SANDBOX_OUTPUT"], "w"))
"""

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


@case
def runs_share_nothing(world):
    archive = python_skill(TRACES)
    numbers = set()
    rest = None
    started = time.monotonic()
    for number in range(RUNS):
        result = world.client.run_ok(archive)
        report = result["output"]
        where = f"run {number}"
        check_equal(report["marker"], False, f"{where}: a file in /tmp")
        check_equal(report["tmp"], [], f"{where}: /tmp")
        check_equal(report["env"], None, f"{where}: an environment variable")
        check_equal(report["processes"], [], f"{where}: processes")
        check_equal(report["sandbox"], ["files"], f"{where}: /sandbox/out")
        for value in report["random"]:
            check(value not in numbers, f"{where}: {value} came before")
            numbers.add(value)
        if number == WARM_UP:
            rest = resting_state(world)
    seconds = time.monotonic() - started
    after = resting_state(world)
    check_equal(after["descriptors"], rest["descriptors"], "descriptors of the daemon")
    check_equal(after["threads"], rest["threads"], "threads of the daemon")
    growth = after["rss_kib"] - rest["rss_kib"]
    check(growth <= RSS_GROWTH_KIB, f"the daemon grew by {growth} KiB: {rest} then {after}")
    world.check_clean()
    print(f"{RUNS} runs in {seconds:.1f} s; at rest {rest}, at the end {after}", flush=True)


def resting_state(world):
    """Once the threads of closed connections are gone."""
    daemon = world.daemon
    last = None
    for _ in range(50):
        now = daemon.descriptors(), daemon.threads()
        if now == last:
            break
        last = now
        time.sleep(0.2)
    return {
        "descriptors": daemon.descriptors(),
        "threads": daemon.threads(),
        "rss_kib": daemon.rss_kib(),
    }


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
                # A line arrives after it is printed, so the smallest lag is the nearest to the
                # difference of the clocks.
                check(lags, "no time was printed")
                check(
                    -0.1 <= min(lags) <= 0.1,
                    f"the guest's clock is {-min(lags):+.3f} s from the host's",
                )


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
        slow = python_skill("import time; time.sleep(2)")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(daemon.client.run_ok, slow)
            time.sleep(0.5)
            second = daemon.client.run_ok(python_skill("print(1)"))
            first.result()
        check(second["phases_ms"]["queue"] > 500, f"queued {second['phases_ms']['queue']} ms")
    finally:
        daemon.stop()
