import os
import sys

r, w = os.pipe()
os.close(r)
print("probe:", file=sys.stderr, flush=True)
try:
    os.write(w, b"x")
except BrokenPipeError as error:
    print(error)
os.dup2(w, 1)
