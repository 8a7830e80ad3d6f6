"""Access logs; see SKILL.md."""

import collections
import datetime
import gzip
import json
import os
import random
import re
import statistics
import sys
from pathlib import Path

LINE = re.compile(
    r"(?P<client>\S+) \S+ \S+ \[(?P<time>[^]]+)\] "
    r'"(?P<method>[A-Z]+) (?P<path>[^ "?]+)[^"]*" (?P<status>\d{3}) (?P<bytes>\d+|-) '
    r'"[^"]*" "[^"]*" (?P<ms>\d+)$'
)


def example(path):
    """A log with a burst of errors at 10:07 and a client that tries paths."""
    draw = random.Random(7)
    start = datetime.datetime(2024, 5, 6, 10, 0, tzinfo=datetime.timezone.utc)
    with gzip.open(path, "wt") as file:
        for i in range(4000):
            when = start + datetime.timedelta(seconds=i * 0.3)
            burst = when.minute == 7 and draw.random() < 0.5
            scanner = i % 40 == 0
            client = "203.0.113.9" if scanner else f"198.51.100.{draw.randrange(1, 200)}"
            what = f"/wp-{i}.php" if scanner else draw.choice(["/", "/search?q=a%20b", "/api/items", "/static/a.js"])
            status = 404 if scanner else 503 if burst else 200
            ms = draw.randrange(400, 900) if what.startswith("/search") else draw.randrange(5, 50)
            file.write(
                f'{client} - - [{when:%d/%b/%Y:%H:%M:%S %z}] "GET {what} HTTP/1.1" {status} {draw.randrange(9000)} '
                f'"-" "Mozilla/5.0 (X11; \u201cÄ\u201d)" {ms}\n'
            )
        file.write("this line is no log\n")


def read(paths):
    for path in paths:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            yield from file


folder = Path(os.environ["SANDBOX_INPUT_DIR"])
paths = sorted([*folder.glob("*.log"), *folder.glob("*.log.gz")])
if not paths:
    example("/tmp/example.log.gz")
    paths = [Path("/tmp/example.log.gz")]
statuses, minutes = collections.Counter(), collections.Counter()
durations, missing = collections.defaultdict(list), collections.defaultdict(set)
lines = unparsed = 0
for line in read(paths):
    lines += 1
    match = LINE.match(line.rstrip("\n"))
    if not match:
        unparsed += 1
        continue
    statuses[match["status"][0] + "xx"] += 1
    durations[match["path"]].append(int(match["ms"]))
    if match["status"] == "404":
        missing[match["client"]].add(match["path"])
    if match["status"][0] == "5":
        when = datetime.datetime.strptime(match["time"], "%d/%b/%Y:%H:%M:%S %z")
        minutes[f"{when:%H:%M}"] += 1
busy = {path: statistics.quantiles(ms, n=20)[-1] for path, ms in durations.items() if len(ms) > 100}
output = {
    "lines": lines,
    "unparsed": unparsed,
    "statuses": dict(sorted(statuses.items())),
    "worst_minute": minutes.most_common(1)[0][0] if minutes else None,
    "slowest": max(busy, key=busy.get) if busy else None,
    "scanners": {client: len(paths) for client, paths in missing.items() if len(paths) > 50},
}
report = "\n".join(f"{name:>14}: {value}" for name, value in output.items())
Path(os.environ["SANDBOX_FILES_DIR"], "report.txt").write_text(report + "\n")
print(report, file=sys.stderr)
json.dump(output, open(os.environ["SANDBOX_OUTPUT"], "w"))
