# An interrupt while threads are waited for.
import linecache
import os
import signal
import sys
import threading
import time

main = threading.main_thread()


def is_waited_for():
    # None for a moment between two calls.
    frame = sys._current_frames().get(main.ident)
    line = frame and linecache.getline(threading.__file__, frame.f_lineno)
    return frame and frame.f_code.co_name == "_shutdown" and "lock.acquire()" in line


def waited():
    while not is_waited_for():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        time.sleep(0.001)


print("probe:")
threading.Thread(target=waited).start()
