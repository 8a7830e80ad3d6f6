# SPDX-License-Identifier: Apache-2.0
"""A guest that is the attacker's from its kernel up speaks to the host's relay itself: no resolver and
no listener of ours is between its frames and the daemon.

The daemon is in an internet of the test's own, where every address leads to servers that note who came.
RELAY_PERMITTED: how many connections one execution begins in a row, all of which are permitted then; without
it 2,000, of which 200 are.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "categories"))

from cases_machine import check_image, install_image  # noqa: E402
from harness import Beside, bash_skill, case, check, check_equal, check_in, long_case, skill_zip, wait_until  # noqa: E402
from internet import Internet  # noqa: E402
from tenants import Tenant  # noqa: E402

PUBLIC, OWN = "93.184.216.34", "93.184.215.1"
FLOODS, DEAF, SILENT = "93.184.216.35", "93.184.216.36", "93.184.216.37"
DECLARED = "good.test shift.test floods.test deaf.test silent.test mute.test *.range.test left-out.test unpermitted.test"
POLICY = DECLARED.replace(" unpermitted.test", "")
ASKED = POLICY.replace(" left-out.test", "")
# What no name may resolve to, by the words that it is refused with.
RANGES = {
    "0.0.0.0": "no address of a host",
    "10.0.0.1": "a private network",
    "100.64.0.1": "a provider's inner network",
    "127.0.0.1": "loopback",
    "127.0.0.53": "loopback",
    "168.63.129.16": "a cloud's metadata",
    "169.254.169.254": "link-local, where clouds have their metadata",
    "172.31.255.254": "a private network",
    "192.168.1.1": "a private network",
    "198.19.0.1": "set aside for measurements",
    "224.0.0.1": "multicast",
    "255.255.255.255": "set aside",
    "::": "not a public address",
    "::1": "loopback",
    "::ffff:10.0.0.1": "an IPv4 address mapped into IPv6",
    f"::ffff:{PUBLIC}": "an IPv4 address mapped into IPv6",
    "64:ff9b::a00:1": "NAT64, with an IPv4 address in it",
    "2002:a00:1::1": "6to4, with an IPv4 address in it",
    "fd00:ec2::254": "a private network",
    "fe80::1": "link-local",
    OWN: "this machine's own",
}
# What is no name, or none that may be reached: nobody is asked for it.
ODD_NAMES = [
    b"other.test", b"good.test\0.other.test", b"good.test\0", b"\0", b"good.test/", b"good.test:80", b"x@good.test",
    b" good.test", b"good..test", b".good.test", b"*.range.test", b"range.test", b"\xff\xfe.range.test",
    b"a" * 64 + b".range.test", b"a" * 253, PUBLIC.encode(), b"10.0.0.1", b"127.1",
    b"2130706433", b"0x7f000001", b"[::1]", b"::1", b"localhost",
]
BROKE = "the guest broke the protocol: "
# A breach by what it asks for, and how its execution ends.
BREACHES = {
    "net-untold-name": BROKE + "a connection to what it was not told of",
    "net-untold-port": BROKE + "a connection to what it was not told of",
    "net-number-over": BROKE + "a connection that cannot be",
    "net-number-in-use": BROKE + "a connection under a number that is in use",
    "net-data-unopened": BROKE + "bytes of a connection that is not open",
    "net-host-frame": BROKE + "frame type 0x09",
    "net-after-exit": BROKE + "frame type 0x8c at stage",
    "net-open-room": BROKE + "more room than it was given bytes",
    "net-open-ends-twice": BROKE + "an end that cannot be",
    "net-open-floods": BROKE + "more bytes than it was given room for",
    "net-query-over": BROKE + "a query that cannot be",
    "net-query-in-use": BROKE + "a query that cannot be",
}
AT_ONCE = 32  # PROTO_NET_CONNECTIONS
WINDOW = 64 << 10  # PROTO_NET_WINDOW
PERMITTED = int(os.environ.get("RELAY_PERMITTED") or 200)
CONNECTIONS = max(PERMITTED, 2000)
# What one execution may make the daemon hold: its windows and, for each connection that is not one yet,
# four attempts (STREAM_ATTEMPTS); beside them what any execution takes.
EXECUTION_KIB, EXECUTION_FDS, EXECUTION_THREADS = AT_ONCE * (WINDOW >> 10) + 3072, AT_ONCE * 4 + 32, 2
# Of requests of the test's own that were answered, and are not over yet.
ANSWERED_THREADS = 6
# What it may keep when they are over.
KEPT_KIB = 4096
HELLO = bash_skill("echo hello", name="hello")


def hexadecimal(names):
    return [(name if isinstance(name, bytes) else name.encode()).hex() for name in names]


class Attacked:
    """A daemon in that internet, with a tenant whose guests are hostile and one beside it."""

    def __init__(self, world, name, internet):
        self.internet = internet
        internet.names = {
            "good.test": [PUBLIC],
            "shift.test": [PUBLIC],
            "floods.test": [FLOODS],
            "deaf.test": [DEAF],
            "silent.test": [SILENT],
            "mute.test": None,
        }
        self.daemon = world.copy_of_snapshots(name, ["--max-running", "6"], kept=1)
        self.daemon.environment |= {
            "SKILLVM_NETWORK_DNS": "127.0.0.53:53",
            "SKILLVM_NETWORK_CONNECTIONS": str(PERMITTED),
            "SKILLVM_RETENTION_INTERVAL": "500ms",
        }
        install_image(self.daemon)
        self.daemon.start()
        check_image(self.daemon)
        self.hostile = Tenant(self.daemon, "hostile", network=POLICY)
        front = f"network: {DECLARED}\n"
        self.skill = self.hostile.push(skill_zip({"main.sh": ""}, name="attacker", front=front))
        self.neighbour = Tenant(self.daemon, "neighbour")
        self.hello = self.neighbour.push(HELLO)

    def fields(self, mode, names, rest=(), **more):
        args = [mode, *hexadecimal(names), *rest]
        return {"image": "hostile", "network": ASKED.split(), "args": args} | more

    def attack(self, mode, *names, **more):
        result = self.hostile.execute(self.skill, **self.fields(mode, names, **more))
        check(self.daemon.process.poll() is None, f"{mode}: the daemon died: {self.daemon.log_tail()}")
        return result

    def begin(self, mode, *names, **more):
        return self.hostile.start(self.skill, 600, **self.fields(mode, names, **more))

    def result(self, place):
        return self.hostile.ask("GET", place).json

    def finished(self, place):
        wait_until(lambda: self.result(place)["status"] not in ("accepted", "running"), 600, "it is over")
        return self.result(place)

    def greet(self):
        check_equal(self.neighbour.run(self.hello)["stdout"], "hello\n", "a neighbour's execution")


@contextlib.contextmanager
def attacked(world, name):
    with contextlib.closing(Internet(own=[OWN], floods=[FLOODS], deaf=[DEAF], silent=[SILENT])) as internet:
        it = Attacked(world, name, internet)
        yield it
        check_equal(it.daemon.stop(), 0, "its exit status")


def in_own_thread(function, *args):
    """Its network goes with the thread."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


