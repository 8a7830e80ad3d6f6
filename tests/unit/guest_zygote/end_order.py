# file: helper.py import atexit\nclass Noisy:\n    def __init__(self, name):\n        self.name = name\n    def __del__(self):\n        print("gone", self.name)\nkept = Noisy("helper.kept")\n_hidden = Noisy("helper._hidden")\n
# file: second.py from helper import Noisy\nimport helper\nkept = Noisy("second.kept")\nhelper.other = Noisy("helper.other")\n
# sort: lines
# Globals, modules, cycles and callbacks; the collector's order is its own.
import json
import weakref

import helper
import second
from helper import Noisy

print("probe:")
first = Noisy("first")
_underscore = Noisy("_underscore")


class Cycle:
    def __init__(self, name):
        self.me = self
        self.noisy = Noisy(name)


cycle = Cycle("in a cycle")
Cycle("garbage")
told = weakref.ref(cycle.noisy, lambda reference: print("callback", reference() is None))
late = weakref.finalize(first, print, "weakref.finalize")
early = weakref.finalize(cycle, print, "not at exit")
early.atexit = False


def with_default(value=Noisy("default")):
    return value


class Holder:
    attribute = Noisy("class attribute")


last = Noisy("last")
