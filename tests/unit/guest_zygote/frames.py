import inspect
import sys
import traceback
import warnings

print("probe:", sys._getframe().f_back, [f.function for f in inspect.stack()])


def depth(n=0):
    try:
        return depth(n + 1)
    except RecursionError:
        return n


print(depth())
traceback.print_stack()
warnings.warn("level 1")
warnings.warn("level 2", stacklevel=2)
warnings.warn("old", DeprecationWarning)
warnings.warn("resource", ResourceWarning)
open("/dev/null")
import imp
