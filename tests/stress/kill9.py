# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments under load: whatever the daemon acknowledged is there afterwards.

Clients run executions in every way, upload and delete files, push and delete skills; the daemon
is killed and started again. At the end the store opens, every acknowledged execution reads as
ended with a reason, no idempotency key began two, a result that was answered is the result that
is stored, files and skills are there or gone as was answered, every row has its object and no
object is without a row, and the counters of the last daemon equal its rows. The last third of the
kills comes while retention removes what was just stored.

    kill9.py [--kills N] [--clients N] [--seed S]
"""

import argparse
import hashlib
import http.client
import json
import os
import random
import signal
import sys
import threading
import time

import checked
import stand_in

BROKEN = (OSError, http.client.HTTPException)
KINDS = ["", "", "files", "files", "exit", "stdout", "timeout", "die", "oom", "utf8", "flood"]


class Ledger:
    """What was acknowledged. One lock for all of it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.executions = {}  # id -> the answer of a synchronous one, or None
        self.keys = {}        # key -> the set of ids it was answered with
        self.files = {}       # id -> SHA-256, or None once its deletion was acknowledged
        self.skills = {}      # version -> True, False once deleted, None: nobody knows
        self.refused = 0
        self.unanswered = 0

    def add_execution(self, key, identity, answer):
        with self.lock:
            if answer is not None or identity not in self.executions:
                self.executions[identity] = answer
            if key:
                self.keys.setdefault(key, set()).add(identity)


class Client(threading.Thread):
    def __init__(self, number, seed, daemon, ledger, stop):
        super().__init__()
        self.random = random.Random(f"{seed}/{number}")
        self.prefix = f"{seed}-{number}"
        self.daemon_socket = daemon.socket
        self.ledger = ledger
        self.stop = stop
        self.serial = 0
        self.files_expire = "SKILLVM_RETENTION_FILES_AGE" in os.environ
        self.problems = []

    def run(self):
        actions = [self.execute] * 12 + [self.upload] * 3 + [self.delete_file, self.push,
                                                             self.delete_skill]
        while not self.stop.is_set():
            try:
                self.random.choice(actions)()
            except BROKEN:
                with self.ledger.lock:
                    self.ledger.unanswered += 1
                time.sleep(0.02)

    def ask(self, *arguments, **options):
        return checked.request(self.daemon_socket, *arguments, **options)

    def expect(self, condition, text):
        if not condition:
            self.problems.append(text)

    def execute(self):
        self.serial += 1
        kind = self.random.choice(KINDS)
        body = {"skill": "demo", "timeout": 5, "env": {"FAKE": kind, "FAKE_DATA": "3"}}
        key = None
        if self.random.random() < 0.6:
            key = body["idempotency_key"] = f"key-{self.prefix}-{self.serial}"
        body["async"] = self.random.random() < 0.5
        with self.ledger.lock:
            files = [name for name, digest in self.ledger.files.items() if digest]
        if files and self.random.random() < 0.3:
            body["files"] = [self.random.choice(files)]
        # With a key the same request is sent until it is answered, and now and then once more.
        attempts = 100 if key else 1
        while attempts > 0 and not self.stop.is_set():
            attempts -= 1
            try:
                status, text = self.ask("POST", "/v1/executions", body)
            except BROKEN:
                if not key:
                    raise
                time.sleep(0.05)
                continue
            self.take_answer(key, body, status, text)
            if status != 429 and self.random.random() < 0.8:
                return

    def take_answer(self, key, body, status, text):
        if status in (400, 429, 503):
            # Its file was deleted meanwhile; too many wait; the daemon starts or stops.
            with self.ledger.lock:
                self.ledger.refused += 1
            return
        answer = json.loads(text)
        self.expect(status in (200, 202), f"an execution was answered with {status} {answer}")
        if status in (200, 202):
            self.ledger.add_execution(key, answer["execution_id"],
                                      answer if status == 200 and not body["async"] else None)

    def upload(self):
        content = self.random.randbytes(self.random.choice([0, 10, 1000, 100000, 300000]))
        status, text = self.ask("POST", f"/v1/files?name=f{self.random.randrange(10**9)}", content,
                                kind="application/octet-stream")
        self.expect(status == 201, f"an upload was answered with {status}")
        if status == 201:
            with self.ledger.lock:
                self.ledger.files[json.loads(text)["id"]] = hashlib.sha256(content).hexdigest()

    def delete_file(self):
        with self.ledger.lock:
            files = [name for name, digest in self.ledger.files.items() if digest]
            if not files:
                return
            name = self.random.choice(files)
            # From here on until it is answered nobody knows.
            del self.ledger.files[name]
        status, _ = self.ask("DELETE", f"/v1/files/{name}")
        self.expect(status == 204 or self.files_expire,
                    f"deleting a file was answered with {status}")
        with self.ledger.lock:
            self.ledger.files[name] = None

    def push(self):
        self.serial += 1
        version = f"{self.prefix}.{self.serial}"
        with self.ledger.lock:
            self.ledger.skills[version] = None
        status, _ = self.ask("POST", "/v1/skills",
                             checked.skill_tar("pushed", version, self.random.randrange(50000)),
                             kind="application/octet-stream")
        self.expect(status == 201, f"a push was answered with {status}")
        with self.ledger.lock:
            self.ledger.skills[version] = True

    def delete_skill(self):
        with self.ledger.lock:
            mine = [v for v, there in self.ledger.skills.items()
                    if there and v.startswith(f"{self.prefix}.")]
            if not mine:
                return
            version = self.random.choice(mine)
            self.ledger.skills[version] = None
        status, _ = self.ask("DELETE", f"/v1/skills/pushed/{version}")
        self.expect(status == 204, f"deleting a skill was answered with {status}")
        with self.ledger.lock:
            self.ledger.skills[version] = False


