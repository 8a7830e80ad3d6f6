import sys

print("probe:", end="")
sys.exit(-1)
