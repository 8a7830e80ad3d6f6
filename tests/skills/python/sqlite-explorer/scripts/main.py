"""Tables from CSV in SQLite; see SKILL.md."""

import csv
import json
import os
import sqlite3
import sys
from pathlib import Path

DATABASE = Path(os.environ["SANDBOX_FILES_DIR"]) / "data.db"
ASSETS = Path(__file__).resolve().parents[1] / "assets"


def number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def load(db, path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        heading, *rows = list(csv.reader(file))
    for i in range(len(heading)):
        if all(number(row[i]) is not None for row in rows):
            for row in rows:
                row[i] = number(row[i])
    names = ", ".join(f'"{name}"' for name in heading)
    db.execute(f'create table "{path.stem}" ({names})')
    db.executemany(f'insert into "{path.stem}" values ({", ".join("?" * len(heading))})', rows)
    return len(rows)


def search(db, table, words):
    columns = [row[1] for row in db.execute(f'pragma table_info("{table}")')]
    db.execute(f"create virtual table found using fts5({', '.join(columns)}, tokenize=porter)")
    db.execute(f'insert into found select * from "{table}"')
    rows = db.execute("select rowid from found where found match ? order by rowid", (words,))
    return [row[0] for row in rows]


def ask(query):
    db = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)
    try:
        cursor = db.execute(query)
        return {"columns": [c[0] for c in cursor.description or []], "rows": cursor.fetchall()}
    except sqlite3.Error as error:
        return {"error": str(error)}


def main():
    request = json.load(sys.stdin)
    tables = sorted(Path(os.environ["SANDBOX_INPUT_DIR"]).glob("*.csv")) or sorted(ASSETS.glob("*.csv"), reverse=True)
    db = sqlite3.connect(DATABASE)
    db.execute("pragma journal_mode=wal")
    output = {"tables": {path.stem: load(db, path) for path in tables}}
    db.commit()
    if "search" in request:
        output["found"] = search(db, tables[0].stem, request["search"])
        db.commit()
    if "query" in request:
        output["answer"] = ask(request["query"])
    output["integrity"] = db.execute("pragma integrity_check").fetchone()[0]
    db.close()
    json.dump(output, open(os.environ["SANDBOX_OUTPUT"], "w"))


main()
