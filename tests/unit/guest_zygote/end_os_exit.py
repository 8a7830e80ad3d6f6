import atexit
import os


class Noisy:
    def __del__(self):
        print("gone")


noisy = Noisy()
atexit.register(print, "exit function")
print("probe:", flush=True)
print("lost in a buffer")
os._exit(300)
