# What C code left: its own exit functions, its buffers, calls it asked the interpreter for.
import ctypes
import os
import sys

libc = ctypes.CDLL(None)
kind = ctypes.CFUNCTYPE(None)
pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

print("probe:", flush=True)
libc.printf(b"in a buffer of C\n")
at_exit = kind(lambda: os.write(1, b"no\n") and None)


@pending
def call(argument):
    os.write(1, b"pending call\n")
    return 0


ctypes.pythonapi.Py_AddPendingCall(call, None)