def try_names(it, names):
    """What came of each: "good", "nobody" or "failed", with its ports. The result."""
    result = it.attack("net-names", *names)
    check_equal(result["status"], "success", f"the guest's end: {result['error']}")
    lines = result["stdout"].splitlines()[1:]
    check_equal([line.split()[0] for line in lines], [str(i) for i in range(len(names))], "answers")
    return [line.partition(" ")[2] for line in lines], result


def rows_of(result):
    return {(row["host"], row["port"]): row["refused"] for row in result["network"]}


def check_names(it):
    """Of all that it asks for it reaches the public host, and nobody looks for what is not permitted."""
    internet = it.internet
    ranges = {f"n{i}.range.test": address for i, address in enumerate(RANGES)}
    mixed = {"m1.range.test": [PUBLIC, "10.9.9.9"], "m2.range.test": ["fe80::2", PUBLIC]}
    internet.names |= {name: [address] for name, address in ranges.items()} | mixed
    internet.later["shift.test"] = ["10.1.2.3"]
    reached = ["good.test", "GOOD.Test.", "shift.test", "shift.test", "shift.test"]
    refused = [*ranges, *mixed, "none.range.test", "left-out.test", "unpermitted.test"]
    internet.asked.clear()
    begun = internet.begun()
    outcomes, result = try_names(it, reached + refused + ODD_NAMES)
    check_equal(outcomes, ["good 80:open 443:open"] * len(reached) + ["nobody"] * (len(refused) + len(ODD_NAMES)),
                "what came of names")
    visits = {(PUBLIC, port): len(reached) for port in (80, 443)}
    check_equal(internet.came(), visits, "whom anybody came to")
    check_equal(internet.begun() - begun, 2 * len(reached), "connections that were begun")
    looked_up = {"good.test", "shift.test", *ranges, *mixed, "none.range.test"}
    check_equal(set(internet.asked), looked_up, "names that were looked up")

    why = {name: f"it resolves to {address}: {RANGES[address]}" for name, address in ranges.items()} | {
        "m1.range.test": "it resolves to 10.9.9.9: a private network",
        "m2.range.test": "it resolves to fe80::2: link-local",
        "none.range.test": "there is no such name",
        "left-out.test": "the request leaves it out",
        "unpermitted.test": "the tenant's policy does not permit it",
        "other.test": "it is not declared",
    }
    rows = rows_of(result)
    for name, text in why.items():
        check_equal(rows.get((name, None)), text, f"the row of {name}")
    for name in ("good.test", "shift.test"):
        for port in (80, 443):
            check_equal(rows.get((name, port), "no row"), None, f"the row of {name}:{port}")
    audit = it.daemon.client.get("/v1/admin/audit?limit=200").body.decode()
    for text in ("good.test:80 2 connections", *(f"{name} refused 1 times: {text}" for name, text in why.items())):
        check_in(text.replace("/", "\\/"), audit, "the audit")

    # What the name means now is what the next execution is told; what is refused hides nothing.
    many = [f"x{i}.test" for i in range(70)]
    outcomes, result = try_names(it, ["shift.test", *many, "good.test"])
    check_equal(outcomes, ["nobody"] * 71 + ["good 80:open 443:open"], "a name that means something else now")
    rows = rows_of(result)
    check_equal(rows.get(("shift.test", None)), "it resolves to 10.1.2.3: a private network", "its row")
    check_equal(rows.get(("good.test", 80), "no row"), None, "the row of good.test")
    check_equal(set(internet.came()), set(visits), "whom anybody came to")


