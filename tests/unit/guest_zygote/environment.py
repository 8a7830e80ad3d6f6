# The environment, in this process and in a child.
import os
import posix
import subprocess
import time

print("probe:", sorted(os.environ.items()))
print(sorted(os.environb.items()), sorted(posix.environ.items()))
print(os.getenv("SANDBOX_OUTPUT"), os.getenv("PYTHONPATH"))
print(sorted(subprocess.run(["env"], capture_output=True).stdout.split(b"\n")))
print(time.tzname, time.timezone, time.localtime(0).tm_hour)
print([ascii(v) for v in os.environ.values()])
