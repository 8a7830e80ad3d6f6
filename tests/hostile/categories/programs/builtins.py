# SPDX-License-Identifier: Apache-2.0
import builtins


def popen():
    """What code finds that was left without names."""
    for kind in ().__class__.__base__.__subclasses__():
        if kind.__name__ == "_wrap_close":
            return kind.__init__.__globals__["popen"]
    raise LookupError("no _wrap_close")


begin()
attempt("open of builtins", lambda: builtins.__dict__["open"](GIVEN["secret"]).read())
attempt("__import__", lambda: __import__("io").open_code(GIVEN["secret"]).read())
attempt("popen by subclasses", lambda: popen()(f"cat {GIVEN['secret']} 2>&1").read())
end()
