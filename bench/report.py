# SPDX-License-Identifier: Apache-2.0
"""Prints the results of bench/run.sh (one JSON object a line on standard input) as tables."""
import json
import sys

COLUMNS = ("p50", "p90", "p99", "max")


def row(name, series):
    print(f"  {name:<24}" + "".join(f"{series[c]:>10.2f}" for c in COLUMNS))


for line in sys.stdin:
    entry = json.loads(line)
    times, counts = entry["result"]["times"], entry["result"]["counts"]
    print(f"\n{entry['mode']}: {times['cycle_ms']['n']} executions, {times['failed']} failed (ms)")
    print(f"  {'':<24}" + "".join(f"{c:>10}" for c in COLUMNS))
    row("skill, whole cycle", times["cycle_ms"])
    for name, series in times["phases_ms"].items():
        row("  " + name, series)
    row("  daemon, queue included", times["daemon_ms"])
    for name, series in times["peers_ms"].items():
        row(name, series)
    python = times["peers_ms"]["python3"]["p50"]
    if python:
        print(f"  skill / python3, p50: {times['cycle_ms']['p50'] / python:.2f}")
    machine = entry["result"]["machine"]
    for name in ("boot", "restore"):
        if machine:
            ms = machine[f"{name}_ms"]
            print(
                f"  {name}: guest entered after {ms['resumed']:.2f} ms, its init reached"
                f" {ms['connected'] - ms['resumed']:.2f} ms later, READY"
                f" {ms['ready'] - ms['resumed']:.2f} ms later"
            )
    if machine:
        print("  bytes: " + ", ".join(f"{k} {v:,}" for k, v in machine["bytes"].items()))
    if counts:
        print(
            f"  one execution: {counts['exits']} exits ({counts['nested_page_faults']} nested page"
            f" faults), VMM: {counts['vmm_syscalls']} system calls, {counts['vmm_page_faults']}"
            " page faults"
        )
        top = sorted(counts["exits_by_code"].items(), key=lambda item: -item[1])[:8]
        print("  exits by SVM code: " + ", ".join(f"{code} {n}" for code, n in top))
