import atexit
import sys


class Bad:
    def __del__(self):
        raise ValueError("in __del__")


def fails():
    raise KeyError("in an exit function")


print("probe:")
atexit.register(fails)
bad = Bad()
sys.stdout.flush()
