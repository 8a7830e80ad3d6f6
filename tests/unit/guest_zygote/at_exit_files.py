# Content that only reaches its file when the interpreter lets go of the objects.
import os
import subprocess
import sys
import tempfile

if len(sys.argv) == 1:
    # A child that outlives this process looks at what it left behind.
    r, w = os.pipe()
    pid = os.fork()
    if pid:
        print("probe:", flush=True)
        os.close(r)
        keep = open("left.txt", "w")
        keep.write("left in a buffer")
        cycle = {}
        cycle["me"] = cycle
        cycle["file"] = open("cycle.txt", "w")
        cycle["file"].write("left in a cycle")
        temporary = tempfile.TemporaryDirectory(dir=".", prefix="temporary")
        sys.exit(0)
    os.close(w)
    os.read(r, 1)
    import time

    time.sleep(0.5)
    print(sorted((n, os.path.getsize(n)) for n in os.listdir(".") if os.path.isfile(n)), [n for n in os.listdir(".") if "temporary" in n])
    sys.stdout.flush()
    os._exit(0)
