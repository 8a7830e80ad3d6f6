# What goes wrong in finalizers is told, and changes no status.
import atexit
import sys
import weakref


class Fails:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        raise ValueError(self.name)


class Exits:
    def __del__(self):
        sys.exit(5)


class Target:
    pass


def fails(reference):
    raise KeyError("callback")


print("probe:")
one = Fails("global")
two = Exits()
target = Target()
reference = weakref.ref(target, fails)
cycle = [Fails("cycle")]
cycle.append(cycle)
sys.kept = Fails("sys")
atexit.register(sys.exit, 9)
atexit.register(lambda: 1 / 0)
atexit.register(print, "registered last")
sys.exit(3)
