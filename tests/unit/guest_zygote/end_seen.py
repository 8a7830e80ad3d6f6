# What finalizers see of the interpreter at each stage of its end.
import os
import sys
import json
import builtins


class Looks:
    def __init__(self, name):
        self.name = name

    def __del__(self, write=os.write, system=sys, names=builtins, str=str, len=len, type=type,
                sorted=sorted, getattr=getattr, Exception=Exception, dict=dict):
        seen = [self.name, system.is_finalizing(), getattr(system, "path", "absent") is None,
                getattr(system, "stdout", "absent") is None, len(getattr(system, "modules", None) or ())
                > 0, "open" in dict(names.__dict__), "exit" in dict(names.__dict__),
                getattr(names, "len", "absent") is None]
        for module in ("time", "json", "os", "fractions"):
            try:
                __import__(module)
                seen.append("imported")
            except Exception as error:
                seen.append(type(error).__name__)
        try:
            open
            seen.append("open")
        except Exception as error:
            seen.append(type(error).__name__)
        write(1, str(seen).encode() + b"\n")


print("probe:", flush=True)
one = Looks("global")
cycle = [Looks("cycle")]
cycle.append(cycle)
json.kept = Looks("preloaded")
sys.kept = Looks("sys")
builtins.kept = Looks("builtins")
