# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown tables, and as SVG plots by gnuplot."""

import subprocess

BASE = "python3 -c pass"
MIB = 1 << 20


def title(row):
    text = f"{row['skill']}, {row['machine']}"
    return text + (f", {row['clients']} at once" if row.get("clients", 1) > 1 else "")


def number(value):
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 100 else f"{value:.2f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|" + "|".join("---" if i == 0 else "---:" for i in range(len(head))) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def base_of(host):
    """The median of a bare python3, to which all is compared; None where it has none."""
    for row in host.get("peers", []):
        if row["name"] == BASE and row["time_ms"]:
            return row["time_ms"]["p50"]
    return None


def oneline(text):
    return " ".join(text.split()).replace("|", "\\|")


def times(host):
    base = base_of(host)

    def figures(summary, cycle):
        ratio = lambda value: number(value / base) if base and value is not None else "–"  # noqa: E731
        if not summary:
            return ["–"] * 7
        return [*(number(summary[p]) for p in ("p50", "p90", "p99")), ratio(summary["p50"]),
                number(cycle), ratio(cycle), str(summary["n"])]

    rows = []
    for row in host["executions"]:
        name = title(row) + (f" ({row['failed']} failed)" if row["failed"] else "")
        rows.append([name, *figures(row["response_ms"], row["cycle_ms"]), number(row["per_second"])])
    for row in host["peers"]:
        name = row["name"] if row["name"].startswith("python3") else f"{row['name']} {row['version']}"
        figure = figures(row["time_ms"], row["time_ms"] and row["time_ms"]["p50"])
        rows.append([name, *figure, "–"])
    return table([UNITS[host["kind"]], "p50", "p90", "p99", "of a python3", "whole cycle",
                  "of a python3", "runs", "a second"], rows)


UNITS = {"counting": "million instructions", "soft": "ms", "native": "ms"}


def phases(host):
    rows = [row for row in host["executions"] if row["phases_ms"] and row["clients"] == 1]
    names = list(dict.fromkeys(name for row in rows for name in row["phases_ms"]))
    if not rows:
        return []
    return ["Phases, medians:", ""] + table(
        [UNITS[host["kind"]], *names, "the daemon, waiting included"],
        [[title(row), *(number((row["phases_ms"].get(n) or {}).get("p50")) for n in names),
          number((row["daemon_ms"] or {}).get("p50"))] for row in rows])


def counts(host):
    rows = [row for row in host["counts"] if row["median"]]
    if not rows:
        return []
    names = list(rows[0]["median"])
    return ["Counts of one execution, with what goes on behind its answer:", ""] + table(
        ["", *(name.replace("_", " ") for name in names)],
        [[title(row), *(f"{row['median'][n]:,}" for n in names)] for row in rows])


def memory(host):
    rows = [[f"{row['state']} ({row['machines']})",
             *(number(row[k] / MIB) if row[k] is not None else "–"
               for k in ("private_bytes", "shared_bytes", "host_bytes"))]
            for row in host["density"]]
    return ["Memory of one machine:", ""] + table(
        ["MiB", "its own", "shared", "host's memory, by machine"], rows) if rows else []


def alone(host):
    machine = host["machine_alone"]
    rows = []
    for name in ("boot", "restore"):
        ms = machine[f"{name}_ms"]
        if ms:
            rows.append([name, *(number(ms.get(k)) for k in ("resumed", "connected", "ready"))])
    sizes = ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in machine["bytes"].items())
    return ["The machine without the daemon, from the start of its process:", ""] + table(
        [UNITS[host["kind"]], "guest entered", "its init reached", "READY"], rows) + [
        f"Bytes: {sizes}.", ""] if rows else []


def problems(host):
    found = [(title(row), row["problem"]) for row in [*host["executions"], *host["counts"]]]
    found += [(f"{row['name']} {row['version']}", row["problem"]) for row in host["peers"]]
    found.append(("the machine without the daemon", host["machine_alone"]["problem"]))
    lines = [f"- {name}: {oneline(text)}" for name, text in found if text]
    return ["What did not work:", "", *lines, ""] if lines else []


