# A child of fork() that runs to the end of the script ends like the first process.
import atexit
import os
import sys


class Noisy:
    def __del__(self):
        print("gone in", "child" if pid == 0 else "parent", flush=True)


print("probe:", flush=True)
noisy = Noisy()
atexit.register(print, "exit function", flush=True)
pid = os.fork()
if pid:
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit(6)
