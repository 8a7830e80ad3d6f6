# SPDX-License-Identifier: Apache-2.0
"""Programs of the 20 categories that sandboxes for skills are tried with, next to canaries of the host:
none of them is touched from a machine, and bare python3 shows that they see who touches them.
CATEGORIES=peers: beside bubblewrap and crun too, as docs/security.md has it."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "categories"))

import sandboxes  # noqa: E402
import table  # noqa: E402
from canaries import TAKEN_MIB, Canaries, available_mib, enter_namespaces, new_secret  # noqa: E402
from harness import Skipped, case, check, check_equal, check_success, long_case, python_skill, shorten  # noqa: E402
from tenants import JSON, make_tenant  # noqa: E402
from verdict import BLOCKED, ERROR, OPEN, verdict  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "security.md"
PEERS = ("python3", "bubblewrap", "crun")
SESSION = "chat-17"
KEEPER = """
import os
open(os.environ["SANDBOX_SESSION_DIR"] + "note", "w").write("{}")
"""


def plant_tenant(daemon, canaries):
    """Another tenant's file, skill and session."""
    key = {"Authorization": f"Bearer {make_tenant(daemon, 'keeper')}"}
    zipped, raw = {"Content-Type": "application/zip"}, {"Content-Type": "application/octet-stream"}

    def ask(path, body, kind):
        return daemon.client.request("POST", path, body, {**key, **kind})

    skill = python_skill(f"# {canaries.secret('a skill of another tenant')}\n", name="kept")
    check_equal(ask("/v1/skills", skill, zipped).status, 201, "a push")
    content = canaries.secret("a file of another tenant")
    check_equal(ask("/v1/files", content.encode(), raw).status, 201, "an upload")
    source = KEEPER.format(canaries.secret("a session of another tenant"))
    ran = ask("/v1/executions", json.dumps({"code": source, "session_id": SESSION}), JSON)
    check(check_success(ran.json)["session"]["committed"], f"no session: {shorten(ran.body)}")


@contextlib.contextmanager
def planted(world, name, **environment):
    """(a daemon in a host with canaries, these)."""
    host_name = new_secret()
    enter_namespaces(host_name)
    canaries = Canaries(world.root / f"{name}.host", host_name)
    daemon = world.copy_of_snapshots(name)
    daemon.environment.update(canaries.environment, **environment)
    try:
        daemon.start()
        canaries.objects, canaries.socket = daemon.data / "objects", daemon.socket
        plant_tenant(daemon, canaries)
        yield daemon, canaries
    finally:
        daemon.stop()
        canaries.close()


def attack(canaries, sandbox, category, source=None):
    """(outcome, why) of a program, by default the category's."""
    source = source or sandboxes.source_of(category, canaries.given(category))
    limits = table.CATEGORIES[category].limits
    run, effects = canaries.watch(category, lambda ready: sandbox.run(source, ready, limits))
    outcome, why = verdict(category, run, effects)
    return outcome, f"{why}: {shorten(run.all, 2000)}" if outcome == ERROR else why


def attack_all(world, peers):
    found = {name: {} for name in table.CATEGORIES}
    with planted(world, "categories") as (daemon, canaries):
        machine = sandboxes.Skillvm(daemon, make_tenant(daemon, "hostile"), SESSION)
        others = sandboxes.peers(peers, canaries.environment, world.root)
        for category in table.CATEGORIES:
            for sandbox in (machine, *others):
                outcome, why = attack(canaries, sandbox, category)
                found[category][sandbox.name] = outcome, why
                line = table.result_line(category, sandbox.name, outcome)
                print(line + (f" ({why})" if why else ""), flush=True)
    return found


def in_own_thread(function, *args):
    """Its namespaces go with the thread."""
    if os.geteuid() != 0:
        raise Skipped("it needs root, for namespaces")
    if available_mib() < 2 * TAKEN_MIB:
        raise Skipped(f"{available_mib()} MiB of memory are too few for a program that takes them")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


@long_case
def twenty_categories_leave_the_host_untouched(world):
    peers = PEERS if os.environ.get("CATEGORIES") == "peers" else PEERS[:1]
    found = in_own_thread(attack_all, world, peers)
    for category, outcomes in found.items():
        for sandbox, (outcome, why) in outcomes.items():
            check(outcome != ERROR, f"{category} in {sandbox} proves nothing: {why}")
        check_equal(outcomes["skillvm"], (BLOCKED, ""), category)
        check_equal(outcomes["python3"][0], OPEN, f"{category}, where nothing is in its way")
    plain = {name: {sandbox: outcome for sandbox, (outcome, _) in outcomes.items()}
             for name, outcomes in found.items()}
    wrong = table.differences(PAGE.read_text(), plain)
    check(not wrong, "docs/security.md: " + "; ".join(wrong))


def attack_with_faults(world):
    with planted(world, "faults", SKILLVM_NETWORK_POLICY="canary.test:*",
                 SKILLVM_NETWORK_ALLOW_PRIVATE="canary.test=127.0.0.1") as (daemon, canaries):
        key = make_tenant(daemon, "hostile")
        machine = sandboxes.Skillvm(daemon, key, SESSION)
        port = canaries.servers.web.getsockname()[1]
        reaching = sandboxes.Skillvm(daemon, key, SESSION, front=f'network: "canary.test:{port}"\n')
        given = canaries.given("eval")
        told = sandboxes.source_of("eval", {**given, "secret": "/sandbox/skill/main.py"})
        secret = next(s for s, what in canaries.secrets.items() if what == "another file")
        broken = sandboxes.source_of("eval", {**given, "secret": 1.5})
        return {
            "egress is open": attack(canaries, reaching, "http"),
            "the guest was given the secret": attack(canaries, machine, "eval", f"# {secret}\n{told}"),
            "the program has a fault": attack(canaries, machine, "eval", broken),
            "the program does not begin": attack(canaries, machine, "eval", "import none_such\n"),
        }


@case
def canaries_see_who_reaches_them_from_a_machine(world):
    """What is blocked above would not be, were something of the host's within reach."""
    outcomes = {what: outcome for what, (outcome, _) in in_own_thread(attack_with_faults, world).items()}
    check_equal(outcomes, {
        "egress is open": OPEN,
        "the guest was given the secret": OPEN,
        "the program has a fault": ERROR,
        "the program does not begin": ERROR,
    }, "outcomes")
