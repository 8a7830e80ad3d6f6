# SPDX-License-Identifier: Apache-2.0
"""What skillvm promises of its speed, held against what a counting host measured.

Each is a ratio of two medians of the same host, or their difference; one whose figures were not measured says nothing.
"""

from compare import serial

# (what, figure, at most this share of, that figure)
PROMISES = (
    ("a hello on a machine that is used again answers", "hello, reused: response",
     1 / 8, "python3 -c pass"),
    ("Node's hello answers", "hello-node, reused: response", 0.5, "node -e 0"),
    ("a skill that uses pandas answers, from the snapshot of its profile",
     "pandas, reused: response", 1.5, "hello, reused: whole cycle"),
)
# (what, figure, at most so many million instructions more than, that figure)
COSTS = (
    ("the jail costs a fresh start", "hello, fresh: response", 1, "hello, fresh, no jail: response"),
    ("the jail costs it, with what goes on behind the answer,", "hello, fresh: whole cycle", 1,
     "hello, fresh, no jail: whole cycle"),
    ("the jail costs a run on a machine that is used again", "hello, reused: response", 0.1,
     "hello, reused, no jail: response"),
)


def figures(host):
    """Name -> median of what one client at a time saw."""
    out = {row["name"]: row["time_ms"]["p50"] for row in host.get("peers", []) if row["time_ms"]}
    for name, row in serial(host):
        if row["response_ms"]:
            out[f"{name}: response"] = row["response_ms"]["p50"]
        if row["cycle_ms"] is not None:
            out[f"{name}: whole cycle"] = row["cycle_ms"]
    return out


def hold(results):
    """Lines of what was held, and of what was not."""
    held, broken = [], []
    for host in results["hosts"]:
        found = figures(host) if host["kind"] == "counting" else {}
        for what, figure, most, of in PROMISES:
            if found.get(figure) is None or not found.get(of):
                continue
            share = found[figure] / found[of]
            line = f"{host['name']}: {what} in {share:.3f} of {of}; {most:.3f} is promised"
            (held if share <= most else broken).append(line)
        for what, figure, most, without in COSTS:
            if found.get(figure) is None or found.get(without) is None:
                continue
            cost = found[figure] - found[without]
            line = f"{host['name']}: {what} {cost:.3f} million instructions; {most} is promised"
            (held if cost <= most else broken).append(line)
    return held, broken
