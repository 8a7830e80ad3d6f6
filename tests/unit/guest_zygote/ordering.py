import os
import sys

print("probe: 1 buffered")
print("2 err", file=sys.stderr)
os.write(1, b"3 direct\n")
os.system("echo 4 child")
sys.stdout.write("5 no newline")
