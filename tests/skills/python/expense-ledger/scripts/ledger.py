"""One step of a ledger that lies in the folder of the session."""
import csv
import json
import os
import sqlite3
import sys
from datetime import date
from pathlib import Path


def fail(message):
    print(f"ledger: {message}", file=sys.stderr)
    sys.exit(1)


def left(db):
    return dict(db.execute("""select name, budget - coalesce(sum(cents), 0) from category
                              left join entry on category = name group by name"""))


def open_ledger(path, request):
    if path.exists():
        fail("it is open already: close it first")
    db = sqlite3.connect(path)
    with db:
        db.execute("create table category (name text primary key, budget integer not null)")
        db.execute("create table entry (day text, category text references category, cents integer check (cents > 0))")
        db.executemany("insert into category values (?, ?)", request["budgets"].items())
    return db


def find_ledger(path):
    if not path.exists():
        fail("there is none in this session: begin with the step open")
    return sqlite3.connect(path)


def post(db, entries):
    db.execute("pragma foreign_keys = on")
    try:
        with db:
            db.executemany("insert into entry values (?, ?, ?)",
                           [(date.fromisoformat(day).isoformat(), name, cents) for day, name, cents in entries])
    except (sqlite3.IntegrityError, ValueError) as error:
        return str(error)
    return None


def write_statement(db, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["day", "category", "cents", "total"])
        out.writerows(db.execute("""select day, category, cents, sum(cents) over (order by day, rowid)
                                    from entry order by day, rowid"""))


def main():
    request = json.load(sys.stdin)
    folder = os.environ.get("SANDBOX_SESSION_DIR")
    if not folder:
        fail("it is kept from run to run in a session: give them all the same one")
    path = Path(folder, "ledger.db")
    db = open_ledger(path, request) if request["step"] == "open" else find_ledger(path)
    output = {"refused": post(db, request["entries"]) if request["step"] == "post" else None}
    output["left"] = left(db)
    output["integrity"] = db.execute("pragma integrity_check").fetchone()[0]
    if request["step"] == "close":
        write_statement(db, Path(os.environ["SANDBOX_FILES_DIR"], "statement.csv"))
        path.unlink()
    db.close()
    json.dump(output, open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8"))


main()
