# Without cycles, globals go in the order they were made, and functions see them until then.
import sys


class Noisy:
    def __init__(self, name):
        self.name = name

    def __del__(self, write=sys.stdout.write):
        write(f"gone {self.name}\n")


print("probe:")
first = Noisy("first")
_second = Noisy("_second")
third = [Noisy("third")]
first.inner = Noisy("inner")
del Noisy
