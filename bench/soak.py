# SPDX-License-Identifier: Apache-2.0
"""Many executions through one daemon, and batch by batch what a leak would show in. Exit 0 when
nothing failed, grew or was left behind.

    soak.py PLAN N        PLAN: as for inside.py
"""

import json
import shutil
import sys

from inside import Bench, summary

BATCH = 100
FDS_OF_MACHINE = 4


def soak(bench, daemon, n):
    done = failed = 0
    first = None
    while done < n:
        printed, _ = bench.execute(daemon, {"skill": "hello"}, BATCH)
        if not printed:
            raise RuntimeError("a batch gave no figures")
        done, failed = done + BATCH, failed + printed["failed"]
        daemon.settle()
        now = {"rss_kib": daemon.resident_kib(), "fds": daemon.descriptors(),
               "vmms": len(daemon.machines()), "tmp_files": len(list((daemon.data / "tmp").iterdir()))}
        # The first batch warms allocators and caches up.
        first = first or now
        times = summary([s["ms"] for s in printed["samples"]])
        print(f"done={done} failed={failed}", *(f"{k}={v}" for k, v in now.items()),
              f"p50_ms={times['p50']:.0f} max_ms={times['max']:.0f}", flush=True)
    print(f"soak: {done} executions, {failed} failed; RSS {first['rss_kib']} to {now['rss_kib']} KiB, "
          f"descriptors {first['fds']} to {now['fds']}, machines {first['vmms']} to {now['vmms']}, "
          f"{now['tmp_files']} temporary files left")
    # A machine that waits for executions has descriptors of the daemon's.
    machines = max(0, now["vmms"] - first["vmms"])
    return (failed == 0 and now["tmp_files"] == 0
            and now["fds"] <= first["fds"] + 2 + FDS_OF_MACHINE * machines
            and now["rss_kib"] <= first["rss_kib"] * 5 // 4 + 2048)


def main():
    bench = Bench(json.loads(sys.argv[1]))
    try:
        with bench.daemon("soak", {}) as daemon:
            bench.push(daemon)
            good = soak(bench, daemon, int(sys.argv[2]))
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)
    sys.exit(0 if good else 1)


main()
