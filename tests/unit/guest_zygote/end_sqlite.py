# A transaction that nobody committed leaves nothing, also no journal.
import os
import sqlite3
import sys

parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        os.sched_yield()
    print(sorted(n for n in os.listdir(".") if n.startswith("data")), flush=True)
    print(sqlite3.connect("data").execute("select count(*) from t").fetchone(), flush=True)
    os._exit(0)
print("probe:", flush=True)
connection = sqlite3.connect("data")
connection.execute("create table t(a)")
connection.execute("insert into t values (1)")
connection.commit()
connection.execute("insert into t values (2)")
