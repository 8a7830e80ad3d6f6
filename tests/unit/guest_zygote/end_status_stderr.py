import os
import sys

print("probe:", flush=True)
sys.stderr = open("/dev/full", "w")
sys.stderr.write("text")