def check_breaches(it):
    internet = it.internet
    internet.dialled.clear()
    for mode, error in BREACHES.items():
        name = "deaf.test" if mode.startswith("net-open-") else "good.test"
        result = it.attack(mode, name, "mute.test")
        check_equal(result["status"], "failed", f"{mode}: status")
        check_in(error, result["error"], mode)
    result = it.attack("net-names", "good.test", network=False)
    check_in(BROKE + "a connection where it may have none", result["error"], "without a network")
    result = it.attack("net-break-off", "deaf.test")
    check_equal(result["error"], "the guest stopped before it had finished (while the skill ran)", "a machine that went")
    came = internet.came()
    check(set(came) <= {(PUBLIC, 80), (DEAF, 80)}, f"somebody came to {came}")
    it.greet()


def speak_to_the_relay(world):
    with attacked(world, "relay") as it:
        check_names(it)
        check_breaches(it)


@case
def a_guest_that_speaks_to_the_relay_reaches_what_is_permitted(world):
    in_own_thread(speak_to_the_relay, world)


class Most(Beside):
    """The most that a daemon holds: KiB, descriptors, threads."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon = daemon
        self.found = self.before = self.now()

    def now(self):
        return self.daemon.rss_kib(), self.daemon.descriptors(), self.daemon.threads()

    def run(self):
        while not self.over.wait(0.05):
            self.found = tuple(map(max, self.found, self.now()))

    def check(self, executions):
        grown = [after - before for before, after in zip(self.before, self.found)]
        print(f"    {executions} executions: {grown[0]} KiB, {grown[1]} descriptors, {grown[2]} threads more",
              flush=True)
        bounds = (EXECUTION_KIB, 0), (EXECUTION_FDS, 0), (EXECUTION_THREADS, ANSWERED_THREADS)
        for what, more, (each, beside) in zip(("KiB", "descriptors", "threads"), grown, bounds):
            check(more <= each * executions + beside,
                  f"{executions} executions: {more} {what} more, {each} each are few")


def check_held(it):
    """All that a guest can have at once, in each of the ways that it is held longest; a neighbour beside it."""
    internet = it.internet
    with Most(it.daemon) as most:
        holding = [it.begin(mode, name) for mode, name in (
            ("net-pushes", "deaf.test"), ("net-deaf", "floods.test"), ("net-pushes", "silent.test"))]
        taken = it.finished(it.begin("net-takes-all", "floods.test"))
        wait_until(lambda: internet.dialled[FLOODS, 80] == 2 * AT_ONCE, 120, "who is deaf is connected")
        wait_until(lambda: internet.unread() >= AT_ONCE * WINDOW / 2, 120, "much is pushed at who is deaf")
        it.greet()
        check_equal([it.result(place)["status"] for place in holding], ["running"] * 3, "beside whom that was")
        for place in holding:
            it.hostile.ask("DELETE", place)
        held = [it.finished(place) for place in holding]
    most.check(len(holding) + 1)
    check_equal((taken["status"], taken["stdout"]), ("success", "hostile\n"), "who takes all")
    told = [(row["count"], row["bytes_received"]) for row in taken["network"]]
    check_equal(told, [(AT_ONCE, AT_ONCE * WINDOW)], "what there is room for")
    for result in held:
        end = result["status"], result["error"], result["stdout"]
        check_equal(end, ("cancelled", "cancelled", "hostile\n"), "the end of who holds all")
    (pushed,), (unread,) = (result["network"] for result in held[:2])
    check(pushed["bytes_sent"] >= AT_ONCE * WINDOW / 2, f"what was pushed: {pushed}")
    check(unread["bytes_received"] <= AT_ONCE * WINDOW, f"more than there is room for: {unread}")
    return most


def check_many(it):
    begin = time.monotonic()
    with Most(it.daemon) as most:
        place = it.begin("net-many", "good.test", rest=[str(CONNECTIONS)])
        it.greet()
        result = it.finished(place)
    print(f"    {CONNECTIONS} connections in {time.monotonic() - begin:.1f} s", flush=True)
    most.check(1)
    reached = PERMITTED
    rows = {row["refused"]: row["count"] for row in result["network"]}
    refused = {f"more than {reached} connections in one execution": CONNECTIONS - reached}
    check_equal(rows, {None: reached} | (refused if reached < CONNECTIONS else {}), "their rows")
    check_equal(result["stdout"], f"hostile\n{reached} opened, {CONNECTIONS - reached} refused\n", "what came of them")
    check_equal(it.internet.came().get((PUBLIC, 80)), reached, "connections that came")


def check_given_back(it, before):
    daemon = it.daemon
    wait_until(lambda: not it.internet.open, 30, "no connection is left")
    wait_until(lambda: daemon.descriptors() <= before[1], 30, f"descriptors are {before[1]} again")
    wait_until(lambda: daemon.threads() <= before[2], 30, f"threads are {before[2]} again")
    wait_until(lambda: daemon.rss_kib() <= before[0] + KEPT_KIB, 60, f"memory is {before[0]} KiB again")


def hold_the_relay(world):
    with attacked(world, "relay_held") as it:
        it.greet()
        held = check_held(it)
        check_many(it)
        check_given_back(it, held.before)


@long_case
def what_a_guest_holds_of_the_relay_is_bounded(world):
    in_own_thread(hold_the_relay, world)
