# mode: module
# args: x y
import inspect
import sys

print("probe:", sys.argv, sys.orig_argv, sys.path[:2], __name__, __file__, __spec__.name)
print([frame.function for frame in inspect.stack()], sorted(globals()))
raise RuntimeError("from a module")
