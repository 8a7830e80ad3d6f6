import sys

print("probe:", end="")
sys.exit(256)
