import os
import signal

print("probe:", flush=True)
os.kill(os.getpid(), signal.SIGINT)
