# SPDX-License-Identifier: Apache-2.0
"""A fleet in which executions come, are placed, wait and run, event by event. One seed gives one
result. Times are seconds.

What a step costs is measured (class Costs); what comes and how long it works is made up (class
World and arrivals), or was recorded.
"""

import csv
import heapq
import itertools
import random
from collections import OrderedDict, deque
from dataclasses import dataclass


@dataclass
class Costs:
    hop_ms: float = 1.0          # a request to a node at another server, and its reply
    ack_ms: float = 0.54         # a publish with acknowledgement, three replicas
    warm_ms: float = 21.5        # a machine from the snapshot that has the skill's imports
    cold_ms: float = 176.6       # from the plain one, imports included
    entry_s: float = 3.0         # a node says how it is
    lease_s: float = 9.0         # and is believed without for so long
    timeout_s: float = 0.25      # who does not answer is given up for this request
    detect_s: float = 6.0        # after which a server knows that a client has gone


@dataclass
class World:
    nodes: int
    pattern: str
    seconds: float = 30.0
    slots: int = 8
    kept: int = 16               # snapshots of a node
    tenants: int = 50
    skills: int = 300            # by Zipf, each of one tenant
    work_s: float = 1.0          # of an execution, exponential
    queue_max: int = 20          # of a tenant at a node
    again_s: float = 0.05        # a node whose queue is not empty asks the others
    rack: float = 0.1            # of the nodes, where one is lost
    seed: int = 1
    recorded: tuple = ()         # (second, tenant, skill, work), all that comes in "recorded"


FLOODING = 0
PATTERNS = ("steady", "bursts", "flood", "rack")


def load_at(pattern, share):
    """What the tenants ask for, of all slots, at a share of the time; the flood is apart."""
    if pattern == "bursts":  # three of them
        return 1.5 if share * 3 % 1 > 0.8 else 0.5
    return 0.5 if pattern == "flood" else 0.7


RECORDED = "recorded"


def record(lines):
    """What recorded lines say, as (second, tenant, skill, work) in their order, the first at 0, with
    numbers for names. Each is CSV: second, tenant, skill, seconds of work."""
    rows, tenants, skills = [], {}, {}
    for number, row in enumerate(csv.reader(lines), 1):
        try:
            at, tenant, skill, work = row
            found = (float(at), float(work))
        except ValueError:
            raise ValueError(f"line {number}: not second, tenant, skill, seconds of work") from None
        if not (abs(found[0]) < float("inf") and 0 <= found[1] < float("inf")):
            raise ValueError(f"line {number}: no such time")
        rows.append((found[0], tenants.setdefault(tenant, len(tenants)),
                     skills.setdefault((tenant, skill), len(skills)), found[1]))
    rows.sort()
    return tuple((at - rows[0][0], *rest) for at, *rest in rows)


def recorded_world(nodes, recorded, seed=1):
    """The world in which that comes."""
    return World(nodes, RECORDED, seconds=max(recorded[-1][0], 1.0), seed=seed, recorded=recorded,
                 skills=1 + max(skill for _, _, skill, _ in recorded))


def arrivals(world, rng):
    """(time, tenant, skill, work) in their order."""
    if world.pattern == RECORDED:
        yield from world.recorded
        return
    per_s = world.nodes * world.slots / world.work_s
    weights = list(itertools.accumulate(1 / (i + 1) for i in range(world.skills)))
    at = 0.0
    while at < world.seconds:
        flood = 1.5 if world.pattern == "flood" and at > world.seconds / 5 else 0.0
        load = load_at(world.pattern, at / world.seconds)
        at += rng.expovariate(per_s * (load + flood))
        if rng.random() * (load + flood) < flood:
            skill = FLOODING
        else:
            skill = rng.choices(range(world.skills), cum_weights=weights)[0]
        yield at, skill % world.tenants, skill, rng.expovariate(1 / world.work_s)


class Among:
    """A set of which a random member is taken at once."""

    def __init__(self, items=()):
        self.items, self.places = [], {}
        for item in items:
            self.add(item)

    def __len__(self):
        return len(self.items)

    def add(self, item):
        if item not in self.places:
            self.places[item] = len(self.items)
            self.items.append(item)

    def remove(self, item):
        place = self.places.pop(item, None)
        if place is None:
            return
        last = self.items.pop()
        if last != item:
            self.items[place] = last
            self.places[last] = place

    def any(self, rng):
        return self.items[int(rng.random() * len(self.items))]


