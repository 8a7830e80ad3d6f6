import sys

print("probe:", end="")
sys.exit(None)
