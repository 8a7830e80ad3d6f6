# SPDX-License-Identifier: Apache-2.0
"""Simulates how a fleet places executions: 10, 100 and 1,000 nodes, four patterns of arrivals, four
placements. What steps cost is measured, what comes is made up, or was recorded; one seed gives one
result.

Writes one JSON object a line (simulated.jsonl), the same as tables (simulated.md) and plots into a
folder, and prints the tables.

    python3 -B bench/fleet/simulate.py [--measured FILE] [--arrivals FILE] [--nodes N]… [--seed N]
                                       [--output DIR]

A file of arrivals has a line of CSV for each execution: second, tenant, skill, seconds of work.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from placement import (  # noqa: E402
    FLOODING, PATTERNS, PLACEMENTS, Costs, World, record, recorded_world)
from report import block, head, number, table  # noqa: E402

SCHEMA = "skillvm-simulation-fleet/1"
NODES = (10, 100, 1000)
SERVERS = 3
RECORDS = 2         # of an execution in a stream: accepted, ended
AT_THE_LEADER = 6   # messages of a record there: in, acknowledged, to two others and back
NAMES = {"group": "here, else the queue group", "two": "here, else the better of two",
         "warm": "who has the snapshot first (what nodes do)",
         "central": "one central queue (a bound)"}


def measured_costs(path):
    """Those of the lines of measure.py; what they do not have stays."""
    costs = Costs()
    if not path:
        return costs
    for row in map(json.loads, path.read_text().splitlines()):
        if row["part"] == "hop":
            costs = replace(costs, hop_ms=row["ms"]["p50"])
        if row["part"] == "stream" and (row["replicas"], row["bytes"], row["in_flight"]) == (3, 1024, 1):
            costs = replace(costs, ack_ms=row["ms"]["p50"])
    return costs


def quantiles(values):
    ordered = sorted(values)
    if not ordered:
        return None
    return {f"p{p}": round(1e3 * ordered[min(int(p / 100 * len(ordered)), len(ordered) - 1)], 2)
            for p in (50, 90, 99)}


def messages(nodes, executions_s, forwards_s, entry_s):
    """Messages a second at the busiest of the servers, which leads all streams, by what they are."""
    # A request and its reply each come into a server and go out of one, and two thirds of them
    # pass from one to another.
    touches = 2 * 2 * (1 + 2 / 3) / SERVERS
    return {"executions": RECORDS * AT_THE_LEADER * executions_s, "forwards": touches * forwards_s,
            "entries": AT_THE_LEADER * nodes / entry_s + nodes * nodes / entry_s / SERVERS,
            "followed": RECORDS * executions_s * nodes / SERVERS}


def figures(fleet):
    """A row of one run. Waiting is from when a caller sent it until the skill's own code runs."""
    world, rows = fleet.world, fleet.rows
    others = [row for row in rows if row[0] != FLOODING] if world.pattern == "flood" else rows
    refused = sum(t != FLOODING for t in fleet.refused) if world.pattern == "flood" else len(fleet.refused)
    # The flood begins after a fifth of the time.
    after = others if others is rows else [row for row in others if row[1] > world.seconds / 5]
    return {"schema": SCHEMA, "placement": fleet.name, "pattern": world.pattern, "nodes": world.nodes,
            "executions": len(rows), "wait_ms": quantiles(row[2] for row in rows),
            "others_wait_ms": quantiles(row[2] for row in after),
            "warm_share": round(sum(row[3] for row in rows) / len(rows), 3),
            "forwarded_share": round(sum(row[4] for row in rows) / len(rows), 3),
            "refused": len(fleet.refused), "others_refused": refused, "lost": fleet.lost,
            "messages_per_second": {
                name: round(value) for name, value in
                messages(world.nodes, len(rows) / world.seconds,
                         fleet.messages / 2 / world.seconds, fleet.costs.entry_s).items()}}


def worlds(options, nodes):
    """What is to be run for so many nodes: all patterns, or what was recorded."""
    if options.arrivals:
        return [recorded_world(nodes, options.arrivals, options.seed)]
    return [World(nodes, pattern, seconds=options.seconds, seed=options.seed) for pattern in PATTERNS]