class Fair:
    """Tenants in turn, each with its own in their order."""

    def __init__(self, most):
        self.most, self.turns, self.size = most, OrderedDict(), 0

    def push(self, job, first=False):
        mine = self.turns.setdefault(job.tenant, deque())
        if len(mine) >= self.most and not first:
            return False
        (mine.appendleft if first else mine.append)(job)
        self.size += 1
        return True

    def pop(self):
        tenant, mine = next(iter(self.turns.items()))
        job = mine.popleft()
        self.size -= 1
        del self.turns[tenant]
        if mine:
            self.turns[tenant] = mine
        return job


class Job:
    __slots__ = ("came", "tenant", "skill", "work", "home", "tries", "forwarded", "queued")

    def __init__(self, came, tenant, skill, work):
        self.came, self.tenant, self.skill, self.work = came, tenant, skill, work
        self.home, self.tries, self.forwarded, self.queued = None, 0, False, False


class Node:
    __slots__ = ("index", "free", "warm", "queue", "alive", "asks", "said_free", "said_warm")

    def __init__(self, index, world):
        self.index, self.free, self.alive = index, world.slots, True
        self.warm, self.queue, self.asks = OrderedDict(), Fair(world.queue_max), False
        self.said_free, self.said_warm = world.slots, frozenset()


class Fleet:
    """Here if a slot is free, else the queue group: a random member with room."""

    name = "group"
    TRIES = 3

    def __init__(self, world, costs):
        self.world, self.costs, self.rng = world, costs, random.Random(world.seed)
        self.events, self.order = [], itertools.count()
        self.nodes = [Node(i, world) for i in range(world.nodes)]
        self.room = Among(range(world.nodes))   # as the servers know it
        self.said = Among(range(world.nodes))   # as the nodes' entries say
        self.alive = Among(range(world.nodes))  # as who sends executions knows it
        self.rows, self.refused, self.lost, self.messages = [], [], 0, 0

    def later(self, at, what, *args):
        heapq.heappush(self.events, (at, next(self.order), what, args))

    def run(self):
        world = self.world
        coming = arrivals(world, random.Random(world.seed + 1))
        for node in self.nodes:
            self.later(self.rng.random() * self.costs.entry_s, self.entry, node)
        if world.pattern == "rack":
            self.later(world.seconds / 2, self.lose_rack)
        self.next_arrival(coming)
        while self.events:
            at, _, what, args = heapq.heappop(self.events)
            what(at, *args)
        return self

    def next_arrival(self, coming):
        found = next(coming, None)
        if found:
            self.later(found[0], self.arrive, Job(*found), coming)

    def arrive(self, at, job, coming):
        self.next_arrival(coming)
        self.accept(at, job)

    def accept(self, at, job):
        """At a node that the caller takes for alive."""
        node = self.nodes[self.alive.any(self.rng)]
        if not node.alive:
            self.later(at + 1.0, self.accept, job)
            return
        job.home = node
        self.place(at + self.costs.ack_ms / 1e3, job)

    def place(self, at, job):
        node = job.home
        if node.free > 0 and node.queue.size == 0:
            self.begin(at, node, job)
        else:
            self.forward(at, job)

    def pick(self, job):
        return self.nodes[self.room.any(self.rng)] if len(self.room) else None

    def forward(self, at, job):
        node = self.pick(job) if job.tries < self.TRIES else None
        if node is None or node is job.home:
            self.wait(at, job)
            return
        job.tries += 1
        self.messages += 2
        self.later(at + self.costs.hop_ms / 2e3, self.offered, node, job)

    def offered(self, at, node, job):
        half = self.costs.hop_ms / 2e3
        if not node.alive:
            self.later(at - half + self.costs.timeout_s, self.forward, job)
        elif node.free > 0 and node.queue.size == 0:
            job.forwarded = True
            self.begin(at, node, job)
        else:
            self.later(at + half, self.forward, job)

    def wait(self, at, job):
        node = job.home
        if not node.alive:
            self.accept(at, job)
            return
        if node.free > 0 and node.queue.size == 0:
            self.begin(at, node, job)
            return
        # What was in it before, and found no room elsewhere, is the first again.
        if not node.queue.push(job, first=job.queued):
            self.refused.append(job.tenant)
            return
        job.queued = True
        if not node.asks:
            node.asks = True
            self.later(at + self.world.again_s, self.ask_again, node)

    def ask_again(self, at, node):
        """What waits here longest goes where there is room by now."""
        node.asks = False
        if not node.alive or node.queue.size == 0:
            return
        node.asks = True
        self.later(at + self.world.again_s, self.ask_again, node)
        if len(self.room):
            job = node.queue.pop()
            job.tries = 0
            self.forward(at, job)

    def begin(self, at, node, job):
        node.free -= 1
        if node.free == 0:
            self.room.remove(node.index)
        is_warm = job.skill in node.warm
        node.warm[job.skill] = True
        node.warm.move_to_end(job.skill)
        if len(node.warm) > self.world.kept:
            node.warm.popitem(last=False)
        runs = at + (self.costs.warm_ms if is_warm else self.costs.cold_ms) / 1e3
        self.later(runs + job.work, self.end, node, job, (runs - job.came, is_warm))

    def end(self, at, node, job, row):
        if not node.alive:
            self.lost += 1
            return
        self.rows.append((job.tenant, job.came, *row, job.forwarded))
        node.free += 1
        self.freed(at, node)

    def freed(self, at, node):
        if node.queue.size:
            self.begin(at, node, node.queue.pop())
        else:
            self.room.add(node.index)

    def entry(self, at, node):
        """Every three seconds what a node says of itself becomes what others know."""
        if not node.alive:
            return
        node.said_free, node.said_warm = node.free, frozenset(node.warm)
        (self.said.add if node.free > 0 and not node.queue.size else self.said.remove)(node.index)
        if at < self.world.seconds:
            self.later(at + self.costs.entry_s, self.entry, node)

    def lose_rack(self, at):
        for node in self.nodes[:max(1, int(self.world.nodes * self.world.rack))]:
            node.alive = False
            self.later(at + self.costs.detect_s, self.notice, node, self.room)
            self.later(at + self.costs.detect_s, self.notice, node, self.alive)
            self.later(at + self.costs.lease_s, self.notice, node, self.said)
            while node.queue.size:
                # Accepted, not started: delivered again once it was noticed.
                self.later(at + self.costs.detect_s, self.accept, node.queue.pop())

    def notice(self, at, node, among):
        among.remove(node.index)


