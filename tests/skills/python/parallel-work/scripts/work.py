#!/usr/bin/env python3
"""The same count in several ways; see SKILL.md."""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import queue
import subprocess
import threading
from multiprocessing import shared_memory

from primes import count

RANGES = [(n, n + 250) for n in range(0, 1000, 250)]


def add_to(total, lock, bounds, asked):
    found = count(bounds)
    with lock:
        total.value += found
    asked.put((os.getpid(), found))


def by_hand(processes):
    context = multiprocessing.get_context("fork")
    total, lock, asked = context.Value("i", 0, lock=False), context.Lock(), context.Queue()
    workers = [context.Process(target=add_to, args=(total, lock, bounds, asked)) for bounds in RANGES]
    for worker in workers:
        worker.start()
    answers = [asked.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert all(worker.exitcode == 0 for worker in workers)
    assert len({pid for pid, _ in answers}) == len(RANGES)
    return total.value


def fill(name, at):
    block = shared_memory.SharedMemory(name)
    block.buf[at] = at + 1
    block.close()


def by_shared_memory(processes):
    block = shared_memory.SharedMemory(create=True, size=8)
    try:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            pool.starmap(fill, [(block.name, i) for i in range(8)])
        return sum(block.buf[:8])
    finally:
        block.close()
        block.unlink()


def by_threads(threads):
    todo, done = queue.Queue(), []

    def worker():
        while (bounds := todo.get()) is not None:
            done.append(count(bounds))

    workers = [threading.Thread(target=worker) for _ in range(threads)]
    for w in workers:
        w.start()
    for bounds in [*RANGES, *[None] * threads]:
        todo.put(bounds)
    for w in workers:
        w.join()
    return sum(done)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    args = parser.parse_args()
    found = {"alone": count((0, 1000))}
    with multiprocessing.get_context("fork").Pool(args.processes) as pool:
        found["pool, fork"] = sum(pool.imap_unordered(count, RANGES))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found["pool, spawn"] = sum(pool.map(count, RANGES))
    with concurrent.futures.ProcessPoolExecutor(args.processes) as pool:
        found["executor, processes"] = sum(pool.map(count, RANGES))
    with concurrent.futures.ThreadPoolExecutor(args.threads) as pool:
        found["executor, threads"] = sum(pool.map(count, RANGES))
    found["processes"] = by_hand(args.processes)
    found["threads"] = by_threads(args.threads)
    lines = subprocess.run(
        "seq 8 | xargs -P 4 -I{} sh -c 'echo $(({} * {}))' | sort -n | tail -n 1",
        shell=True, capture_output=True, text=True, check=True,
    ).stdout
    print(json.dumps({"found": found, "shared": by_shared_memory(args.processes), "jobs": int(lines)}))


if __name__ == "__main__":
    main()
