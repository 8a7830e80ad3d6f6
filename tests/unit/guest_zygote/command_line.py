# args: one two=2 --three -m
# The command line and everything derived from it.
import os
import sys

print("probe:", sys.argv, sys.orig_argv, sys.path, sys.executable, sys.prefix, sys.exec_prefix)
print(__name__, __file__, __spec__, type(__loader__).__name__, __builtins__, __doc__)
print(__package__, __cached__, sorted(globals()))
print(os.getcwd(), __loader__.path, sys.modules["__main__"].__dict__ is globals())
