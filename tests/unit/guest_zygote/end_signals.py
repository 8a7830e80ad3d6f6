# Handlers are gone when the last objects go: the signal then does what it does by itself.
import os
import signal


class Raises:
    def __del__(self):
        print("dies", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        print("still here")


print("probe:", flush=True)
signal.signal(signal.SIGTERM, lambda *args: print("handled"))
one = Raises()
