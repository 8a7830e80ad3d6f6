# A hook for what cannot be raised sees the same, as does an audit hook.
import sys


class Fails:
    def __del__(self):
        raise ValueError("told to the hook")


def hook(unraisable):
    print("hook", unraisable.exc_type.__name__, unraisable.exc_value, flush=True)


def audit(event, args, write=sys.stdout.write, flush=sys.stdout.flush):
    if event.startswith("cpython."):
        write(event + "\n")
        flush()


print("probe:")
sys.unraisablehook = hook
sys.addaudithook(audit)
one = Fails()
cycle = [Fails()]
cycle.append(cycle)