def simulate(options, costs, out):
    rows = []
    for nodes in options.nodes or NODES:
        for world in worlds(options, nodes):
            for placement in PLACEMENTS:
                began = time.monotonic()
                row = figures(placement(world, costs).run())
                rows.append(row)
                out.write(json.dumps(row) + "\n")
                print(f"fleet: {nodes} nodes, {world.pattern}, {placement.name}: "
                      f"{time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return rows


def wait(summary):
    return "/".join(number(summary[p]) for p in ("p50", "p90", "p99")) if summary else "–"


def patterns_of(rows):
    return list(dict.fromkeys(row["pattern"] for row in rows))


def markdown(rows):
    lines = []
    for pattern in patterns_of(rows):
        mine = [row for row in rows if row["pattern"] == pattern]
        heads = ["", "nodes", "wait, ms (p50/p90/p99)", "warm", "forwarded", "messages a second",
                 "refused"]
        heads += {"flood": ["wait of the others", "of theirs refused"], "rack": ["lost"]}.get(pattern, [])
        lines += [f"{pattern}:", ""] + table(heads, [
            [NAMES[row["placement"]], f"{row['nodes']:,}", wait(row["wait_ms"]),
             f"{100 * row['warm_share']:.0f} %", f"{100 * row['forwarded_share']:.0f} %",
             f"{sum(n for name, n in row['messages_per_second'].items() if name != 'followed'):,}",
             f"{row['refused']:,}"]
            + {"flood": [wait(row["others_wait_ms"]), f"{row['others_refused']:,}"],
               "rack": [f"{row['lost']:,}"]}.get(pattern, []) for row in mine])
    return "\n".join(lines)


def plot_waits(rows, out):
    """Bars: median and 99th percentile of each pattern at the most nodes there are."""
    most = max(row["nodes"] for row in rows)
    places = [p.name for p in PLACEMENTS]
    by = {(row["pattern"], row["placement"]): row["others_wait_ms"] for row in rows
          if row["nodes"] == most}
    lines, title = [], f"Wait before a skill runs, {most:,} nodes (simulated)"
    for quantile in ("p50", "p99"):
        lines += block(quantile, [(pattern, *(by[pattern, place][quantile] for place in places))
                                  for pattern in patterns_of(rows)])
    lines += [*head(out, title), f'set multiplot layout 1,2 title "{title}" noenhanced',
              "set style data histogram", "set style histogram clustered gap 1",
              "set style fill solid 0.85 noborder", "set logscale y", "set yrange [10:300000]",
              'set key top left Left reverse samplen 1 font ",11"']
    for quantile, name in (("p50", "ms, median"), ("p99", "ms, 99th percentile")):
        lines += [f'set title "{name}"', "plot " + ", ".join(
            f'${quantile} using {i + 2}:xtic(1) title "{NAMES[place]}"'
            for i, place in enumerate(places))]
    return [*lines, "unset multiplot"]


def plot_messages(costs, out):
    """Lines: what the busiest server has to do for so many nodes, by what it is for."""
    world = World(1, "steady")
    kinds = {"executions": "executions, two records each",
             "entries": "what nodes say of themselves", "followed": "records, if every node follows all"}
    data = []
    for nodes in (3, 10, 30, 100, 300, 1000, 3000):
        found = messages(nodes, nodes * world.slots / world.work_s * 0.7, 0, costs.entry_s)
        data.append((nodes, *(found[kind] for kind in kinds)))
    return [*block("messages", data),
            *head(out, "Messages a second at the busiest of three servers (calculated)"),
            "set logscale xy", 'set xlabel "nodes"', "set key top left", "plot " + ", ".join(
                f'$messages using 1:{i + 2} with linespoints lw 2 pt 7 title "{title}"'
                for i, title in enumerate(kinds.values()))]


def plots(rows, costs, folder):
    for name, make, data in (("fleet-waits", plot_waits, (rows,)), ("fleet-messages", plot_messages, (costs,))):
        script = make(*data, folder / f"{name}.svg")
        subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def read_arrivals(path):
    with open(path, encoding="utf-8", newline="") as lines:
        found = record(lines)
    if not found:
        raise ValueError("there are no arrivals")
    return found


def arguments(words=None):
    parser = argparse.ArgumentParser(prog="simulate.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, metavar="FILE",
                        help="take costs from what measure.py wrote (default: those of docs/fleet.md)")
    parser.add_argument("--arrivals", type=Path, metavar="FILE",
                        help="what was recorded, in place of the patterns")
    parser.add_argument("--nodes", type=int, action="append", metavar="N",
                        help=f"so many nodes; may repeat (default {', '.join(map(str, NODES))})")
    parser.add_argument("--seconds", type=float, default=30, help="of arrivals (default 30)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-plots", action="store_true", help="draw nothing")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench-fleet",
                        metavar="DIR", help="where the results go (default build/bench-fleet)")
    options = parser.parse_args(words)
    if options.arrivals:
        try:
            options.arrivals = read_arrivals(options.arrivals)
        except (OSError, ValueError) as error:
            parser.error(f"--arrivals: {error}")
    return options


def main():
    options = arguments()
    costs = measured_costs(options.measured)
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / "simulated.jsonl", "w", encoding="utf-8") as out:
        out.write(json.dumps({"schema": SCHEMA, "seed": options.seed, "costs": asdict(costs)}) + "\n")
        rows = simulate(options, costs, out)
    text = markdown(rows)
    (options.output / "simulated.md").write_text(text)
    print(text)
    if not options.no_plots:
        plots(rows, costs, options.output)


if __name__ == "__main__":
    main()
