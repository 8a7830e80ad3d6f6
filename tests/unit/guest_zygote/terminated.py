import os
import signal

print("probe:", flush=True)
print("lost in the buffer")
os.kill(os.getpid(), signal.SIGTERM)
