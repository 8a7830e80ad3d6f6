# Threads that are waited for, threads that are not, and what runs after them.
import atexit
import threading
import time

started = threading.Event()
finish = threading.Event()


def waited():
    started.set()
    finish.wait()
    print("waited for")


def daemon():
    while True:
        time.sleep(0.001)


def spinning():
    while True:
        pass


print("probe:")
threading.Thread(target=waited).start()
threading.Thread(target=daemon, daemon=True).start()
threading.Thread(target=spinning, daemon=True).start()
started.wait()
local = threading.local()
local.value = "main"
threading._register_atexit(print, "threading's own exit function")
threading._register_atexit(finish.set)
atexit.register(print, "after the threads")
