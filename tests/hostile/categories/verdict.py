# SPDX-License-Identifier: Apache-2.0
"""What came of a run of a program: blocked, open, or an error that proves nothing."""

import json
from collections import namedtuple

from table import CATEGORIES

# out: what it printed. ended: how (see sandboxes.py). all: every text that its caller got to see.
Run = namedtuple("Run", "out ended all", defaults=("",))
BLOCKED, OPEN, ERROR = "blocked", "open", "error"


def events(text):
    """The lines that are a program's own; its commands may print others."""
    found = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, list) and len(event) == 2:
            found.append(event)
    return found


def fault(category, run):
    """Why a run that did no harm proves nothing, or None: it must have come to its attack, and ended
    in one of the ways that its category has."""
    told = events(run.out)
    kinds = [kind for kind, _ in told]
    allowed = CATEGORIES[category].ends
    if told[:1] != [["begin", category]]:
        return "it did not begin"
    if run.ended != "exit 0" and run.ended not in allowed:
        return f"it ended with {run.ended}"
    if run.ended == "exit 0" and kinds[-1] != "end":
        return "it did not come to its end"
    if run.ended == "stopped" and "ready" not in kinds:
        return "it was stopped before it was ready"
    # What takes all memory is ended in the midst of its one attempt.
    if run.ended != "out of memory" and not {"got", "refused"} & set(kinds):
        return "it attempted nothing"
    return None


def verdict(category, run, effects):
    """(outcome, why). effects: what happened to the host, in words."""
    if effects:
        return OPEN, "; ".join(effects)
    wrong = fault(category, run)
    return (ERROR, wrong) if wrong else (BLOCKED, "")
