# One that is still there, with exit functions and objects of its own.
import _xxsubinterpreters as interpreters

print("probe:", flush=True)
identity = interpreters.create()
interpreters.run_string(identity, """
import atexit, sys

class Noisy:
    def __del__(self):
        print("gone in the other", flush=True)

noisy = Noisy()
atexit.register(print, "exit of the other", flush=True)
""")
forgotten = int(interpreters.create())