def markdown(document):
    lines = [f"Measured {document['date']} on {document['tree']}, {document['runs']} runs.", ""]
    for host in document["hosts"]:
        lines += [f"### {host['name']}", ""]
        if host["problem"]:
            lines += [f"Failed: {oneline(host['problem'])}", ""]
        if "executions" not in host:
            continue
        lines += [f"Linux {host['kernel']}, {host['cpus']} × {host['cpu']}.", ""]
        for part in (times, phases, counts, memory, alone, problems):
            lines += part(host)
    return "\n".join(lines)


# Plots. Their data goes to gnuplot as blocks, so that no other file is written.

def block(name, rows):
    def cell(value):
        return '"' + value.replace("\\", "").replace('"', "'") + '"' if isinstance(value, str) \
            else f"{value}"
    return [f"${name} << END", *(" ".join(map(cell, row)) for row in rows), "END"]


def head(out, what, height=420):
    return [f'set terminal svg size 860,{height} dynamic font "sans-serif,13" background "white"',
            f"set output '{out}'", f'set title "{what}" noenhanced', "set grid", "set key noenhanced"]


def plot_response(host, out):
    """Bars from short to long: what a caller waits for, of ours and of the peers."""
    ours = [(title(row), row["response_ms"]["p50"], 1) for row in host["executions"]
            if row["response_ms"] and row["clients"] == 1]
    theirs = [(row["name"], row["time_ms"]["p50"], 2) for row in host["peers"] if row["time_ms"]]
    bars = sorted(ours + theirs, key=lambda bar: bar[1])
    if not bars:
        return None
    rows = [(i, value, name, color, f"{number(value)}") for i, (name, value, color) in enumerate(bars)]
    low = min(bar[1] for bar in bars) / 3
    return [*block("bars", rows), *head(out, f"Response, medians ({host['name']})", 130 + 30 * len(bars)),
            "set logscale x", f'set xlabel "{UNITS[host["kind"]]}"', "unset key",
            f"set xrange [{low}:{bars[-1][1] * 3}]", f"set yrange [{len(bars) - 0.4}:-0.6]",
            "set style fill solid 0.85 noborder", "set ytics noenhanced", "set lmargin 36",
            f"plot $bars using ({low}):1:({low}):2:($1-0.35):($1+0.35):4:ytic(3) "
            "with boxxyerror lc variable, $bars using 2:1:5 with labels left offset 0.6,0 noenhanced"]


def plot_throughput(host, out):
    states = dict.fromkeys(row["machine"] for row in host["executions"])
    lines, parts = [], []
    for state in states:
        rows = [(row["clients"], row["per_second"]) for row in host["executions"]
                if row["machine"] == state and row["skill"] == "hello" and row["per_second"]]
        if len(rows) > 1:
            lines += block(state, sorted(rows))
            parts.append(f'${state} using 1:2 with linespoints lw 2 pt 7 title "{state}"')
    if not parts:
        return None
    return [*lines, *head(out, f"Executions a second ({host['name']})"), 'set xlabel "clients"',
            "set xtics (1, 2, 4, 8)", "set yrange [0:]", "set key outside",
            "plot " + ", ".join(parts)]


def plot_over_time(host, out):
    lines, parts = [], []
    for row in host["executions"]:
        if row["clients"] > 1 and row["over_time"]:
            name = f"{row['machine']}{row['clients']}"
            lines += block(name, [(100 * (i + 1) / len(row["over_time"]), p["per_second"])
                                   for i, p in enumerate(row["over_time"])])
            parts.append(f'${name} using 1:2 with steps lw 2 title "{title(row)}"')
    if not parts:
        return None
    return [*lines, *head(out, f"Executions a second over time ({host['name']})"),
            'set xlabel "% of the lane"', "set xrange [0:100]", "set yrange [0:]", "set key outside", "plot " + ", ".join(parts)]


PLOTS = {"response": plot_response, "throughput": plot_throughput, "over-time": plot_over_time}


def plots(document, folder):
    """Writes the plots and gives their paths."""
    written = []
    for host in document["hosts"]:
        for name, make in PLOTS.items():
            out = folder / f"{name}-{host['name']}.svg"
            script = make(host, out) if "executions" in host else None
            if script:
                subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)
                written.append(out)
    return written