class BestOfTwo(Fleet):
    """Here if a slot is free, else the better of two that said they have room: with the snapshot,
    then with more free slots; at last the queue group."""

    name = "two"

    def pick(self, job):
        if job.tries == self.TRIES - 1 or len(self.said) == 0:
            return super().pick(job)
        two = [self.nodes[self.said.any(self.rng)] for _ in range(2)]
        return max(two, key=lambda n: (job.skill in n.said_warm, n.said_free))


class Warm(Fleet):
    """Here if a slot is free and the snapshot is here; else a node that said it has both; else here
    if a slot is free, else the queue group."""

    name = "warm"

    def __init__(self, world, costs):
        super().__init__(world, costs)
        self.have = [Among() for _ in range(world.skills)]  # nodes with room, as their entries say

    def place(self, at, job):
        if job.skill in job.home.warm:
            super().place(at, job)
        else:
            self.forward(at, job)

    def pick(self, job):
        if job.tries == 0 and len(self.have[job.skill]):
            return self.nodes[self.have[job.skill].any(self.rng)]
        # Nobody has it, or who had has no room any more.
        if job.home.alive and job.home.free > 0 and job.home.queue.size == 0:
            return job.home
        return super().pick(job)

    def entry(self, at, node):
        self.forget(node)
        super().entry(at, node)
        if node.alive and node.index in self.said.places:
            for skill in node.said_warm:
                self.have[skill].add(node.index)

    def forget(self, node):
        for skill in node.said_warm:
            self.have[skill].remove(node.index)

    def notice(self, at, node, among):
        super().notice(at, node, among)
        if among is self.said:
            self.forget(node)


class Central(Fleet):
    """One queue that knows everything at once: a bound, which no fleet is."""

    name = "central"

    def __init__(self, world, costs):
        super().__init__(world, costs)
        self.queue = Fair(world.queue_max * world.nodes)

    def place(self, at, job):
        if len(self.room) and self.queue.size == 0:
            self.send(at, job)
        elif not self.queue.push(job):
            self.refused.append(job.tenant)

    def send(self, at, job):
        # Of twenty with room one that has the snapshot, if any has.
        found = [self.nodes[self.room.any(self.rng)] for _ in range(20)]
        node = next((n for n in found if job.skill in n.warm), found[0])
        self.messages += 2
        job.forwarded = True
        self.begin(at + self.costs.hop_ms / 1e3, node, job)

    def freed(self, at, node):
        self.room.add(node.index)
        if self.queue.size:
            self.send(at, self.queue.pop())

    def lose_rack(self, at):
        super().lose_rack(at)
        for node in self.nodes:
            if not node.alive:
                self.room.remove(node.index)
                self.alive.remove(node.index)


PLACEMENTS = (Fleet, BestOfTwo, Warm, Central)
