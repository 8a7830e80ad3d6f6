import os
import sys

print("probe:", flush=True)
full = os.open("/dev/full", os.O_WRONLY)
os.dup2(full, 1)
print("this has nowhere to go")