def check_executions(failures, daemon, store, ledger):
    rows = {row[0]: row[1:] for row in store.query(
        "SELECT id, status, finished_ns, result, idempotency_key FROM executions")}
    for identity, answer in ledger.executions.items():
        failures.unless(identity in rows, f"{identity} was acknowledged and is not there")
        status, text = checked.request(daemon.socket, "GET", f"/v1/executions/{identity}")
        failures.unless(status == 200, f"{identity} is answered with {status}")
        if status != 200:
            continue
        now = json.loads(text)
        failures.unless(now["status"] in checked.ENDED, f"{identity} reads as {now['status']}")
        failures.unless((now["error"] is None) == (now["status"] == "success"),
                        f"{identity} is {now['status']} with the reason {now['error']}")
        if answer is not None:
            for field in answer:
                failures.unless(field == "files_url" or answer[field] == now[field],
                                f"{identity}: {field} was answered otherwise than it is stored")
        if now["files_list"]:
            status, _ = checked.request(daemon.socket, "GET", f"/v1/executions/{identity}/files")
            failures.unless(status == 200, f"the files of {identity}: {status}")
    for key, identities in ledger.keys.items():
        failures.unless(len(identities) == 1, f"{key} began {sorted(identities)}")
        owners = [identity for identity, row in rows.items() if row[3] == key]
        failures.unless(owners == sorted(identities), f"{key} is of {owners}")
    failures.unless(all(row[1] for row in rows.values()), "an execution has not ended")
    return rows


def check_files_and_skills(failures, daemon, ledger):
    for name, digest in ledger.files.items():
        status, content = checked.request(daemon.socket, "GET", f"/v1/files/{name}/download")
        failures.unless(status == (200 if digest else 404), f"{name} is answered with {status}")
        if digest and status == 200:
            failures.unless(hashlib.sha256(content).hexdigest() == digest, f"{name} has changed")
    for version, there in ledger.skills.items():
        status, _ = checked.request(daemon.socket, "GET", f"/v1/skills/pushed/{version}")
        if there is not None:
            failures.unless(status == (200 if there else 404),
                            f"skill {version} is answered with {status}")


