import sys

print("probe:", end="")
sys.exit(True)
