# SPDX-License-Identifier: Apache-2.0
"""Finds counts that grew from one document of results to another.

Only counting hosts are compared: their clock counts instructions, so that one run is like the
next, where times and the exits that timers cause are not.
"""

GREW = 1.02  # by 2 % or more
# A figure this small is one event more or less.
LEAST = 20


def serial(host):
    """(name, row) of the executions of one client."""
    for row in host.get("executions", []):
        # Several clients at once share one processor: how their work interleaves is chance.
        if row["clients"] == 1:
            yield f"{row['skill']}, {row['machine']}", row


def figures(host):
    """Name -> value of every figure of a host that must not grow."""
    out = {}
    for name, row in serial(host):
        if row["response_ms"]:
            out[f"{name}: response, instructions"] = round(row["response_ms"]["p50"] * 1e6)
        if row["daemon_ms"]:
            out[f"{name}: the daemon's share, instructions"] = round(row["daemon_ms"]["p50"] * 1e6)
        if row["cycle_ms"] is not None:
            out[f"{name}: whole cycle, instructions"] = round(row["cycle_ms"] * 1e6)
    for row in host.get("counts", []):
        for count, value in (row["median"] or {}).items():
            out[f"{row['skill']}, {row['machine']}: {count.replace('_', ' ')}"] = value
    for step, value in host.get("machine_alone", {}).get("boot_ms", {}).items():
        out[f"boot, {step}: instructions"] = round(value * 1e6)
    return out


def compare(old, new):
    """Lines about what grew, or is not there any more; none: all is well."""
    before = {host["name"]: figures(host) for host in old["hosts"] if host["kind"] == "counting"}
    after = {host["name"]: figures(host) for host in new["hosts"] if host["kind"] == "counting"}
    if not before.keys() & after.keys():
        return ["nothing to compare: the two have no counting host in common"]
    lines = []
    for name in before.keys() & after.keys():
        for figure, was in before[name].items():
            now = after[name].get(figure)
            if now is None:
                lines.append(f"{name}: {figure}: was {was:,}, is not there any more")
            elif now >= was * GREW and now - was >= LEAST:
                share = f" ({(now / was - 1) * 100:+.1f} %)" if was else ""
                lines.append(f"{name}: {figure}: {was:,} to {now:,}{share}")
    return lines