def check_counters(failures, daemon, store):
    """A daemon that was just started ends some more, and counts them as they are stored."""
    before = store.statuses()
    for kind in KINDS * 3:
        checked.request(daemon.socket, "POST", "/v1/executions",
                        {"skill": "demo", "env": {"FAKE": kind, "FAKE_DATA": "1"}})
    after = store.statuses()
    rows = {status: count - before.get(status, 0) for status, count in after.items()
            if count > before.get(status, 0)}
    counted = checked.counters(daemon.socket)
    failures.unless(rows == counted, f"rows {rows}, counters {counted}")


def kill_while_it_starts(daemon, after):
    """So that what a start does is cut short too: recovery, sweep, the first pass of retention."""
    daemon.stop(signal.SIGKILL)

    def kill():
        daemon.process.kill()

    before = daemon.process
    timer = threading.Timer(after, lambda: daemon.process is not before and kill())
    timer.start()
    try:
        daemon.start()
    except RuntimeError:
        pass
    timer.join()
    if daemon.process.poll() is None:
        daemon.stop(signal.SIGKILL)
    daemon.start()


def kill_under_load(failures, daemon, ledger, chance, options, kills):
    """How long each start took."""
    stop = threading.Event()
    clients = [Client(i, chance.randrange(10**9), daemon, ledger, stop) for i in range(options.clients)]
    restarts = []
    for client in clients:
        client.start()
    try:
        for _ in range(kills):
            if chance.random() < 0.8:
                time.sleep(chance.uniform(0.02, 0.8))
                daemon.stop(signal.SIGKILL)
                begin = time.monotonic()
                daemon.start()
                restarts.append(time.monotonic() - begin)
            else:
                kill_while_it_starts(daemon, chance.uniform(0, 0.06))
    finally:
        stop.set()
        for client in clients:
            client.join()
    for problem in [problem for client in clients for problem in client.problems]:
        failures.unless(False, problem)
    return restarts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    failures = checked.Failures()
    ledger = Ledger()
    daemon = stand_in.Daemon("--max-running", "4", "--max-queued", "16")
    store = checked.Store(daemon.dir / "data")
    status, _ = checked.request(daemon.socket, "POST", "/v1/skills",
                                checked.skill_tar("demo", "1"), kind="application/octet-stream")
    assert status == 201
    start = time.monotonic()
    late = options.kills // 3
    restarts = kill_under_load(failures, daemon, ledger, chance, options, options.kills - late)
    daemon.stop(signal.SIGKILL)
    daemon.start()
    rows = check_executions(failures, daemon, store, ledger)
    check_files_and_skills(failures, daemon, ledger)
    check_counters(failures, daemon, store)
    failures.unless(daemon.stop() == 0, "the daemon did not stop well")
    store.check(failures)

    os.environ.update(SKILLVM_RETENTION_EXECUTIONS_BYTES="200KiB", SKILLVM_RETENTION_INTERVAL="100ms",
                      SKILLVM_RETENTION_FILES_AGE="200ms")
    daemon.start()
    restarts += kill_under_load(failures, daemon, Ledger(), chance, options, late)
    failures.unless(daemon.stop() == 0, "the daemon did not stop well")
    daemon.start()
    failures.unless(daemon.stop() == 0, "the daemon did not stop well")
    store.check(failures)
    lost = sum("the daemon stopped" in (row[2] or "") for row in rows.values())
    print(f"{options.kills} kills in {time.monotonic() - start:.1f} s, restart at most "
          f"{max(restarts or [0]) * 1000:.0f} ms; {len(ledger.executions)} acknowledged executions of "
          f"{len(rows)} rows, {lost} ended by a kill, {len(ledger.keys)} keys, "
          f"{len(ledger.files)} files, {len(ledger.skills)} skills, {ledger.refused} refused, "
          f"{ledger.unanswered} unanswered")
    result = failures.report()
    if result == 0:
        daemon.close()
    else:
        print(f"the data folder is left in {daemon.dir}")
    return result


if __name__ == "__main__":
    sys.exit(main())
